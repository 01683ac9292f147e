"""The paper's figure of stable widths: how many queries have a stable hit at which width, and how heavy the tail is.

A query has a stable hit from the width at which a relevant document of it enters the top k of the whole collection and stays:
the required width of its easiest relevant document.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..data import Dataset
from ..sufficiency.figure import INK, dress
from ..sufficiency.rates import tail
from ..types import F64
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, label
from .scaling import required_widths, subsampled

DEPTH = 10  # or the nearest that was measured
QUANTILES = (0.1, 0.5, 0.9)
FIRST = 16  # the narrowest bar; the others double
APART = 2.0  # widths differ where the .9 quantile is at least so many times the median
SHORT, WIDE = np.array([0.78, 0.87, 0.96]), np.array([0.09, 0.22, 0.47])  # colours of the narrowest and the widest bar
NONE = "#d9dce2"


def parts(settings: Settings) -> list[Part]:
    """One."""
    sources = ("experiments.stable_widths:measure", "data:held_out")
    return [Part("stable-widths", subsampled(settings), lambda data: measure(data, settings), sources)]


def measure(data: Dataset, settings: Settings) -> dict[str, Any]:
    """The share of the queries in each bar at every depth; at depth 10 also quantiles, what one width costs, and the tail."""
    measured = required_widths(data, settings)
    required = measured.required.best()
    place = int(np.argmin(np.abs(required.depths - DEPTH)))
    widths = required.values[0, -1, place].astype(np.float64)
    quantiles = [_finite(float(required.quantile(quantile)[0, -1, place])) for quantile in QUANTILES]
    one = quantiles[-1] or float(required.encoder_width)
    found = tail(required, DEPTH)
    return {
        **measured.facts,
        "k": int(required.depths[place]),
        "quantiles": dict(zip(map(str, QUANTILES), quantiles, strict=True)),  # null: no width is enough
        "one_width": one,  # the .9 quantile, or the encoder width where that is undefined
        "own_width": float(np.minimum(widths, one).mean()),  # read on average where each query has its own and none more than that
        "tail": None if found is None else found.to_json(),
        "bars": [
            {"k": k, **_bars(required.values[0, -1, i].astype(np.float64), required.encoder_width)}
            for i, k in enumerate(required.depths.tolist())
        ],
        "required": required.values[0, -1].astype(np.float16),  # depths, queries; infinite where no width is enough
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _bars(widths: F64, encoder_width: int) -> dict[str, Any]:
    """Shares of the queries up to 16, 32, 64, … coordinates, and of those without a stable hit."""
    bounds = [FIRST]
    while bounds[-1] < encoder_width:
        bounds.append(2 * bounds[-1])
    counts = np.bincount(np.searchsorted(bounds, widths), minlength=len(bounds) + 1)
    *shares, none = (counts / len(widths)).tolist()
    return {"bounds": bounds, "shares": shares, "no_stable_hit": none}


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """One row per cell."""
    bounds = _ends(cells)
    header = ["cell", "queries", "k", *_names(bounds), "median", ".9 quantile", "own width, mean", "Hill index", "heavy tail"]
    return header, [_row(cell, len(bounds)) for cell in cells]


def _row(cell: Cell, bars: int) -> list[str]:
    shown, found = _shown(cell), cell["tail"]
    shares = [f"{100 * share:.0f} %" for share in shown["shares"]]
    quantiles = ["–" if (width := cell["quantiles"][name]) is None else f"{width:.0f}" for name in ("0.5", "0.9")]
    outcome = verdicts.heavy(_widths(cell), cell["encoder_width"])[0]
    heavy = ["–", "–"] if found is None else [f"{found['hill']:.2f}", {"holds": "yes", "does not hold": "no"}.get(outcome, "not shown")]
    shares += [""] * (bars - len(shares)) + [f"{100 * shown['no_stable_hit']:.0f} %"]
    return [label(cell), f"{cell['queries']:,}", str(cell["k"]), *shares, *quantiles, f"{cell['own_width']:.0f}", *heavy]


def _ends(cells: Sequence[Cell]) -> list[int]:
    """The widest of each bar. An encoder's last bar ends at its width, and it has none beyond."""
    ends = [[min(bound, cell["encoder_width"]) for bound in _shown(cell)["bounds"]] for cell in cells]
    return [max(own[place] for own in ends if place < len(own)) for place in range(max(map(len, ends)))]


