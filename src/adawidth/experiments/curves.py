"""The paper's figures of quality against mean retained coordinates: every method, every dataset and encoder, all documents ranked.

`vqa` is the same for collections of images and questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..baselines import REGISTRY
from ..errors import OptionError
from ..sufficiency.figure import INK, MUTED
from .base import Cell, Experiment, Part, Settings, Verdict, dress, interval, log_widths, refuse_rotation, verdict
from .margins import CLOSE, losses, margin, ratios, saved, strongest
from .methods import Measured, method_parts

OURS = ("adawidth", "adawidth-query", "adawidth-query:labelled")
PAPER = "paper"
COMPARED = ("matryoshka-adaptor", "smec", "learning-to-select")  # by the paper
DRAWN = {  # in colour; all others are grey
    "adawidth": "#d9480f",
    "adawidth-query": "#8a4fbf",
    "adawidth-query:labelled": "#1f2937",
    "paper": "#2f9e8f",
    "dense": "#3b6fd4",
    "matryoshka-adaptor": "#b58900",
    "smec": "#c2255c",
    "learning-to-select": "#5c7c3a",
    "pca": "#4a5568",
    "truncation": "#98a2b3",
}


def parts(settings: Settings) -> list[Part]:
    """Every method with every seed."""
    refuse_rotation(settings)
    methods = settings.methods or tuple(REGISTRY)
    unknown = [method for method in methods if method not in REGISTRY]
    if unknown:
        raise OptionError(f"there is no method {unknown[0]!r}; there are {', '.join(REGISTRY)}")
    return method_parts(methods, settings)


def summarise(cells: Sequence[Cell]) -> dict[str, Any]:
    """Means over all pairs, margins over every rival, widths to match, and where a rival wins."""
    found = Measured(cells)
    rivals, ours = found.rivals((*OURS, PAPER)), [method for method in (*OURS, PAPER) if method in found.methods]
    summary: dict[str, Any] = {
        "pairs": [" ".join(pair) for pair in found.pairs],
        "means": {method: {str(m): round(found.overall(method, m), 4) for m in found.widths()} for method in found.methods},
        "margins": [margin(found, method, rival) for method in ours for rival in rivals],
        "ratios": [{"method": method, "against": rival, "anchors": ratios(found, method, rival)} for method in ours for rival in rivals],
    }
    mine = [method for method in OURS if method in found.methods]
    if mine and rivals:
        rival = strongest(found, rivals, found.widths())
        summary["strongest"] = {"method": rival, "saved": {method: saved(found, method, rival) for method in mine}}
        summary["losses"] = losses(found, mine, rivals)
    return summary


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Methods down, widths across, mean over all pairs; beside it parameters, stored floats at 64 and seconds to fit."""
    found = Measured(cells)
    widths = found.widths()
    ordered = sorted(found.methods, key=lambda method: -sum(found.overall(method, m) for m in widths))
    rows = [[method, *(f"{found.overall(method, m):.3f}" for m in widths), *_facts(found, method)] for method in ordered]
    return ["method", *map(str, widths), "parameters", "floats stored at 64", "seconds to fit"], rows


