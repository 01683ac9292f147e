"""What the width law answers: a width with an interval, or the reason why the data can't say.

Within the sizes and depths measured, the answer is read off the measurements, linear in ln N and ln k between them; beyond,
the law's slopes carry on from the nearest one. How far they reach is told by corpora left out.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from .forms import LOGARITHM, Cells, fit
from .overtakers import RequiredWidths

if TYPE_CHECKING:
    from .law import WidthLaw

DRAWS = 200  # of the bootstrap
CONFIDENCE = 0.95
TRUSTED = 0.25  # a width is given where the expected error of extrapolation is at most this share of it


@dataclass(frozen=True)
class Prediction:
    """The width that is enough for `quantile` of the relevant documents to be in the top k of so many documents."""

    documents: int
    k: int
    quantile: float
    width: int | None  # None where the data can't say
    interval: tuple[int, int] | None  # 95 %, over queries and chains, and the expected error of extrapolation; ends at the encoder width
    extrapolated: bool  # whether sizes or depths beyond those measured were asked for
    reason: str | None = None  # why there is no width

    @property
    def bytes_per_document(self) -> int | None:
        """Of float32 coordinates."""
        return None if self.width is None else 4 * self.width

    def to_json(self) -> dict[str, Any]:
        """The fields, by name, and what the width costs."""
        size = self.bytes_per_document
        return {**asdict(self), "bytes_per_document": size, "memory_bytes": None if size is None else size * self.documents}


@dataclass(frozen=True, eq=False)
class Surface:
    """A plane in ln N and ln k and, on top of it, what the measured cells differ by."""

    required: RequiredWidths
    plane: Cells  # a, b, c
    cells: Cells  # (S, K), infinite where undefined

    def __call__(self, documents: float, k: float) -> float:
        """The value there; infinite where the nearest measured cells are undefined."""
        sizes, depths = np.log(self.required.sizes), np.log(self.required.depths)
        n, d = (float(np.clip(math.log(x), axis[0], axis[-1])) for x, axis in ((documents, sizes), (k, depths)))
        weights = np.outer(_hats(sizes, n), _hats(depths, d))
        measured = float((weights[weights > 0] * self.cells[weights > 0]).sum())
        _, b, c = self.plane.tolist()
        return float(measured + b * (math.log(documents) - n) + c * (math.log(k) - d))


def _hats(axis: Cells, x: float) -> Cells:
    """Weights of linear interpolation at x, one for each point of the axis."""
    return np.array([np.interp(x, axis, unit) for unit in np.eye(len(axis))])


def found(required: RequiredWidths) -> Surface:
    """The logit of the share of relevant documents that the full width does not put into the top k."""
    half = 0.5 / len(required)
    share = np.clip(required.censored(), half, 1 - half)
    odds, weight = np.log(share / (1 - share)), np.sqrt(share * (1 - share)).ravel()
    n, k = required.grid()
    design = LOGARITHM.design(n, k, 0.0) * weight[:, None]
    return Surface(required, np.linalg.lstsq(design, odds.ravel() * weight, rcond=None)[0], odds)


def drift(law: WidthLaw, k: int) -> float | None:
    """Coordinates by which the slopes go astray with each doubling of the corpus at this depth, or at the measured ones around it.

    The largest of the errors made on the largest corpus from smaller ones, where a slope comes from three sizes or more. With
    fewer than two such tests, the largest error of all, at any depth. None where nothing can be left out.
    """
    required, means = law.required, law.means
    here = _hats(np.log(required.depths), math.log(k)) > 0
    near: list[float] = []
    anywhere: list[float] = []
    for kept, last, largest in law.left_out():
        b = fit(LOGARITHM, *required.flat(means, kept)).coefficients[1]
        doublings = math.log2(required.sizes[largest] / required.sizes[last])
        both = law.defined[largest] & law.defined[last]
        missed = np.full(len(both), np.nan)
        missed[both] = np.abs(means[last, both] + b * doublings * math.log(2) - means[largest, both]) / doublings
        anywhere += missed[both].tolist()
        if kept.any(axis=1).sum() > 2 and (both & here).any():
            near.append(float(missed[both & here].max()))
    return max(near) if len(near) > 1 else max(anywhere, default=None)


def draws(law: WidthLaw) -> list[Surface]:
    """The law's surface from queries and chains drawn again; draws with too few finite cells are left out."""
    rng = np.random.default_rng(0)
    out = []
    for _ in range(DRAWS):
        drawn = replace(law, required=law.required.draw(rng))
        if drawn.fits_anything:
            out.append(drawn.surface)
    return out


def predict(law: WidthLaw, documents: float, k: int) -> Prediction:
    """The width that is enough, or the reason why the data can't say."""
    if not (math.isfinite(documents) and documents >= 1) or k < 1:
        raise OptionError(f"{documents:g} documents and k = {k}: both are 1 or more")
    sizes, depths = law.required.sizes, law.required.depths
    doublings = max(0.0, math.log2(documents / sizes[-1]), math.log2(sizes[0] / documents))
    covered = int(depths[0]) <= k <= int(depths[-1])
    answer = Prediction(round(documents), k, law.quantile, None, None, doublings > 0 or not covered)
    if not covered:
        return replace(answer, reason=f"k = {k} is outside the depths measured, {depths[0]} to {depths[-1]}")
    guess, astray = law.surface(documents, k), drift(law, k)
    error = 0.0 if not doublings else math.inf if astray is None else doublings * astray
    reason = _doubt(law, documents, k, guess, error, doublings)
    if reason is not None:
        return replace(answer, reason=reason)
    width = law.required.encoder_width
    others = np.minimum([surface(documents, k) for surface in law.draws] or [guess], width)
    low, high = np.quantile(others, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    ends = (_whole(law, min(low, guess) - error), min(width, _whole(law, max(high, guess) + error)))
    return replace(answer, width=_whole(law, guess), interval=ends)


def _whole(law: WidthLaw, width: float) -> int:
    """A number of coordinates that can be read: whole, and not below the narrowest measured."""
    return max(int(law.required.widths[0]), math.ceil(width - 1e-9))


def _doubt(law: WidthLaw, documents: float, k: int, guess: float, error: float, doublings: float) -> str | None:
    """Why there is no answer, or None."""
    width = law.required.encoder_width
    asked, share = f"the top {k} of {documents:,.0f} documents", f"{100 * law.quantile:g} %"
    reached = law.found(documents, k)
    if reached < law.quantile:
        return f"all {width} coordinates are expected to put {100 * reached:.0f} % of the relevant documents into {asked}, not {share}"
    if math.isinf(guess):
        return f"no width is enough for {share} in the measured corpora nearest to {asked}"
    if guess > width:
        return f"the law asks for {guess:.0f} coordinates to put {share} of the relevant documents into {asked}; the encoder has {width}"
    if math.isinf(error):
        return f"too few corpus sizes have a finite {law.quantile:g} quantile at this depth to test how far the law reaches"
    if error > TRUSTED * max(guess, float(law.required.widths[0])):
        return (
            f"{documents:,.0f} documents are {doublings:.1f} doublings away from what was measured, and on held-out sizes the law "
            f"goes astray by {error / doublings:.1f} coordinates a doubling: {error:.0f} of {guess:.0f}, more than {100 * TRUSTED:g} %"
        )
    return None
