"""The pictures of a report: quality against width or cost, as SVG that takes its colours from the page, so it follows light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from ..errors import OptionalDependencyError
from ..evaluation.curves import WIDTH, Chart

# Drawn in these stand-ins, which become CSS variables in the file.
_VARIABLES = {"#010101": "--ink", "#020202": "--muted", "#030303": "--grid", "#040404": "--line"}
_SERIES = 9
_COLOURS = {f"#0{i + 5:x}0a0a": f"--series-{i}" for i in range(_SERIES)}
_INK, _MUTED, _GRID, _LINE = _VARIABLES
_OURS = "adawidth"
_ALWAYS = (_OURS, "adawidth-query", "truncation", "paper")  # in colour, however many methods there are


def series(chart: Chart) -> dict[str, int | None]:
    """The colour number of each curve: 0 is our own, the others follow in order. Where there are more than colours, the best have one."""
    ranked = sorted(chart.curves, key=lambda curve: (curve.name not in _ALWAYS, -sum(curve.means) / len(curve.means)))
    others = [curve.name for curve in ranked if curve.name != _OURS][: _SERIES - 1]
    number = count(1)
    coloured = {_OURS: 0} | {curve.name: next(number) for curve in chart.curves if curve.name in others}
    return {curve.name: coloured.get(curve.name) for curve in chart.curves}


def draw(chart: Chart, *, narrow: bool = False, colours: Mapping[str, int | None] | None = None) -> str:
    """One <svg> element; `narrow` is made for a phone, `colours` are another chart's `series`."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionalDependencyError("matplotlib", "report") from None
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "adawidth",
        "font.family": "sans-serif",
        "font.size": 10.5,
        "text.parse_math": False,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(4.1, 4.3) if narrow else (8.2, 4.3), layout="constrained")
        axes = figure.add_subplot()
        _plot(axes, chart, series(chart) if colours is None else colours)
        _dress(axes, chart, narrow)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(file.getvalue(), chart)


def _plot(axes: Any, chart: Chart, numbers: Mapping[str, int | None]) -> None:
    colours = list(_COLOURS)
    for curve in sorted(chart.curves, key=lambda curve: numbers[curve.name] is not None):
        number = numbers[curve.name]
        if number is None:
            axes.plot(curve.widths, curve.means, color=_LINE, linewidth=0.9, alpha=0.55, zorder=2)
            continue
        ours = number == 0
        means, sds = np.array(curve.means), np.array(curve.sds)
        if sds.any():
            axes.fill_between(curve.widths, means - sds, means + sds, color=colours[number], alpha=0.18, linewidth=0)
        axes.plot(
            curve.widths, means, color=colours[number], linewidth=2.6 if ours else 1.6, marker="o", markersize=5.5 if ours else 3.6,
            zorder=4 if ours else 3, solid_capstyle="round", solid_joinstyle="round",
        )  # fmt: skip
    for spot in chart.spots:
        axes.plot(
            [spot.mean_width], [spot.mean], marker="D", markersize=9, color=colours[0], markeredgecolor=_INK, markeredgewidth=1.2, zorder=6
        )
        axes.annotate(
            f"{spot.name}: {spot.mean:.3f} at {spot.mean_width:.0f}", (spot.mean_width, spot.mean), xytext=(11, -1), va="center",
            textcoords="offset points", color=_INK, fontsize=10.5, zorder=7,
        )  # fmt: skip
    if chart.frozen is not None:
        axes.axhline(chart.frozen, color=_LINE, linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)


def _dress(axes: Any, chart: Chart, narrow: bool) -> None:
    along_width = chart.axis == WIDTH
    ends: set[float] = {chart.encoder_width} if chart.frozen is not None and along_width else set()
    widths = sorted({m for curve in chart.curves for m in curve.widths} | ends)
    axes.set_xscale("log", base=2 if along_width else 10)
    if along_width:
        axes.set_xticks(_readable(widths, 5 if narrow else 9))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    else:
        axes.xaxis.set_major_formatter(lambda value, _: _short(value))
        axes.xaxis.set_minor_formatter(lambda value, _: _short(value) if f"{value:e}"[0] in "25" else "")
        axes.tick_params(axis="x", which="minor", colors=_MUTED, labelcolor=_INK, length=3)
    if along_width:
        axes.minorticks_off()
    if widths:
        axes.set_xlim(widths[0] / 1.08, widths[-1] * 1.08)
    axes.margins(y=0.1)
    if chart.frozen is not None:
        axes.text(
            0.99, chart.frozen, f"frozen, all {chart.encoder_width}: {chart.frozen:.3f}", transform=axes.get_yaxis_transform(),
            ha="right", va="bottom", color=_MUTED, fontsize=9.5,
        )  # fmt: skip
    axes.set_xlabel(chart.axis, color=_INK)
    axes.set_ylabel(chart.measure, color=_INK)
    axes.grid(axis="y", color=_GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_MUTED)
    axes.tick_params(colors=_MUTED, length=0, labelcolor=_INK)
    axes.tick_params(axis="x", length=4)


def _short(value: float) -> str:
    """2 000 as 2 k, 3 000 000 as 3 M."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _readable(widths: list[float], most: int) -> list[float]:
    """At most so many ticks, the first and the last among them, none on top of another."""
    ticks: list[float] = []
    for m in widths:
        if not ticks or m / ticks[-1] >= (1.9 if len(widths) > most else 1.2):
            ticks.append(m)
    if widths and ticks[-1] != widths[-1]:
        ticks[-1] = widths[-1]
    return ticks


def _inline(svg: str, chart: Chart) -> str:
    """The element alone, sized by the page, named for screen readers, its stand-in colours turned into variables."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img" aria-label="' + f"{chart.measure} against {chart.axis}" + '"', svg, count=1)
    for colour, variable in (_VARIABLES | _COLOURS).items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", svg)
