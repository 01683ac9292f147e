"""Forms that the growth of the required width may have: the paper's logarithm and its rivals, all by least squares.

Every form is a + b f(N) + c g(N, k), with at most one further parameter, which is searched on a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..types import F64

Cells = F64


@dataclass(frozen=True)
class Form:
    """One form: its columns beside the constant, and the values that its further parameter may take."""

    name: str
    columns: Callable[[Cells, Cells, float], tuple[Cells, Cells]]
    shapes: Callable[[Cells, Cells], Cells]
    free: bool = False  # whether the further parameter is fitted

    def design(self, n: Cells, k: Cells, shape: float) -> Cells:
        """(cells, 3)"""
        return np.stack([np.ones_like(n), *self.columns(n, k, shape)], axis=1)


def _power(n: Cells, k: Cells, shape: float) -> tuple[Cells, Cells]:
    return (n / 1000) ** shape, np.log(k)


def _floor(n: Cells, k: Cells, shape: float) -> tuple[Cells, Cells]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(n), np.where(k > shape * n, np.log(k - shape * n), -np.inf)


LOGARITHM = Form("logarithm", lambda n, k, _: (np.log(n), np.log(k)), lambda n, k: np.zeros(1))
FORMS = (
    LOGARITHM,
    Form("power", _power, lambda n, k: np.linspace(0.02, 1.2, 60), free=True),
    Form("square root", _power, lambda n, k: np.array([0.5])),
    Form("linear", _power, lambda n, k: np.array([1.0])),
    Form("floor", _floor, lambda n, k: np.min(k / n) * np.concatenate([[0.0], 1 - np.geomspace(1, 0.01, 40)[1:]]), free=True),
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A form with its coefficients."""

    form: Form
    coefficients: Cells  # a, b, c
    shape: float
    squares: float  # sum of squared residuals
    cells: int

    def predict(self, n: Cells, k: Cells) -> Cells:
        """The width; infinite where the floor has been reached."""
        with np.errstate(invalid="ignore"):
            design = self.form.design(n, k, self.shape)
            reached = np.isneginf(design).any(axis=1)
            return np.where(reached, np.inf, np.where(np.isfinite(design), design, 0.0) @ self.coefficients)

    @property
    def aic(self) -> float:
        """Akaike's criterion; cells of nested corpora are not independent, so it orders the forms and tests none."""
        parameters = 3 + self.form.free + 1
        return self.cells * float(np.log(max(self.squares, 1e-12) / self.cells)) + 2 * parameters


def fit(form: Form, n: Cells, k: Cells, widths: Cells) -> Fit:
    """Least squares over the cells, (cells,) each."""
    best: Fit | None = None
    for shape in form.shapes(n, k).tolist():
        design = form.design(n, k, shape)
        coefficients = np.asarray(np.linalg.lstsq(design, widths, rcond=None)[0], np.float64)
        squares = float(np.square(widths - design @ coefficients).sum())
        if best is None or squares < best.squares:
            best = Fit(form, coefficients, shape, squares, len(widths))
    assert best is not None
    return best
