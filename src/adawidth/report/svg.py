"""The pictures of a report: quality against width or cost, as SVG that takes its colours from the page, so it follows light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..colours import ALWAYS, DASHES, LINE, OURS, PAGE, SERIES, Style, style_of, variables
from ..errors import OptionalDependencyError
from ..evaluation.curves import WIDTH, Chart

MOST = 9  # curves in colour
_INK, _MUTED, _GRID = (PAGE[name][0] for name in ("ink", "muted", "grid"))


def series(chart: Chart) -> dict[str, Style | None]:
    """How each curve is drawn, by its name alone. Where there are many, only the best are in colour, and those always asked about."""
    ranked = sorted(chart.curves, key=lambda curve: (curve.name not in ALWAYS, -sum(curve.means) / len(curve.means)))
    coloured = {curve.name for curve in ranked if style_of(curve.name) is not None}
    if len(coloured) > MOST:
        coloured = {curve.name for curve in ranked if curve.name in coloured and ranked.index(curve) < MOST}
    return {curve.name: style_of(curve.name) if curve.name in coloured else None for curve in chart.curves}


def draw(chart: Chart, *, narrow: bool = False, styles: Mapping[str, Style | None] | None = None) -> str:
    """One <svg> element without words inside the axes; `narrow` is made for a phone, `styles` are another chart's `series`."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionalDependencyError("matplotlib", "report") from None
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "adawidth",
        "font.family": "sans-serif",
        "font.size": 10.5,
        "text.parse_math": False,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(4.1, 4.3) if narrow else (8.2, 4.3), layout="constrained")
        axes = figure.add_subplot()
        _plot(axes, chart, series(chart) if styles is None else styles)
        _dress(axes, chart, narrow)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(file.getvalue(), chart)


def _plot(axes: Any, chart: Chart, styles: Mapping[str, Style | None]) -> None:
    for curve in sorted(chart.curves, key=lambda curve: styles[curve.name] is not None):
        style = styles[curve.name]
        if style is None:
            axes.plot(curve.widths, curve.means, color=LINE, linewidth=0.9, alpha=0.55, zorder=2)
            continue
        colour, ours = SERIES[style.colour][0], curve.name == OURS
        means, sds = np.array(curve.means), np.array(curve.sds)
        if sds.any():
            axes.fill_between(curve.widths, means - sds, means + sds, color=colour, alpha=0.18, linewidth=0)
        axes.plot(
            curve.widths, means, color=colour, linewidth=2.6 if ours else 1.6, linestyle=DASHES[style.dashes], marker="o",
            markersize=5.5 if ours else 3.6, zorder=4 if ours else 3, solid_capstyle="round", solid_joinstyle="round",
        )  # fmt: skip
    for spot in chart.spots:
        axes.plot(
            [spot.mean_width], [spot.mean], marker="D", markersize=9, color=SERIES[0][0], markeredgecolor=_INK, markeredgewidth=1.2,
            zorder=6,
        )  # fmt: skip
    if chart.frozen is not None:
        axes.axhline(chart.frozen, color=LINE, linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)


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
    """The element alone, sized by the page, named for screen readers, its colours turned into the page's variables."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img" aria-label="' + f"{chart.measure} against {chart.axis}" + '"', svg, count=1)
    for variable, (light, _) in variables().items():
        svg = svg.replace(light, f"var({variable})")
    return re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", svg)
