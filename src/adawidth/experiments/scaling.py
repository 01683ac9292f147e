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
from ..sufficiency.figure import DEEP, INK, MUTED, SHALLOW, dress
from ..types import F64
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, check_width, label

QUANTILES = (0.9, 0.5)  # the paper's, and the median beside it
LOWEST = 0.1  # that must be finite for a cell to be measured at all
GOOD = 0.9  # the paper's bar for the mean-point R²
ENOUGH = 8  # finite quantiles that make the R² of three coefficients tell something
COLUMNS = 3  # panels in a row
TICKS = 7  # sizes on an axis from which on every second is named


def parts(settings: Settings) -> list[Part]:
    """One."""
    return [Part("scaling", subsampled(settings), lambda data: measure(data, settings), ("experiments.scaling:measure", "data:held_out"))]


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
        "chains": np.stack([replace(measured, quantile=quantile).cells for quantile in QUANTILES]).astype(np.float32),  # of the quantiles
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
    """One row per cell and quantile."""
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
    """The paper's claim on the frozen .9 quantile, with undefined cells as bounds, and a harder test beside it."""
    outcomes, r2 = [], []
    for cell in cells:
        at, bounded = cell["quantiles"][0], bounded_fit(cell)
        law, share = at["law"], at["defined"] / (len(cell["sizes"]) * len(cell["depths"]))
        r2.append(None if bounded is None else bounded["r2"])
        outcomes.append(verdicts.law(r2[-1], None if law is None else law["missed"], share, GOOD))
    known = sorted(value for value in r2 if value is not None)
    counts = ", ".join(f"{name} in {outcomes.count(name)}" for name in dict.fromkeys(outcomes))
    here = f"{known[0]:.3f} to {known[-1]:.3f} with undefined cells as bounds; by pair: {counts}" if known else "no fit is possible"
    data = f"{_count(len(cells))}, up to {max(cell['documents'] for cell in cells):,} documents"
    claims = [
        Claim("The .9 quantile of the required width is a + b ln N + c ln k", "R² .905 to .973", here, data, verdicts.together(outcomes))
    ]
    words = []
    tested = [law for cell in cells if (law := cell["quantiles"][0]["law"]) is not None and law["missed"] is not None]
    if tested:
        wins = sum(law["best_form"] == "logarithm" for law in tested)
        words.append(
            f"A harder test: fitted without the largest corpus, the law misses it by {100 * median(law['missed'] for law in tested):.0f} % "
            f"of its widths{' (median)' if len(tested) > 1 else ''}, and of five forms the logarithm is the best there in {wins} of "
            f"{_count(len(tested))}."
        )
    words.append(
        "Where more than a tenth of the relevant documents is outside the top k at full width, the .9 quantile is undefined: it is above "
        "the encoder width, and counts as that. That b is above 0 and c below it is no evidence: in nested corpora it can't be otherwise."
    )
    return verdicts.judged(claims, *words)


def bounded_fit(cell: Cell) -> dict[str, float] | None:
    """The law through all cells of the first quantile: an undefined one is known to be above the encoder width, and only a law
    that is below that misses it. In the R² an undefined width counts as the encoder width; None if fewer than four cells are finite."""
    widths = np.array(cell["quantiles"][0]["widths"], np.float64)  # (S, K), NaN where undefined
    known, end = np.isfinite(widths), float(cell["encoder_width"])
    if known.sum() < ENOUGH:
        return None
    n, k = np.meshgrid(np.log(cell["sizes"]), np.log(cell["depths"]), indexing="ij")
    design, wanted = np.stack([np.ones(n.size), n.ravel(), k.ravel()], axis=1), np.where(known, widths, end).ravel()
    counted = np.ones(n.size, np.bool_)
    for _ in range(n.size):
        found = np.linalg.lstsq(design[counted], wanted[counted], rcond=None)[0]
        short = known.ravel() | (design @ found < end)
        if (short == counted).all():
            break
        counted = short
    missed = np.where(known.ravel(), design @ found - wanted, np.minimum(design @ found - end, 0.0))
    total = max(float(np.square(wanted - wanted.mean()).sum()), 1e-12)
    return {**dict(zip("abc", found.tolist(), strict=True)), "r2": 1 - float(np.square(missed).sum()) / total}


def _telling(at: Cell) -> Cell | None:
    """The law, where it was fitted to enough."""
    law: Cell | None = at["law"] if at["defined"] >= ENOUGH else None
    return law


def _count(cells: int) -> str:
    return f"{cells} cell" if cells == 1 else f"{cells} cells"


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel per cell: measured quantiles with their spread over subsamples, one colour per depth, and the law's lines."""
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
    named = sizes[::-1][:: 1 + len(sizes) // TICKS]  # the largest in any case
    axes.set_xticks(named, [f"{size:,.0f}" for size in named])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.15 * cell["encoder_width"])
    dress(axes, f"{label(cell)}: " + ("too few finite quantiles" if law is None else f"R² {law['r2_mean_point']:.2f}"))


DIFFERS = (
    "The paper's figure 3 averages three subsamples of each size; here there are five chains of nested ones. A quantile that no width "
    "reaches has no point."
)
SCALING = Experiment("Required width over corpus size and depth", parts, table, judge, draw, differs=DIFFERS)
