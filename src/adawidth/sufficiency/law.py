"""The width law, required width = a + b ln N + c ln k: fitted, tested on what it has not seen, and used to plan.

An empirical law. The signs b > 0 and c < 0 hold by construction (more documents can only overtake more, a deeper list
only forgives more), and a smooth surface over two factors gives many forms a high R². What tests it is the error on the
largest corpus when it is left out, against rival forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Dataset, Queries
from ..errors import DataError, OptionError
from ..rotation import Rotation
from ..types import F64, Mask
from . import planner
from .forms import FORMS, LOGARITHM, Cells, Fit, fit
from .overtakers import CHAINS, DEPTHS, SMALLEST, RequiredWidths, required_widths
from .planner import Prediction
from .rates import rates_summary, tail

QUANTILE = 0.9
QUERIES = 2_000  # measured, at most
PLANNED = (1_000_000, 10_000_000, 100_000_000)  # documents
LABEL_FREE = ("identity", "random", "pca")  # rotations that no query was used for


@dataclass(frozen=True)
class Extrapolation:
    """The law fitted on corpora up to one size, and its error on the largest."""

    fitted_to: int  # documents
    doublings: float  # from there to the largest
    rmse: float  # coordinates, over the depths at the largest size
    relative: float  # the same as a share of the widths there


@dataclass(frozen=True, eq=False)
class WidthLaw:
    """The law of one collection under one rotation at one quantile, and the measurements behind it.

    >>> from adawidth import bundled, load_dataset
    >>> law = WidthLaw.fit(load_dataset(bundled.path()), quantile=0.5, queries=200)
    >>> a, b, c = law.coefficients
    >>> b > 0 > c
    True
    """

    required: RequiredWidths
    quantile: float
    facts: dict[str, Any]  # dataset, encoder, split, queries, documents, rotation

    @classmethod
    def fit(
        cls,
        data: Dataset,
        rotation: Rotation | None = None,
        *,
        quantile: float = QUANTILE,
        split: str | None = None,
        depths: Sequence[int] = DEPTHS,
        smallest: int = SMALLEST,
        queries: int = QUERIES,
        seed: int = 0,
    ) -> WidthLaw:
        """Measures at most `queries` labelled queries of the train split, or of dev where the rotation has learned from train.

        Corpora are nested halves of the collection down to `smallest` documents, in several random orders. Test queries are
        not taken. Raises a DataError or OptionError where there are no labels, too few documents, fewer than two depths, or
        too few cells with a finite quantile.

        >>> law.facts["rotation"], law.facts["split"]
        ('none', 'train')
        """
        if not 0 < quantile < 1:
            raise OptionError(f"quantile {quantile} is not between 0 and 1")
        if split is None:
            split = "train" if rotation is None or rotation.kind in LABEL_FREE else "dev"
        chosen = _queries(data, split, queries, seed)
        required = required_widths(data.documents, chosen, rotation, depths=depths, smallest=smallest, chains=CHAINS, seed=seed)
        facts = {
            "dataset": data.name,
            "encoder": data.encoder,
            "encoder_width": data.documents.width,
            "rotation": "none" if rotation is None else rotation.kind,
            "split": split,
            "queries": len(np.unique(required.queries)),
            "pairs": len(required),
            "documents": len(data.documents),
            "chains": CHAINS,
        }
        law = cls(required, quantile, facts)
        law._check()
        return law

    def at(self, quantile: float) -> WidthLaw:
        """The law of the same pairs at another quantile.

        >>> law.at(0.4).quantile
        0.4
        """
        if not 0 < quantile < 1:
            raise OptionError(f"quantile {quantile} is not between 0 and 1")
        law = replace(self, quantile=quantile)
        law._check()
        return law

    def __repr__(self) -> str:
        a, b, c = self.coefficients
        return f"WidthLaw({self.facts['dataset']}, quantile {self.quantile:g}: {a:.1f} {b:+.1f} ln N {c:+.1f} ln k)"

    @cached_property
    def cells(self) -> F64:
        """The quantile of the required widths: (C, S, K), infinite where it is undefined."""
        return self.required.quantile(self.quantile)

    @cached_property
    def defined(self) -> Mask:
        """The (size, depth) cells whose quantile is finite in every chain: those the law is fitted on. (S, K)"""
        return np.asarray(np.isfinite(self.cells).all(axis=0))

    @cached_property
    def means(self) -> Cells:
        """The same, averaged over the chains. (S, K)"""
        return np.asarray(self.cells.mean(axis=0), np.float64)

    @property
    def fits_anything(self) -> bool:
        """Whether enough cells are finite."""
        return _spread(self.defined)

    @cached_property
    def surface(self) -> planner.Surface:
        """The measured cells, extended by the law."""
        plane = fit(LOGARITHM, *self.required.flat(self.means, self.defined)).coefficients
        return planner.Surface(self.required, plane, self.means)

    @cached_property
    def draws(self) -> list[planner.Surface]:
        """The same for bootstrap samples of queries and chains."""
        return planner.draws(self)

    @cached_property
    def fits(self) -> dict[str, Fit]:
        """Every form on the cells' means over the chains, by name."""
        cells = self.required.flat(self.means, self.defined)
        return {form.name: fit(form, *cells) for form in FORMS}

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """(a, b, c)"""
        a, b, c = self.fits["logarithm"].coefficients.tolist()
        return a, b, c

    @property
    def r2_mean_point(self) -> float:
        """Share of the variation of the cells' means that the law explains, as the paper defines it."""
        return self._r2(self.fits["logarithm"], self.defined)

    def away_from_floor(self) -> dict[str, float] | None:
        """The law on the cells where at most half as many pairs are censored as the quantile allows; None if these are too few.

        >>> sorted(law.away_from_floor())
        ['a', 'b', 'c', 'cells', 'r2_mean_point']
        """
        cells = self.defined & (self.required.censored() <= (1 - self.quantile) / 2)
        if not _spread(cells):
            return None
        fitted = fit(LOGARITHM, *self.required.flat(self.means, cells))
        return {
            **dict(zip("abc", fitted.coefficients.tolist(), strict=True)),
            "r2_mean_point": self._r2(fitted, cells),
            "cells": int(cells.sum()),
        }

    def left_out(self) -> Iterator[tuple[Mask, int, int]]:
        """Leaves out the largest 1, 2, … sizes, while a law can be fitted: (cells kept, largest size kept, largest size of all).

        Sizes are given by their place.

        >>> [(kept, largest) for _, kept, largest in law.left_out()]
        [(1, 2)]
        """
        largest = int(np.flatnonzero(self.defined.any(axis=1))[-1])
        for last in range(largest - 1, 0, -1):
            kept = self.defined & (np.arange(len(self.defined)) <= last)[:, None]
            if not _spread(kept):
                return
            yield kept, last, largest

    def extrapolations(self, form: str = "logarithm") -> list[Extrapolation]:
        """A form fitted without the largest 1, 2, … sizes, and its error on the largest.

        >>> [entry.fitted_to for entry in law.extrapolations()]
        [1518]
        """
        sizes, out = self.required.sizes, []
        for kept, last, largest in self.left_out():
            there = self.defined & (np.arange(len(sizes)) == largest)[:, None]
            n, k, widths = self.required.flat(self.means, there)
            guess = fit(self.fits[form].form, *self.required.flat(self.means, kept)).predict(n, k)
            rmse = float(np.sqrt(np.square(guess - widths).mean()))
            out.append(Extrapolation(int(sizes[last]), math.log2(sizes[largest] / sizes[last]), rmse, rmse / float(widths.mean())))
        return out

    def left_out_chain(self) -> dict[str, float]:
        """The law fitted on all chains but one and tested on that one, averaged over chains: R², and RMSE in coordinates.

        >>> sorted(law.left_out_chain())
        ['r2', 'rmse']
        """
        r2, rmse = [], []
        for chain in range(len(self.cells)):
            others = np.delete(self.cells, chain, axis=0).mean(axis=0)
            n, k, widths = self.required.flat(self.cells[chain], self.defined)
            guess = fit(LOGARITHM, *self.required.flat(others, self.defined)).predict(n, k)
            squares = np.square(guess - widths)
            r2.append(1 - squares.sum() / max(np.square(widths - widths.mean()).sum(), 1e-12))
            rmse.append(np.sqrt(squares.mean()))
        return {"r2": float(np.mean(r2)), "rmse": float(np.mean(rmse))}

    def found(self, documents: float, k: int) -> float:
        """Share of relevant documents that full width puts into the top k of so many documents. Its logit is linear in ln N and ln k.

        >>> law.found(1e6, k=10) < law.found(1000, k=10)
        True
        """
        return 1 / (1 + math.exp(min(planner.found(self.required)(documents, k), 700.0)))

    def predict(self, documents: float, k: int, quantile: float | None = None) -> Prediction:
        """The width that is enough for this share of the relevant documents, or the reason why the data can't say.

        >>> answer = law.predict(2000, k=10)
        >>> answer.interval[0] <= answer.width <= answer.interval[1]
        True
        """
        law = self if quantile is None or quantile == self.quantile else self.at(quantile)
        return planner.predict(law, documents, k)

    def plan(self, k: int) -> list[Prediction]:
        """Predictions for 1, 10 and 100 million documents.

        >>> [answer.documents for answer in law.plan(k=10)]
        [1000000, 10000000, 100000000]
        """
        return [self.predict(documents, k) for documents in PLANNED]

    def to_json(self) -> dict[str, Any]:
        """Everything measured: the law, its tests, rival forms, cells, rates and tail.

        >>> law.to_json()["sizes"]
        [759, 1518, 3037]
        """
        a, b, c = self.coefficients
        best = replace(self, required=self.required.best())
        rates = rates_summary(self.required)
        tested = self.extrapolations()
        return {
            **self.facts,
            "quantile": self.quantile,
            "sizes": self.required.sizes.tolist(),
            "depths": self.required.depths.tolist(),
            "law": {
                "a": a,
                "b": b,
                "c": c,
                "r2_mean_point": self.r2_mean_point,
                "cells": int(self.defined.sum()),
                "undefined_cells": int((~self.defined).sum()),
            },
            "away_from_floor": self.away_from_floor(),
            "best_positive": dict(zip("abc", best.coefficients, strict=True)) if best.fits_anything else None,
            "held_out": {
                "largest_size": asdict(tested[0]) if tested else None,
                "by_doublings": [asdict(entry) for entry in tested],
                "chain": self.left_out_chain(),
                "drift": {str(k): planner.drift(self, k) for k in self.required.depths.tolist()},
            },
            "forms": [self._form(name) for name in self.fits],
            "rates": rates,
            "alpha": None if rates["median"] is None else b * rates["median"],
            "tail": None if (found := tail(self.required)) is None else found.to_json(),
            "cells": self._cells(),
        }

    def _r2(self, fitted: Fit, cells: Mask) -> float:
        means = self.means[cells]
        return 1 - fitted.squares / max(float(np.square(means - means.mean()).sum()), 1e-12)

    def _form(self, name: str) -> dict[str, Any]:
        fitted, tested = self.fits[name], self.extrapolations(name)
        return {
            "form": name,
            "parameters": 3 + fitted.form.free,
            "shape": fitted.shape if fitted.form.free else None,
            "r2_mean_point": self._r2(fitted, self.defined),
            "aic": fitted.aic,
            "held_out_rmse": [entry.rmse if math.isfinite(entry.rmse) else None for entry in tested],
        }

    def _cells(self) -> list[dict[str, Any]]:
        censored = self.required.censored()
        return [
            {
                "documents": size,
                "k": k,
                "width": float(self.cells[:, i, j].mean()) if self.defined[i, j] else None,
                "sd": float(self.cells[:, i, j].std(ddof=1)) if self.defined[i, j] else None,
                "censored": float(censored[i, j]),
            }
            for i, size in enumerate(self.required.sizes.tolist())
            for j, k in enumerate(self.required.depths.tolist())
        ]

    def _check(self) -> None:
        """Refuses cells that no law can be fitted to."""
        if self.fits_anything:
            return
        censored = self.required.censored()
        highest = 1 - float(censored.min())
        raise DataError(
            f"{self.facts['dataset']}: at full width at most {100 * highest:.0f} % of the {len(self.required)} relevant documents are in "
            f"the top {self.required.depths[-1]} of the smallest corpus, so the {self.quantile:g} quantile of the required width is finite "
            f"in {int(self.defined.sum())} of {self.defined.size} cells, too few for a law: ask for a lower quantile (--quantile)"
        )


def _queries(data: Dataset, split: str, most: int, seed: int) -> Queries:
    """At most so many labelled queries of train or dev; where the collection has no dev split, the share of train that `fit` holds out."""
    if split not in ("train", "dev"):
        raise OptionError(f"split {split!r}: the law is fitted on train or dev; test queries are kept for testing")
    learning = data.learning(seed=seed)
    chosen = learning.train if split == "train" else learning.dev
    if len(chosen) <= most:
        return chosen
    return chosen.select(np.sort(np.random.default_rng(seed).choice(len(chosen), most, replace=False)))


def _spread(defined: Mask) -> bool:
    """Whether the cells tell sizes from depths: more than three, over at least two of each, not all in one line."""
    sizes, depths = np.nonzero(defined)
    if len(sizes) < 4:
        return False
    return bool(np.linalg.matrix_rank(np.stack([np.ones(len(sizes)), sizes, depths], axis=1)) == 3)
