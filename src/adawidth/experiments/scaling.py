"""The paper's figure of q90 scaling: the .9 quantile of the required width over corpus size N and depth k, and the law through it.

The median is measured beside it: where more than a tenth of the relevant documents is outside the top k even at full width,
the .9 quantile is undefined, and on these cells the paper's law can't be tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from ..data import Dataset
from ..sufficiency import WidthLaw
from ..sufficiency.figure import DEEP, INK, MUTED, SHALLOW
from ..types import F64
from .base import Cell, Experiment, Part, Settings, Verdict, check_width, dress, label

QUANTILES = (0.9, 0.5)  # the paper's, and the median beside it
LOWEST = 0.1  # that must be finite for a cell to be measured at all
GOOD = 0.9  # the paper's bar for the mean-point R²
ENOUGH = 8  # finite quantiles that make the R² of three coefficients tell something
COLUMNS = 3  # panels in a row


def parts(settings: Settings) -> list[Part]:
    """One."""
    return [Part("scaling", subsampled(settings), lambda data: measure(data, settings))]


def subsampled(settings: Settings) -> dict[str, Any]:
    """The settings of required widths."""
    fingerprint = None if settings.rotation is None else settings.rotation.fingerprint
    return {"smallest": settings.smallest, "queries": settings.queries, "seed": settings.seed, "fingerprint": fingerprint}


def required_widths(data: Dataset, settings: Settings) -> WidthLaw:
    """As measured with these settings."""
    check_width(settings.rotation, data)
    return WidthLaw.fit(data, settings.rotation, quantile=LOWEST, smallest=settings.smallest, queries=settings.queries, seed=settings.seed)


def measure(data: Dataset, settings: Settings) -> dict[str, Any]:
    """The quantiles over every size and depth with the law through them, null where too few are finite."""
    measured = required_widths(data, settings)
    required = measured.required
    return {
        **measured.facts,
        "sizes": required.sizes.tolist(),
        "depths": required.depths.tolist(),
        "censored": required.censored().tolist(),
        "quantiles": [_at(replace(measured, quantile=quantile)) for quantile in QUANTILES],
    }


def _at(law: WidthLaw) -> dict[str, Any]:
    known = np.where(law.defined, law.cells, np.nan)
    found: dict[str, Any] = {
        "quantile": law.quantile,
        "defined": int(law.defined.sum()),
        "widths": _or_null(known.mean(axis=0)),  # sizes, depths
        "sd": _or_null(known.std(axis=0, ddof=1)),  # over the subsamples
        "law": None,
    }
    if law.fits_anything:
        a, b, c = law.coefficients
        errors = {form: tested[0].rmse for form in law.fits if (tested := law.extrapolations(form))}
        found["law"] = {
            **{"a": a, "b": b, "c": c, "r2_mean_point": law.r2_mean_point},
            "missed": law.extrapolations()[0].relative if errors else None,  # the largest corpus, as a share of its widths
            "best_form": min(errors, key=lambda form: errors[form]) if errors else None,  # there
            "away_from_floor": law.away_from_floor(),
        }
    return found


def _or_null(values: F64) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in values.tolist()]


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """One row a cell and quantile."""
    header = ["cell", "quantile", "finite", "a", "b", "c", "mean-point R²", "largest corpus missed by", "best form there"]
    return header, [[label(cell), *_row(cell, at)] for cell in cells for at in cell["quantiles"]]


def _row(cell: Cell, at: Cell) -> list[str]:
    law, of = at["law"], len(cell["sizes"]) * len(cell["depths"])
    row = [f"{at['quantile']:g}", f"{at['defined']} of {of}"]
    if law is None:
        return [*row, *["–"] * 6]
    missed = "–" if law["missed"] is None else f"{100 * law['missed']:.0f} %"
    figures = [f"{law[name]:.1f}" for name in "abc"]
    return [*row, *figures, f"{law['r2_mean_point']:.3f}", missed, law["best_form"] or "–"]


def judge(cells: Sequence[Cell]) -> Verdict:
    """The claim holds where the paper's own bar is passed in every cell; few finite quantiles pass none."""
    told = [law for cell in cells if (law := _telling(cell["quantiles"][0])) is not None]
    r2 = sorted(law["r2_mean_point"] for law in told)
    good = sum(value > GOOD for value in r2)
    holds = good == len(cells)
    words = [
        "**The claim holds.**" if holds else "**The claim does not hold.**" if not good else "**The claim holds in part.**",
        "The paper says that the .9 quantile of the required width is a + b ln N + c ln k, calls a mean-point R² above .90 a good fit, "
        f"and finds .905 to .973 on six tasks. Here it is above .90 in {good} of {_count(len(cells))}{_span(r2)}.",
    ]
    if len(told) < len(cells):
        words.append(
            f"{len(cells) - len(told)} of {_count(len(cells))} can't tell, with fewer than {ENOUGH} finite quantiles: for most N and k "
            "more than a tenth of the relevant documents is outside the top k at full width, and no width is enough."
        )
    tested = [law for law in told if law["missed"] is not None]
    if tested:
        wins = sum(law["best_form"] == "logarithm" for law in tested)
        words.append(
            f"A harder test: fitted without the largest corpus, the law misses it by {100 * median(law['missed'] for law in tested):.0f} % "
            f"of its widths{' (median)' if len(tested) > 1 else ''}, and of five forms the logarithm is the best there in {wins} of "
            f"{_count(len(tested))}."
        )
    words.append("That b is above 0 and c below it is no evidence: in nested corpora it can't be otherwise.")
    return Verdict(holds, " ".join(words))


