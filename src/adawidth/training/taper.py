"""Fitting the taper: calibration without labels, the target width, and what each z costs and keeps on dev. NumPy only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from ..data import Judged
from ..metrics import Measure, evaluate
from ..policies.base import LADDER, ladder_from
from ..policies.taper import Calibration, Curve, Taper, TaperModel, tails
from ..stages import Backend, Decision, MemoryBackend, Stage
from ..stages.loop import SHORTLIST, run
from ..types import F32, F64, Rows

STARTS = (32, 64)
KS = (10, 100)  # the k that budget and quality are measured for
GRID = np.array([*np.arange(0.0, 2.51, 0.25), 3.0, 3.5, 4.0, 5.0, np.inf])  # z
NEAREST = 200  # candidates of a query that the least squares see
SMALLEST_TAIL = 1e-3  # noise is not divided by less
TAIL, NORMAL_TAIL = 0.98, 2.0537  # σ is this quantile of the noise over the normal's: narrow widths have a heavy upper tail
QUERIES = 500  # queries used to calibrate, and to draw the curves, at most

log = logging.getLogger("adawidth")



def calibrate(index: Backend, queries: F32, ladder: Sequence[int], *, own: Rows | None = None, nearest: int = NEAREST) -> Calibration:
    """β and σ of every ladder width but the last (the target), by least squares within each query's nearest candidates at the first.

    σ is read off the upper tail of what is left, since those are the candidates that a narrow width underrates. Needs no labels.
    `own` is the row of a document that is not among a query's candidates, -1 for none.
    """
    stages = list(_read_all(index.search(queries, ladder[0], nearest, own), ladder))
    target = _centred(stages[-1])
    beta, sigma = np.zeros(len(ladder) - 1), np.zeros(len(ladder) - 1)
    for i, stage in enumerate(stages[:-1]):
        prefix = _centred(stage)
        energy = float((prefix * prefix).sum())
        beta[i] = float((prefix * target).sum()) / energy if energy > 0 else 0.0
        unit_noise = (target - beta[i] * prefix)[stage.alive] / np.maximum(tails(stage, ladder[-1])[stage.alive], SMALLEST_TAIL)
        sigma[i] = max(0.0, float(np.quantile(unit_noise, TAIL)) / NORMAL_TAIL) if unit_noise.size else 0.0
    return Calibration(tuple(ladder), beta, sigma)


def documents_as_queries(index: MemoryBackend, count: int = 2 * QUERIES, seed: int = 0) -> tuple[F32, Rows]:
    """Documents to calibrate with where there are no queries, and their rows, so that none finds itself."""
    rows = np.sort(np.random.default_rng(seed).choice(len(index.rows), min(count, len(index.rows)), replace=False))
    return index.rows[rows], rows


def fit_taper(
    index: MemoryBackend,
    calibration: F32,
    dev: F32,
    judged: Judged | None = None,
    *,
    calibration_own: Rows | None = None,
    own: Rows | None = None,
    target: int | None = None,
    ladder: Sequence[int] = LADDER,
    starts: Sequence[int] = STARTS,
    shortlist: int = SHORTLIST,
) -> TaperModel:
    """Calibrates on some queries and measures on others, both rotated; `judged` are labels of the dev queries.

    The target width is the one given, else the encoder width, or with labels the width that ranks the dev queries best.
    Without queries documents stand in for them; real queries then overspend a budget, in benchmarks/taper.py by 3 to 67 %.
    """
    if not len(calibration) or not len(dev):
        log.warning("no queries to calibrate the taper with: documents stand in for them, and a budget is kept only roughly")
        (asked, rows), judged = documents_as_queries(index), None
        calibration, calibration_own = asked[::2], rows[::2]
        dev, own = (asked[1::2], rows[1::2]) if len(asked) > 1 else (asked, rows)
    depth = min(max(KS), len(index))
    widths = {*ladder_from(min((*starts, index.width)), index.width), target or index.width}
    rankings = {width: index.search(dev, width, depth, own).candidates for width in sorted(widths)}
    if target is None:
        target = index.width if judged is None else best_width(rankings, judged)
    starts = [start for start in starts if start <= target] or [target]
    some = _some(len(calibration))
    calibrations = [
        calibrate(
            index, calibration[some], ladder_from(start, target, ladder), own=None if calibration_own is None else calibration_own[some]
        )
        for start in starts
    ]
    if not any(fitted.beta.any() for fitted in calibrations) and starts[0] < target:
        log.warning("all scores are equal within each query: nothing to go on, the taper stays at its start width, %d", starts[0])
        target, calibrations = starts[0], [Calibration((starts[0],), np.empty(0), np.empty(0))]
    reference, some = rankings[target], _some(len(dev))
    labels = None if judged is None else judged.select(some)
    curves = []
    for fitted in calibrations:
        stage = index.search(dev[some], fitted.ladder[0], shortlist, None if own is None else own[some])
        curves.append(tuple(_curve(stage, fitted, k, reference[some], labels) for k in KS if k <= max(depth, KS[0])))
    fixed = {width: kept(ranking, reference, judged, KS[0]) for width, ranking in rankings.items() if width <= target}
    return TaperModel(judged is not None, tuple(calibrations), tuple(curves), fixed)


def best_width(rankings: dict[int, Rows], judged: Judged) -> int:
    """The smallest width whose nDCG@10 is within one standard error (of the paired difference) of the best width's.

    Few dev queries can't tell a width that labels taught from the full width, which is the frozen ranking: the narrower is safer.
    """
    worth = {width: _ndcg(ranking, judged, 10) for width, ranking in sorted(rankings.items())}
    best = max(worth.values(), key=lambda values: float(values.mean()))
    for width, values in worth.items():
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


def _some(count: int) -> Rows:
    """At most QUERIES of so many rows, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, QUERIES)).astype(np.int64))


def _curve(stage: Stage, calibration: Calibration, k: int, reference: Rows, judged: Judged | None) -> Curve:
    """The taper run over a grid of z from one opened stage."""
    points = []
    for z in GRID.tolist():
        done = run(stage, Taper(calibration, z, k))
        spent = done.mean_widths
        points.append((spent.mean(), spent.std() / np.sqrt(max(1, len(spent))), kept(done.ranked(k)[0], reference, judged, k)))
    return Curve(k, GRID.copy(), *np.array(points).T)


def _read_all(stage: Stage, ladder: Sequence[int]) -> Iterator[Stage]:
    """The stage at every ladder width, nobody dropped."""
    for width in ladder:
        stage = stage.backend.rescore(stage, Decision(stage.alive, np.full(len(stage), width, np.int64)))
        yield stage


def _centred(stage: Stage) -> F64:
    """Scores less their mean within each query; 0 where there is no candidate. (Q, C)"""
    scores = np.where(stage.alive, stage.scores, 0.0).astype(np.float64)
    means = scores.sum(axis=1, keepdims=True) / np.maximum(stage.alive.sum(axis=1, keepdims=True), 1)
    return np.where(stage.alive, scores - means, 0.0)