def _names(bounds: Sequence[int]) -> list[str]:
    """What the bars are called, the last one included."""
    between = [f"{low + 1}–{high}" for low, high in pairwise(bounds)]
    return [f"≤ {bounds[0]}", *between, "no stable hit"]


def _shown(cell: Cell) -> Cell:
    """The bars at the depth that is drawn."""
    found: Cell = next(bars for bars in cell["bars"] if bars["k"] == cell["k"])
    return found


def _widths(cell: Cell) -> F64:
    """Of every query at the depth that is drawn."""
    place = [bars["k"] for bars in cell["bars"]].index(cell["k"])
    return np.asarray(cell["required"][place], np.float64)


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claims: widths differ much among queries, and their tail is heavy. Both among the queries that have a stable hit."""
    apart = [verdicts.spread(_widths(cell), APART) for cell in cells]
    heavy = [verdicts.heavy(_widths(cell), cell["encoder_width"]) for cell in cells]
    data = (
        f"{len(cells)} pairs, {sum(cell['queries'] for cell in cells):,} queries" if len(cells) > 1 else f"{cells[0]['queries']:,} queries"
    )
    ratios = "; ".join(
        f"{label(cell)} {ratio:.1f} ({low:.1f} to {high:.1f})" for cell, (_, (ratio, low, high)) in zip(cells, apart, strict=True)
    )
    tails = "; ".join(f"{label(cell)} z {z:+.1f}" for cell, (_, z) in zip(cells, heavy, strict=True))
    claims = [
        Claim(
            f"Some queries need much wider prefixes: the .9 quantile is at least {APART:g} times the median", "figure 1", ratios, data,
            verdicts.together([outcome for outcome, _ in apart]),
        ),
        Claim("Required widths have a heavy tail", "heavy-tailed", tails, data, verdicts.together([outcome for outcome, _ in heavy])),
    ]  # fmt: skip
    missed = [_shown(cell)["no_stable_hit"] for cell in cells]
    saved = [cell["own_width"] / cell["one_width"] for cell in cells]
    return verdicts.judged(
        claims,
        f"Queries with a width of their own would read {_span(saved)} of what the one width for 90 % reads; that is an oracle's figure, "
        "which knows the labels.",
        f"No width gives a stable hit to {_span(missed)} of the queries: there the encoder is at fault, not the width.",
    )


def _span(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A bar per cell, cut by width; grey is what no width finds."""
    figure.set_size_inches(8.6, 1.5 + 0.55 * len(cells))
    axes = figure.add_subplot()
    bounds = _ends(cells)
    starts, rows = np.zeros(len(cells)), np.arange(len(cells))
    for place, name in enumerate(_names(bounds)):
        last = place == len(bounds)
        shares = np.array([_share(_shown(cell), None if last else place) for cell in cells])
        along = place / max(len(bounds) - 1, 1)
        colour = NONE if last else tuple(SHORT + (WIDE - SHORT) * along)
        axes.barh(rows, shares, left=starts, color=colour, label=name, height=0.68, edgecolor="white", linewidth=1)
        for row, share in enumerate(shares.tolist()):
            if share >= 0.05:
                ink = "white" if along > 0.45 and not last else INK
                axes.text(starts[row] + share / 2, row, f"{100 * share:.0f}", ha="center", va="center", color=ink, fontsize=9.5)
        starts += shares
    dress(axes, f"width from which a relevant document stays in the top {' or '.join(str(k) for k in sorted({c['k'] for c in cells}))}")
    axes.grid(visible=False)
    axes.set_yticks(rows, [label(cell) for cell in cells])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks(np.linspace(0, 1, 6), [f"{share} %" for share in range(0, 101, 20)])
    axes.set_xlabel("queries", color=INK)
    figure.legend(
        loc="outside lower center",
        ncols=len(bounds) + 1 if len(bounds) < 8 else 5,
        frameon=False,
        labelcolor=INK,
        handlelength=1.0,
        columnspacing=1.2,
    )


def _share(bars: Cell, place: int | None) -> float:
    if place is None:
        return float(bars["no_stable_hit"])
    return float(bars["shares"][place]) if place < len(bars["shares"]) else 0.0


DIFFERS = (
    "The paper's figure 1 says no more than that a bar groups queries by the smallest width at which their ranking is stable; here "
    "that is the width from which the easiest relevant document stays in the top k, and an encoder's last bar ends at its own width."
)
STABLE_WIDTHS = Experiment("Stable widths of the queries", parts, table, judge, draw, differs=DIFFERS)
