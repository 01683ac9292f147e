"""The paper's router with its two diagnostics: does the result hang on the predictor, and is the predictor what limits it?

On the frozen axes and under the paper's rotation, over each of its pairs of widths: its trees, a multilayer perceptron and a third router
(the paper's is unnamed; here it is ridge regression) on the same 18 features, their upper envelope with seeds averaged first, and the
pair's oracle. Each escalates the same share of the test queries, so all cost the same, and is held against the fixed width of that cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..baselines.paper import REFLECTIONS, learned_rotation
from ..colours import SERIES
from ..data import Dataset
from ..evaluation.points import unseen_queries
from ..evaluation.significance import mean_interval
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..sufficiency.figure import INK, dress
from ..training.examples import Examples, examples, examples_of
from ..training.pool import sample
from ..training.router import FEWEST, PAIRS
from ..types import F64, Mask
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, interval, label, refuse_rotation
from .methods import UNSEEN, at_most
from .predictors import PREDICTORS
from .routing import CHANCE, ORACLE, SHARES, pair_curves

ROTATIONS = ("frozen", "paper")
NAMES = {"frozen": "frozen axes", "paper": "the paper's rotation"}
MANY = 100_000  # documents above which the paper finds the router to add +.0045
GRID = sorted({round((1 - share) * low + share * high) for low, high in PAIRS for share in SHARES})
INNER = slice(1, -1)  # shares between the ends, where routed and fixed may differ
DIGITS = 5
DRAWN = {"trees": 3, "mlp": 2, "ridge": 4, ORACLE: 0, "fixed": 1}  # the numbers of their colours


def parts(settings: Settings) -> list[Part]:
    """One per seed."""
    refuse_rotation(settings)
    sources = ("experiments.routers:measure", "data:held_out")
    head = {"train_queries": settings.train_queries}
    return [
        Part(f"routers seed {s}", head, partial(measure, seed=s, train_queries=settings.train_queries), sources)
        for s in range(settings.seeds)
    ]


def measure(data: Dataset, seed: int, train_queries: int) -> dict[str, Any]:
    """nDCG@10 of every predictor at every share, by rotation and pair; of single test queries what the trees and the oracle add."""
    learning, test = at_most(data.learning(seed=seed), train_queries, seed), data.split("test")
    pool = sample(learning, seed)
    usable = [pair for pair in PAIRS if pair[1] < data.documents.width] if len(pool.train) >= FEWEST else []
    routed: list[dict[str, Any]] = []
    arrays: dict[str, F64] = {}
    for name in ROTATIONS if usable else ():
        rotation = Rotation.identity(data.documents.width) if name == "frozen" else learned_rotation(pool, REFLECTIONS, seed)
        train = examples_of(pool.train, MemoryBackend(pool.documents, rotation), rotation)
        index = MemoryBackend(data.documents, rotation)
        asked = examples(index, rotation.apply(test.vectors.all()), test.judged, own=test.own, widths=GRID, noise=train.noise)
        added = [_pair(train, asked, pair, seed) for pair in usable]
        routed += [{"rotation": name, **entry} for entry, _ in added]
        for kind in ("trees", ORACLE):
            arrays[f"{kind}_{name}"] = np.mean([gains[kind] for _, gains in added], axis=0)
    assert test.judged is not None  # a split has labels
    return {
        "seed": seed,
        "test_queries": len(test),
        "train_queries": len(pool.train),
        "asked": hashlib.sha256("\n".join(map(str, test.vectors.ids)).encode()).hexdigest()[:16],
        "routed": routed,
        UNSEEN: unseen_queries(test.judged, learning.positives),
        **arrays,
    }


def _pair(train: Examples, test: Examples, pair: tuple[int, int], seed: int) -> tuple[dict[str, Any], dict[str, F64]]:
    """The curves of a pair, and what each predictor adds to the fixed width of the same mean, query by query."""
    curves = {curve.name: curve for curve in pair_curves(train, test, pair, seed)}
    widths = [round((1 - share) * pair[0] + share * pair[1]) for share in SHARES]
    fixed = np.stack([test.at(width) for width in widths])
    entry = {
        "pair": list(pair),
        "widths": widths,
        "fixed": np.round(fixed.mean(axis=1), DIGITS).tolist(),
        "curves": {name: np.round(curve.means, DIGITS).tolist() for name, curve in curves.items()},
    }
    return entry, {name: (curve.values - fixed)[INNER].mean(axis=0) for name, curve in curves.items()}


def summarise(cells: Sequence[Cell]) -> dict[str, Any]:
    """Credits over the fixed width of the same mean, by rotation and pair: mean over the shares between the ends, datasets and encoders."""
    return {"credits": list(_credits(cells))}


def _credits(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    for rotation in ROTATIONS:
        for pair in PAIRS:
            found = _grouped(cells, rotation, pair)
            if found:
                fixed = np.mean([_over_seeds(group, "fixed") for group in found], axis=0)
                by = {name: np.mean([_over_seeds(group, name) for group in found], axis=0) for name in (*PREDICTORS, CHANCE, ORACLE)}
                by["envelope"] = np.mean([_envelope(group) for group in found], axis=0)
                credits = {name: float((values - fixed)[INNER].mean()) for name, values in by.items()}
                yield {"rotation": rotation, "pair": list(pair), "fixed": float(fixed[INNER].mean()), **credits}


def _grouped(cells: Sequence[Cell], rotation: str, pair: tuple[int, int]) -> list[list[Mapping[str, Any]]]:
    """The entries of a rotation and a pair of widths, those of one dataset and encoder together: one per seed."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell in cells:
        for entry in cell["routed"]:
            if (entry["rotation"], tuple(entry["pair"])) == (rotation, pair):
                groups.setdefault((cell["dataset"], cell["encoder"]), []).append(entry)
    return list(groups.values())


