"""The paper's figures of quality against mean retained coordinates: every method, every dataset and encoder, all documents ranked.

`vqa` is the same for collections of images and questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..baselines import REGISTRY
from ..colours import DASHES, LINE, SERIES, style_of
from ..errors import OptionError
from ..sufficiency.figure import INK, MUTED, dress
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, interval, log_widths, refuse_rotation
from .margins import CLOSE, across, losses, margin, ratios, saved, strongest
from .methods import Measured, method_parts

OURS = ("adawidth", "adawidth:unlabelled", "adawidth-query", "adawidth-query:labelled")
PAPER = "paper"
COMPARED = ("matryoshka-adaptor", "smec", "learning-to-select")  # by the paper
DRAWN = (*OURS, PAPER, "dense", *COMPARED, "pca", "truncation")  # in colour; all others are grey
COLUMNS = 3  # of panels, where pairs make no grid


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
        "unseen": _unseen(Measured(cells, unseen=True), ours, rivals),
        "ratios": [{"method": method, "against": rival, "anchors": ratios(found, method, rival)} for method in ours for rival in rivals],
    }
    mine = [method for method in OURS if method in found.methods]
    if mine and rivals:
        rival = strongest(found, rivals, found.widths())
        summary["strongest"] = {"method": rival, "saved": {method: saved(found, method, rival) for method in mine}}
        summary["losses"] = losses(found, mine, rivals)
    return summary


def _unseen(found: Measured, ours: Sequence[str], rivals: Sequence[str]) -> dict[str, Any]:
    """Means and margins on the queries whose documents no label named."""
    if not found.pairs:
        return {}
    return {
        "pairs": [" ".join(pair) for pair in found.pairs],
        "means": {method: {str(m): round(found.overall(method, m), 4) for m in found.widths()} for method in found.methods},
        "margins": [margin(found, method, rival) for method in ours for rival in rivals],
    }


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


RATIOS = {"matryoshka-adaptor": {32: 2.36, 48: 3.04}, "learning-to-select": {32: 4.96, 48: 6.23}}  # of the paper
MARGINS = {"matryoshka-adaptor": "+.059", "smec": "+.099", "learning-to-select": "+.158"}


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claims: its method is ahead of the three it compares with, and far narrower at equal quality."""
    found, unseen = Measured(cells), Measured(cells, unseen=True)
    if PAPER not in found.methods or not all(method in found.methods for method in COMPARED) or not unseen.pairs:
        return Verdict(False, f"**Not tested.** The claim is about `{PAPER}` against {', '.join(COMPARED)}: measure them too.")
    return verdicts.judged(claims(found, unseen), *_ours(unseen))


def claims(found: Measured, unseen: Measured) -> list[Claim]:
    """Each on queries whose documents no label named; margins over all queries stand beside them."""
    data, rows = unseen.described, []
    outcome, entries = verdicts.ahead(unseen, PAPER, COMPARED)
    every = {method: margin(found, PAPER, method)["mean"] for method in COMPARED}
    here = "; ".join(f"{entry['against']} {interval(entry)}, all queries {every[entry['against']]:+.4f}" for entry in entries)
    rows.append(Claim("Ahead on average of the three methods it compares with", ", ".join(MARGINS.values()), here, data, outcome))
    counts = "; ".join(f"{e['against']} {e['ahead_below_full_width']} of {e['of_below_full_width']}" for e in entries)
    says = "Ahead at nearly every shared operating point (below full width, where a rotation is the frozen encoder)"
    rows.append(Claim(says, "nearly every", counts, data, verdicts.nearly_everywhere(entries)))
    for method, said in RATIOS.items():
        for entry in (entry for entry in ratios(unseen, PAPER, method) if entry["width"] in said):
            says = f"{method} reads {said[entry['width']]} times the width to match at {entry['width']}"
            outcome = verdicts.ratio(entry, said[entry["width"]])
            rows.append(Claim(says, f"{said[entry['width']]} ×", _bounds(entry), data, outcome))
    spared = {method: saved(unseen, PAPER, method) for method in COMPARED}
    here = "; ".join(f"{method} {_share(entry)}" for method, entry in spared.items())
    outcome = verdicts.together([verdicts.above(entry["low"], entry["high"], 0.55) for entry in spared.values()])
    rows.append(Claim("55 to 84 % fewer coordinates at equal nDCG@10", "55 to 84 %", here, data, outcome))
    rows += [*_truncation(unseen, data), *_wide(unseen, data), *_by_encoder(unseen, data)]
    return rows


def _truncation(found: Measured, data: str) -> list[Claim]:
    if "truncation" not in found.methods:
        return []
    entries = [margin(found, method, "truncation") for method in (PAPER, *COMPARED)]
    outcome = verdicts.together([verdicts.above(entry["low"], entry["high"]) for entry in entries])
    here = "; ".join(f"{entry['method']} {interval(entry)}" for entry in entries)
    return [Claim("Truncation is below every learned method", "at every width", here, data, outcome)]


def _wide(found: Measured, data: str) -> list[Claim]:
    """The narrow prefix of the paper's rotation against the rivals at 256."""
    rows = []
    for ours, rivals in ((64, COMPARED[:1]), (96, COMPARED)):
        if ours in found.widths() and 256 in found.widths():
            entries = [across(found, (PAPER, ours), (rival, 256)) for rival in rivals]
            here = "; ".join(f"{rival} {interval(entry)}" for rival, entry in zip(rivals, entries, strict=True))
            outcome = verdicts.together([verdicts.above(entry["low"], entry["high"]) for entry in entries])
            rows.append(
                Claim(f"At {ours} above {' and '.join(rivals)} at 256", ".534 against .510" if ours == 64 else "yes", here, data, outcome)
            )
    return rows


