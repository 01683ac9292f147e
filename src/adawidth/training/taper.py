"""Fitting the taper: calibration without labels, the target width, and what each z costs and keeps on dev. NumPy only."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Judged, Queries
from ..metrics import Measure, evaluate
from ..policies.base import LADDER, ladder_from
from ..policies.taper import Calibration, Curve, Taper, TaperModel, tails
from ..rotation import QueryMap, Rotation
from ..stages import Decision, RowBackend, Stage
from ..stages.loop import SHORTLIST, run
from ..types import F32, F64, Mask, Rows
from .corpus import Scanned, pieces, rankings
from .task import evenly

STARTS = (32, 64)
KS = (10, 100)  # the k that budget and quality are measured for
GRID = np.array([*np.arange(0.0, 2.51, 0.25), 3.0, 3.5, 4.0, 5.0, np.inf])  # z
NEAREST = 200  # candidates of a query that the least squares see
SMALLEST_TAIL = 1e-3  # noise is not divided by less
TAIL, NORMAL_TAIL = 0.98, 2.0537  # σ is this quantile of the noise over the normal's: narrow widths have a heavy upper tail
QUERIES = 500  # queries used to calibrate, and to draw the curves, at most

Corpus = RowBackend | Scanned
Measured = dict[tuple[int, float], list[Any]]  # by k and z, one array for each piece

log = logging.getLogger("adawidth")


@dataclass(frozen=True, eq=False)
class RotatedQueries:
    """Queries as an index takes them, their labels if there are any, and the row of a document that each must not find."""

    rows: F32  # (Q, D)
    own: Rows | None = None  # -1 for none
    judged: Judged | None = None

    @classmethod
    def of(cls, queries: Queries, mapping: Rotation | QueryMap) -> RotatedQueries:
        """Under a rotation or a query map."""
        return cls(mapping.apply(queries.vectors.all()), queries.own, queries.judged)

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, picked: Rows) -> RotatedQueries:
        """These queries alone."""
        own, judged = self.own, self.judged
        return RotatedQueries(self.rows[picked], None if own is None else own[picked], None if judged is None else judged.select(picked))


def calibrate(index: Corpus, queries: F32, ladder: Sequence[int], *, own: Rows | None = None, nearest: int = NEAREST) -> Calibration:
    """β and σ of every ladder width but the last (the target), by least squares within each query's nearest candidates at the first.

    σ is read off the upper tail of what is left, since those are the candidates that a narrow width underrates. Needs no labels.
    `own` is the row of a document that is not among a query's candidates, -1 for none.
    """
    read = [_read_all(piece.stage, ladder) for piece in pieces(index, queries, ladder[0], min(nearest, len(index)), own)]
    prefixes, lengths, found = (np.concatenate(arrays, axis=1) for arrays in zip(*read, strict=True))  # (W, Q, C) each
    target, beta, sigma = prefixes[-1], np.zeros(len(ladder) - 1), np.zeros(len(ladder) - 1)
    for i, prefix in enumerate(prefixes[:-1]):
        energy = float((prefix * prefix).sum())
        beta[i] = float((prefix * target).sum()) / energy if energy > 0 else 0.0
        unit_noise = (target - beta[i] * prefix)[found[i]] / np.maximum(lengths[i][found[i]], SMALLEST_TAIL)
        sigma[i] = max(0.0, float(np.quantile(unit_noise, TAIL)) / NORMAL_TAIL) if unit_noise.size else 0.0
    return Calibration(tuple(ladder), beta, sigma)


def documents_as_queries(index: Corpus, count: int = 2 * QUERIES, seed: int = 0) -> RotatedQueries:
    """Documents that stand in for queries; none finds itself."""
    rows = np.sort(np.random.default_rng(seed).choice(len(index), min(count, len(index)), replace=False))
    return RotatedQueries(index.vectors(rows), rows)


def fit_taper(
    index: Corpus,
    train: RotatedQueries,
    dev: RotatedQueries,
    *,
    target: int | None = None,
    starts: Sequence[int] = STARTS,
) -> TaperModel:
    """Calibrates on train queries and measures on dev queries.

    The target width is the one given, else the encoder width, or with labels the width that ranks the dev queries best.
    Without queries documents stand in for them; real queries then overspend a budget, in benchmarks/taper.py by 3 to 67 %.
    """
    if not len(train) or not len(dev):
        log.warning("no queries to calibrate the taper with: documents stand in for them, and a budget is kept only roughly")
        train, dev = _stand_ins(index)
    widths = {*ladder_from(min((*starts, index.width)), index.width), target or index.width}
    depth = min(max(KS), len(index))
    ranked = rankings(index, dev.rows, sorted(widths), depth, dev.own)
    if target is None:
        target = index.width if dev.judged is None else best_width(ranked, dev.judged)
    calibrations = _calibrations(index, train, [start for start in starts if start <= target] or [target], target)
    target = calibrations[0].ladder[-1]
    reference = ranked[target]
    ks = [k for k in KS if k <= max(depth, KS[0])]
    curves = tuple(_curves(index, fitted, ks, dev, reference) for fitted in calibrations)
    fixed = {width: kept(ranking, reference, dev.judged, KS[0]) for width, ranking in ranked.items() if width <= target}
    return TaperModel(dev.judged is not None, calibrations, curves, fixed)


def _stand_ins(index: Corpus) -> tuple[RotatedQueries, RotatedQueries]:
    """Documents as train and as dev queries, in turn."""
    queries = documents_as_queries(index)
    order = np.arange(len(queries))
    return queries.select(order[::2]), queries.select(order[1::2] if len(queries) > 1 else order)


def _calibrations(index: Corpus, train: RotatedQueries, starts: Sequence[int], target: int) -> tuple[Calibration, ...]:
    """One for each start width; where all scores are equal, a single one that stays at the first."""
    some = train.select(evenly(len(train), QUERIES))
    fitted = tuple(calibrate(index, some.rows, ladder_from(start, target, LADDER), own=some.own) for start in starts)
    if any(one.beta.any() for one in fitted) or starts[0] == target:
        return fitted
    log.warning("all scores are equal within each query: nothing to go on, the taper stays at its start width, %d", starts[0])
    return (Calibration((starts[0],), np.empty(0), np.empty(0)),)


def best_width(rankings: dict[int, Rows], judged: Judged) -> int:
    """The smallest width whose nDCG@10 is within one standard error (of the paired difference) of the best width's.

    Few dev queries can't tell a width that the rotation was trained for from the full width, the frozen ranking: the narrower is safer.
    """
    ndcg = {width: _ndcg(ranking, judged, 10) for width, ranking in sorted(rankings.items())}
    best = max(ndcg.values(), key=lambda values: float(values.mean()))
    for width, values in ndcg.items():
        lost = best - values
        if lost.mean() <= lost.std() / np.sqrt(max(1, len(lost))):
            return width
    raise AssertionError("the best width is within its own error")


def kept(ranking: Rows, reference: Rows, judged: Judged | None, k: int) -> float:
    """The share of the reference ranking's nDCG@k that a ranking has; without labels the share of its top k that it holds."""
    if judged is not None:
        whole = float(_ndcg(reference, judged, k).sum())
        return float(_ndcg(ranking, judged, k).sum()) / whole if whole > 0 else 1.0
    wanted = reference[:, :k]
    held = (wanted[:, :, None] == ranking[:, None, :k]).any(axis=2) & (wanted >= 0)  # (Q, k)
    return float(held.sum()) / max(1, int((wanted >= 0).sum()))