def _facts(found: Measured, method: str) -> list[str]:
    cells = [cell for cell in found.cells if cell["method"] == method]
    stored = [point["stored_floats_per_document"] for cell in cells for point in cell["points"] if point["width"] == 64]
    shown = "–" if not stored else f"{min(stored):g}" if min(stored) == max(stored) else f"{min(stored):g}–{max(stored):g}"
    return [f"{max(cell['parameters'] for cell in cells):,}", shown, f"{sum(cell['fit_seconds'] for cell in cells) / len(cells):.0f}"]


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claim: its method is ahead of the three it compares with, on average, and far narrower at equal quality."""
    found = Measured(cells)
    compared = [method for method in COMPARED if method in found.methods]
    if PAPER not in found.methods or not compared:
        return Verdict(False, f"**Not tested.** The claim is about `{PAPER}` against {', '.join(COMPARED)}: measure them too.")
    margins = [margin(found, PAPER, method) for method in compared]
    ahead = [entry for entry in margins if entry["low"] > 0]
    return verdict(
        len(ahead) == len(COMPARED),
        bool(ahead),
        "The paper says that its rotation and router are ahead of Matryoshka-Adaptor, SMEC and Learning-to-Select at every width. "
        f"Here the paper's own configuration is, over {len(found.pairs)} dataset-encoder pairs "
        f"and widths {found.widths()[0]} to {found.widths()[-1]},",
        "; ".join(f"{interval(entry)} nDCG@10 against {entry['against']} (ahead at {entry['ahead']} of {entry['of']})" for entry in margins)
        + ".",
        *_ours(found),
    )


def _ours(found: Measured) -> list[str]:
    """AdaWidth as a user gets it, against the strongest rival."""
    mine = [method for method in OURS if method in found.methods]
    rivals = found.rivals((*OURS, PAPER))
    if not mine or not rivals:
        return []
    rival = strongest(found, rivals, found.widths())
    words = [f"The strongest other method is {rival}."]
    for method in mine:
        share = saved(found, method, rival)
        also = "" if share is None else f", and reads {100 * share:.0f} % fewer coordinates at its nDCG@10"
        words.append(f"Against it `{method}` is {interval(margin(found, method, rival))}{also}.")
    lost = losses(found, mine, rivals)
    if lost:
        names = dict.fromkeys(f"{entry['method']} ({entry['dataset']}, {entry['encoder']})" for entry in lost)
        words.append(f"The best of ours is behind by more than {CLOSE:g} at {len(lost)} operating points: {', '.join(names)}.")
    else:
        words.append(f"The best of ours is nowhere behind any other method by more than {CLOSE:g}.")
    return words


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel per pair; the methods the paper names, ours and the strongest ones in colour, the others grey."""
    found = Measured(cells)
    encoders = list(dict.fromkeys(encoder for _, encoder in found.pairs))
    datasets = list(dict.fromkeys(dataset for dataset, _ in found.pairs))
    figure.set_size_inches(2.2 + 4.2 * len(datasets), 0.8 + 3.6 * len(encoders))
    handles: dict[str, Any] = {}
    for row, encoder in enumerate(encoders):
        for column, dataset in enumerate(datasets):
            if (dataset, encoder) in found.pairs:
                axes = figure.add_subplot(len(encoders), len(datasets), row * len(datasets) + column + 1)
                handles |= _panel(axes, found, (dataset, encoder))
    figure.supxlabel("mean width (coordinates read per candidate)", color=INK, fontsize=10.5)
    figure.supylabel("nDCG@10", color=INK, fontsize=10.5)
    ordered = [name for name in (*DRAWN, "other methods", "oracles") if name in handles]
    figure.legend([handles[name] for name in ordered], ordered, loc="outside right center", frameon=False, labelcolor=INK)


def _panel(axes: Any, found: Measured, pair: tuple[str, str]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for method in sorted(found.methods, key=lambda name: name in DRAWN):
        widths, means = found.curve(pair, method)
        colour, oracle = DRAWN.get(method), method.endswith(":oracle")
        (line,) = axes.plot(
            widths, means, color=colour or "#c9ced6", linewidth=2.4 if method in OURS else 1.6 if colour else 0.9,
            linestyle=(0, (1, 2)) if oracle else "-", zorder=4 if method in OURS else 3 if colour else 2, solid_capstyle="round",
        )  # fmt: skip
        if colour:
            spreads = [found.spread(pair, method, m) for m in widths]
            low, high = ([mean + sign * spread for mean, spread in zip(means, spreads, strict=True)] for sign in (-1, 1))
            axes.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
        handles[method if colour else "oracles" if oracle else "other methods"] = line
    frozen = found.of_pair(pair, "frozen")
    axes.axhline(frozen, color=MUTED, linewidth=1.1, linestyle=(0, (5, 3)), zorder=1)
    axes.text(1, frozen, "frozen, full width ", transform=axes.get_yaxis_transform(), ha="right", va="bottom", color=MUTED, fontsize=9)
    log_widths(axes, [m for m in found.curve(pair, found.methods[0])[0] if m not in (48, 96, 192)])
    dress(axes, f"{pair[0]}, {pair[1]}")
    return handles


CURVES = Experiment("Quality against mean width", parts, table, judge, draw, summarise)
VQA = Experiment("Quality against mean width, images and questions", parts, table, judge, draw, summarise)
