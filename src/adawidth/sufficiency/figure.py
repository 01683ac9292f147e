"""The picture of a width law: required width against corpus size, one line a depth, and where the law is on its own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ..colours import PAGE, SERIES, themed
from ..errors import OptionalDependencyError
from .law import WidthLaw
from .planner import Prediction

PAPER, INK, MUTED, GRID, SHADE = (PAGE[name][0] for name in ("page", "ink", "muted", "grid", "shade"))
DEPTHS = (0, 2, 5, 6, 3, 4, 9, 8)  # colours of the depths, neighbours well apart …
MARKERS = "osD^vP*X"  # … and their markers
SHALLOW, DEEP = np.array([0.85, 0.28, 0.06]), np.array([0.16, 0.33, 0.62])  # colours of the first and the last depth
BEYOND = 4  # times the corpus, drawn where nothing larger was asked for


def draw(law: WidthLaw, asked: Prediction, path: str | Path) -> None:
    """Writes the figure, .svg or .png: measured points, the law through them, dashed and shaded where it is extrapolated, the answer."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionalDependencyError("matplotlib", "report") from None
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "adawidth", "font.family": "sans-serif", "font.size": 10.5}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(8.2, 4.8), layout="constrained", facecolor=PAPER)
        axes = figure.add_subplot(facecolor=PAPER)
        _plot(axes, law, asked)
        _dress(axes, law)
        if Path(path).suffix != ".svg":
            figure.savefig(path, dpi=150)
            return
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        Path(path).write_text(themed(file.getvalue()), encoding="utf-8")


def _plot(axes: Any, law: WidthLaw, asked: Prediction) -> None:
    sizes, depths = law.required.sizes.astype(np.float64), law.required.depths.tolist()
    largest, end = sizes[-1], max(BEYOND * sizes[-1], 1.3 * asked.documents)
    axes.axvspan(largest, end, color=SHADE, linewidth=0, zorder=0)
    axes.set_xlim(sizes[0] / 1.15, end)
    a, b, c = law.coefficients
    for place, k in enumerate(depths):
        colour = SERIES[DEPTHS[place % len(DEPTHS)]][0]
        known = law.defined[:, place]
        widths = law.cells[:, known, place]
        spread = widths.std(axis=0, ddof=1)
        axes.errorbar(
            sizes[known], widths.mean(axis=0), yerr=spread, fmt=MARKERS[place % len(MARKERS)], color=colour, markersize=5.5,
            elinewidth=1.1, zorder=3, label=f"k = {k}",
        )  # fmt: skip
        for x, dashes in ((np.geomspace(sizes[0], largest, 50), "-"), (np.geomspace(largest, end, 50), (0, (4, 3)))):
            y = a + b * np.log(x) + c * np.log(k)
            axes.plot(x, np.where(y >= law.required.widths[0], y, np.nan), color=colour, linewidth=1.6, linestyle=dashes, zorder=2)
    whole = law.required.encoder_width
    axes.axhline(whole, color=MUTED, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1, label=f"encoder width {whole}")
    axes.set_ylim(0, 1.12 * whole)
    if asked.width is not None and asked.interval is not None:
        low, high = asked.interval
        error = [[asked.width - low], [high - asked.width]]
        axes.errorbar(
            [asked.documents], [asked.width], yerr=error, fmt="D", color=INK, markersize=7, elinewidth=1.8, capsize=4, zorder=5,
            label=f"{asked.width} for k = {asked.k}",
        )  # fmt: skip
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=INK, handletextpad=0.5)


def _dress(axes: Any, law: WidthLaw) -> None:
    axes.set_xscale("log")
    axes.text(
        law.required.sizes[-1],
        0.985,
        "  beyond what was measured",
        transform=axes.get_xaxis_transform(),
        va="top",
        color=MUTED,
        fontsize=9.5,
    )
    axes.set_xlabel("documents", color=INK)
    axes.set_ylabel(f"required width, {law.quantile:g} quantile", color=INK)
    facts = law.facts
    dress(axes, f"{facts['dataset']}, {facts['encoder']}, rotation {facts['rotation']}: R² {law.r2_mean_point:.2f}")
    axes.tick_params(axis="x", length=4)


def dress(axes: Any, title: str) -> None:
    """The quiet look: a title to the left, one axis line, grey horizontal lines."""
    axes.set_title(title, loc="left", color=INK, fontsize=11)
    axes.grid(axis="y", color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(MUTED)
    axes.tick_params(colors=MUTED, labelcolor=INK, length=0)