def _ndcg(ranking: Rows, judged: Judged, k: int) -> F64:
    measure = Measure("nDCG", k)
    return evaluate([measure], ranking, judged)[str(measure)]


def _curves(index: Corpus, calibration: Calibration, ks: Sequence[int], dev: RotatedQueries, reference: Rows) -> tuple[Curve, ...]:
    """What each z costs and keeps, for each k: the taper run over a grid of z from one opened stage."""
    picked = evenly(len(dev), QUERIES)
    some = dev.select(picked)
    spent: Measured = {(k, z): [] for k in ks for z in GRID.tolist()}
    found: Measured = {knobs: [] for knobs in spent}
    for piece in pieces(index, some.rows, calibration.ladder[0], min(SHORTLIST, len(index)), some.own):
        for k, z in spent:
            done = run(piece.stage, Taper(calibration, z, k))
            spent[k, z].append(done.mean_widths)
            found[k, z].append(piece.ranked(done, k))
    return tuple(_curve(k, spent, found, reference[picked], some.judged) for k in ks)


def _curve(k: int, spent: Measured, found: Measured, reference: Rows, judged: Judged | None) -> Curve:
    points = []
    for z in GRID.tolist():
        widths = np.concatenate(spent[k, z])
        error = widths.std() / np.sqrt(max(1, len(widths)))
        points.append((widths.mean(), error, kept(np.concatenate(found[k, z]), reference, judged, k)))
    return Curve(k, GRID.copy(), *np.array(points).T)


def _read_all(stage: Stage, ladder: Sequence[int]) -> tuple[F64, F64, Mask]:
    """With nobody dropped, at every ladder width: centred scores, the lengths that lie beyond it, and who is a candidate. (W, Q, C)"""
    scores, lengths, found = [], [], []
    for width in ladder:
        stage = stage.backend.rescore(stage, Decision(stage.alive, np.full(len(stage), width, np.int64)))
        scores.append(_centred(stage))
        lengths.append(tails(stage, ladder[-1]))
        found.append(stage.alive)
    return np.stack(scores), np.stack(lengths), np.stack(found)


def _centred(stage: Stage) -> F64:
    """Scores less their mean within each query; 0 where there is no candidate. (Q, C)"""
    scores = np.where(stage.alive, stage.scores, 0.0).astype(np.float64)
    means = scores.sum(axis=1, keepdims=True) / np.maximum(stage.alive.sum(axis=1, keepdims=True), 1)
    return np.where(stage.alive, scores - means, 0.0)