def _over_seeds(entries: Sequence[Mapping[str, Any]], name: str) -> F64:
    """A curve, mean over the seeds. (P,)"""
    return np.asarray(np.mean([entry["fixed"] if name == "fixed" else entry["curves"][name] for entry in entries], axis=0))


def _envelope(entries: Sequence[Mapping[str, Any]]) -> F64:
    """At each mean width the predictor that did best on these very queries: what the paper plots, and an optimistic choice. (P,)"""
    return np.asarray(np.max([_over_seeds(entries, name) for name in PREDICTORS], axis=0))


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """One row per rotation and pair: nDCG@10 of the fixed widths, and what each predictor adds at equal cost."""
    names = (*PREDICTORS, "envelope", CHANCE, ORACLE)
    rows = [
        [NAMES[row["rotation"]], "{}, {}".format(*row["pair"]), f"{row['fixed']:.4f}", *(f"{row[name]:+.4f}" for name in names)]
        for row in _credits(cells)
    ]
    return ["", "pair", "fixed width", *names], rows


def added(cells: Sequence[Cell], rotation: str, kind: str = "trees", *, unseen: bool = True) -> dict[str, float]:
    """What the trees, or the oracle, add over the fixed width of the same mean. A query is one value, over pairs, encoders and seeds.

    `unseen` leaves the queries that no seed's labels gave away.
    """
    groups: dict[str, list[F64]] = {}
    masks: dict[str, Mask] = {}
    for cell in (cell for cell in cells if cell["routed"]):
        groups.setdefault(cell["asked"], []).append(np.asarray(cell[f"{kind}_{rotation}"], np.float64))
        masks[cell["asked"]] = masks.get(cell["asked"], True) & np.asarray(cell[UNSEEN], np.bool_)
    values = [np.mean(found, axis=0)[masks[asked] if unseen else slice(None)] for asked, found in groups.items()]
    mean, low, high = mean_interval([found for found in values if len(found)])
    return {"mean": mean, "low": low, "high": high}


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claims: the router adds to truncation, and a little to the rotation, more on large corpora."""
    measured = [cell for cell in cells if cell["routed"] and np.asarray(cell[UNSEEN]).any()]
    if not measured:
        return Verdict(
            False,
            f"**Not tested.** The router needs an encoder of more than 128 coordinates, {FEWEST} train queries and unseen test queries.",
        )
    large = [cell for cell in measured if cell["documents"] > MANY]
    claims = [
        _claim("The router adds to truncation, at equal mean width", "+.0131", measured, "frozen"),
        _claim("The router adds to the rotation, at equal mean width", "+.0013", measured, "paper"),
    ]
    if large:
        claims.append(_claim("The router adds to the rotation on corpora above 10⁵ documents", "+.0045", large, "paper"))
    return verdicts.judged(claims, *(_diagnostics(measured, rotation) for rotation in ROTATIONS))


def _claim(says: str, paper: str, cells: Sequence[Cell], rotation: str) -> Claim:
    entry, every = added(cells, rotation), added(cells, rotation, unseen=False)
    names = ", ".join(dict.fromkeys(label(cell) for cell in cells))
    seeds = len({cell["seed"] for cell in cells})
    data = f"{names}, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    return Claim(says, paper, f"{interval(entry)}, all queries {every['mean']:+.4f}", data, verdicts.above(entry["low"], entry["high"]))


def _diagnostics(cells: Sequence[Cell], rotation: str) -> str:
    """The paper's two questions, answered in words."""
    rows = [row for row in _credits(cells) if row["rotation"] == rotation]
    means = {name: float(np.mean([row[name] for row in rows])) for name in (*PREDICTORS, "envelope", ORACLE)}
    spread = max(means[name] for name in PREDICTORS) - min(means[name] for name in PREDICTORS)
    best = added(cells, rotation, ORACLE)
    reached = max(0.0, 100 * means["trees"] / means[ORACLE]) if means[ORACLE] > 0 else None
    share = "" if reached is None else f", of which the trees reach {reached:.0f} %"
    helps = "would help" if best["low"] > 0 else "is not shown to help"
    limited = best["low"] > 0 and means["trees"] < 0.5 * means[ORACLE]
    limit = f"the predictor is {'' if limited else 'not '}what limits it"
    return (
        f"On {NAMES[rotation]}: the three predictors differ by {spread:.4f}, and their envelope, chosen on the test queries, adds "
        f"{means['envelope']:+.4f}. Allocation by query {helps}: the oracle of each pair adds {interval(best)}{share}; {limit}."
    )


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel per rotation and pair: nDCG@10 of the predictors, the oracle and the fixed widths against the mean width."""
    figure.set_size_inches(10.4, 6.2)
    handles: dict[str, Any] = {}
    for row, rotation in enumerate(ROTATIONS):
        for column, pair in enumerate(PAIRS):
            found = _grouped(cells, rotation, pair)
            if not found:
                continue
            axes = figure.add_subplot(len(ROTATIONS), len(PAIRS), row * len(PAIRS) + column + 1)
            for name, number in DRAWN.items():
                values = np.mean([_over_seeds(group, name) for group in found], axis=0)
                dashed = (0, (4, 2)) if name == "fixed" else "-"
                (handles[name],) = axes.plot(
                    found[0][0]["widths"], values, color=SERIES[number][0], linestyle=dashed, marker="o", markersize=3.5
                )
            axes.set_xticks(found[0][0]["widths"])
            dress(axes, f"{NAMES[rotation]}, {pair[0]} or {pair[1]}")
    figure.supxlabel("mean width (coordinates read per candidate)", color=INK, fontsize=10.5)
    figure.supylabel("nDCG@10, mean over datasets and encoders", color=INK, fontsize=10.5)
    figure.legend(list(handles.values()), list(handles), loc="outside right center", frameon=False, labelcolor=INK)


DIFFERS = (
    "The paper takes a third router from a study that it does not name; here it is ridge regression. Shortlists are found by the "
    "rotated first 64 coordinates, not by the frozen ones. Pairs that reach the encoder width are left out: a rotation changes "
    "nothing there."
)
ROUTERS = Experiment("The router, its rivals and its oracle", parts, table, judge, draw, summarise, DIFFERS)