def _telling(at: Cell) -> Cell | None:
    """The law, where it was fitted to enough."""
    law: Cell | None = at["law"] if at["defined"] >= ENOUGH else None
    return law


def _span(r2: Sequence[float]) -> str:
    if not r2:
        return ""
    return f" ({r2[0]:.3f})" if len(r2) == 1 else f" ({r2[0]:.3f} to {r2[-1]:.3f})"


def _count(cells: int) -> str:
    return f"{cells} cell" if cells == 1 else f"{cells} cells"


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel a cell: measured quantiles with their spread over subsamples, one colour a depth, and the law's lines."""
    columns = 2 if len(cells) == 4 else min(COLUMNS, len(cells))
    rows = -(-len(cells) // columns)
    figure.set_size_inches(1.6 + 4.4 * columns, 0.6 + 3.4 * rows)
    depths = sorted({k for cell in cells for k in cell["depths"]})
    colours = {k: tuple(SHALLOW + (DEEP - SHALLOW) * place / max(len(depths) - 1, 1)) for place, k in enumerate(depths)}
    handles: dict[str, Any] = {}
    for place, cell in enumerate(cells):
        axes = figure.add_subplot(rows, columns, place + 1)
        _panel(axes, cell, colours)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.supxlabel("documents", color=INK, fontsize=10.5)
    figure.supylabel("required width, .9 quantile", color=INK, fontsize=10.5)
    ordered = [handles[name] for k in depths if (name := f"k = {k}") in handles]
    if ordered:
        figure.legend(handles=ordered, loc="outside right center", frameon=False, labelcolor=INK, handletextpad=0.2)


def _panel(axes: Any, cell: Cell, colours: dict[int, Any]) -> None:
    at, sizes = cell["quantiles"][0], np.array(cell["sizes"], np.float64)
    widths, spread = np.array(at["widths"], np.float64), np.array(at["sd"], np.float64)
    law = _telling(at)
    for place, k in enumerate(cell["depths"]):
        known = np.isfinite(widths[:, place])
        if not known.any():
            continue
        axes.errorbar(
            sizes[known], widths[known, place], yerr=spread[known, place], fmt="o", color=colours[k], markersize=5, elinewidth=1.1,
            zorder=3, label=f"k = {k}",
        )  # fmt: skip
        if law is not None:
            x = np.geomspace(sizes[0], sizes[-1], 100)
            y = law["a"] + law["b"] * np.log(x) + law["c"] * np.log(k)
            axes.plot(x, np.where(y <= cell["encoder_width"], y, np.nan), color=colours[k], linewidth=1.6, zorder=2)
    axes.axhline(cell["encoder_width"], color=MUTED, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
    axes.text(
        0.01, cell["encoder_width"], f"encoder width {cell['encoder_width']}", transform=axes.get_yaxis_transform(), va="bottom",
        color=MUTED, fontsize=9.5,
    )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.15 * cell["encoder_width"])
    dress(axes, f"{label(cell)}: " + ("too few finite quantiles" if law is None else f"R² {law['r2_mean_point']:.2f}"))


SCALING = Experiment("Required width over corpus size and depth", parts, table, judge, draw)