def _by_encoder(found: Measured, data: str) -> list[Claim]:
    """Whether the gain hangs on Matryoshka training of the encoder."""
    parts = {encoder: found.only(encoder) for encoder in dict.fromkeys(encoder for _, encoder in found.pairs)}
    entries = {encoder: margin(part, PAPER, COMPARED[0]) for encoder, part in parts.items()}
    outcome = verdicts.together([verdicts.above(entry["low"], entry["high"]) for entry in entries.values()])
    here = "; ".join(f"{encoder} {interval(entry)}" for encoder, entry in entries.items())
    return [Claim("The gain does not hang on Matryoshka training of the encoder", "+.046 to +.072 by encoder", here, data, outcome)]


def _bounds(entry: Cell) -> str:
    low, high = ("–" if value is None else f"{value:.2f} ×" for value in (entry["at_least"], entry["at_most"]))
    ends = ", ".join("open" if value is None else f"{value:.2f}" for value in (entry["low"], entry["high"]))
    never = f"; never in {len(entry['never'])} of {entry['pairs']}" if entry["never"] else ""
    return f"at least {low}, at most {high} (95 %: {ends}){never}"


def _share(entry: Cell) -> str:
    ends = f"{100 * entry['low']:.0f} to {100 * entry['high']:.0f}"
    return f"{100 * entry['mean']:.0f} % ({ends}; never there, so charged in full, at {entry['never']} of {entry['of']})"


def _ours(found: Measured) -> list[str]:
    """AdaWidth as a user gets it, against the strongest rival."""
    mine = [method for method in OURS if method in found.methods]
    rivals = found.rivals((*OURS, PAPER))
    if not mine or not rivals:
        return []
    rival = strongest(found, rivals, found.widths())
    words = [f"The strongest other method is {rival}."]
    for method in mine:
        share = _share(saved(found, method, rival))
        words.append(
            f"Against it `{method}` is {interval(margin(found, method, rival))} and reads fewer coordinates at its nDCG@10: {share}."
        )
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
    rows, columns = _arranged(found.pairs)
    figure.set_size_inches(2.2 + 4.2 * columns, 0.8 + 3.6 * rows)
    handles: dict[str, Any] = {}
    for place, pair in enumerate(sorted(found.pairs, key=lambda pair: _place(pair, found.pairs))):
        handles |= _panel(figure.add_subplot(rows, columns, place + 1), found, pair)
    figure.supxlabel("mean width (coordinates read per candidate)", color=INK, fontsize=10.5)
    figure.supylabel("nDCG@10", color=INK, fontsize=10.5)
    ordered = [name for name in (*DRAWN, "other methods", "oracles") if name in handles]
    figure.legend([handles[name] for name in ordered], ordered, loc="outside right center", frameon=False, labelcolor=INK)


def _arranged(pairs: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Rows and columns of panels: encoders by datasets where every pair is there, else some in a row."""
    datasets, encoders = ({pair[i] for pair in pairs} for i in range(2))
    if len(pairs) == len(datasets) * len(encoders):
        return len(encoders), len(datasets)
    columns = min(len(pairs), COLUMNS)
    return -(-len(pairs) // columns), columns


def _place(pair: tuple[str, str], pairs: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Orders panels by encoder, then dataset, each as they are met first."""
    return [encoder for _, encoder in pairs].index(pair[1]), [dataset for dataset, _ in pairs].index(pair[0])


def _panel(axes: Any, found: Measured, pair: tuple[str, str]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for method in sorted(found.methods, key=lambda name: name in DRAWN):
        given, means = found.curve(pair, method)
        widths = [found.spent(pair, method, m) for m in given]
        style, oracle = style_of(method) if method in DRAWN else None, method.endswith(":oracle")
        colour = LINE if style is None else SERIES[style.colour][0]
        (line,) = axes.plot(
            widths, means, color=colour, linewidth=2.4 if method in OURS else 1.6 if style else 0.9, alpha=1 if style else 0.55,
            linestyle=DASHES[style.dashes] if style else (0, (1, 2)) if oracle else "-",
            zorder=4 if method in OURS else 3 if style else 2, solid_capstyle="round",
        )  # fmt: skip
        if style:
            spreads = [found.spread(pair, method, m) for m in given]
            low, high = ([mean + sign * spread for mean, spread in zip(means, spreads, strict=True)] for sign in (-1, 1))
            axes.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
        handles[method if style else "oracles" if oracle else "other methods"] = line
    frozen = found.of_pair(pair, "frozen")
    axes.axhline(frozen, color=MUTED, linewidth=1.1, linestyle=(0, (5, 3)), zorder=1)
    axes.text(1, frozen, "frozen, full width ", transform=axes.get_yaxis_transform(), ha="right", va="bottom", color=MUTED, fontsize=9)
    log_widths(axes, [m for m in found.curve(pair, found.methods[0])[0] if m not in (48, 96, 192)])
    dress(axes, f"{pair[0]}, {pair[1]}")
    return handles


DIFFERS = (
    "As in the paper's figures 4 and 5, a point stands at the mean width that was read, not at the one allowed. Unlike there, every "
    "document is ranked unless the protocol says otherwise, and int8 and pq4 stand at their size in four-byte numbers."
)
CURVES = Experiment("Quality against mean width", parts, table, judge, draw, summarise, DIFFERS)
VQA = Experiment("Quality against mean width, images and questions", parts, table, judge, draw, summarise, DIFFERS)
