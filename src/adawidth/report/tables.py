"""The tables of a report, as HTML: quality at each width, on unseen queries, of one model with its costs; bars; example answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ..colours import Style
from ..evaluation.curves import Chart
from .svg import series

UNSEEN = "unseen: none of their relevant documents was relevant to a train or dev query"


def by_width(chart: Chart, title: str, notes: Sequence[str] = ()) -> str:
    """Methods down, widths across, the best of each width in bold."""
    styles = series(chart)
    widths = sorted({m for curve in chart.curves for m in curve.widths})
    best = {m: max(curve.means[curve.widths.index(m)] for curve in chart.curves if m in curve.widths) for m in widths}
    rows = [f'<tr class="size"><th>bytes read of a document</th>{"".join(f"<td>{4 * m:,.0f}</td>" for m in widths)}</tr>']
    for curve in chart.curves:
        cells = {m: (mean, sd) for m, mean, sd in zip(curve.widths, curve.means, curve.sds, strict=True)}
        shown = "".join(_cell(cells.get(m), best[m]) for m in widths)
        rows.append(f"<tr><th>{mark(styles[curve.name])}{escape(curve.name)}</th>{shown}</tr>")
    said = "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    return f"<h2>{escape(title)}</h2>{table(['width', *(f'{m:g}' for m in widths)], rows)}{said}"


def mark(style: Style | None) -> str:
    """A short line as the picture draws it."""
    if style is None:
        return '<i class="other"></i>'
    return f'<i class="dashes-{style.dashes}" style="border-color: var(--series-{style.colour})"></i>'


def budgets(results: Mapping[str, Any]) -> list[str]:
    """What a width means for methods that read by stages, and from which one on a larger one changes nothing."""
    notes = []
    staged = [row for row in results["results"] if "reads_to" in row]
    for method in dict.fromkeys(row["method"] for row in staged):
        most = max(row["reads_to"] for row in staged if row["method"] == method)
        end = ""
        if most < results["encoder_width"]:
            end = f". It reads no candidate beyond {most}, its target width: above that, and at full, the row is the ranking at {most}"
        notes.append(f"{method}: a width is a budget, the mean width that it may spend{end}.")
    return notes


def on_unseen(results: Mapping[str, Any]) -> list[str]:
    """A comparison on unseen queries alone, mean over the seeds."""
    rows = [row for row in results["results"] if "unseen" in row]
    if not rows:
        return []
    count, measure = rows[0]["unseen"]["queries"], results["measure"]
    if not count:
        return ["<p><small>No query is unseen: each has a relevant document that was relevant to a train or dev query.</small></p>"]
    if count == results["queries"]:
        return [f"<p><small>All {count:,} queries are {UNSEEN}.</small></p>"]
    widths = list(dict.fromkeys(str(row["width"]) for row in rows))
    shown = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = []
        for width in widths:
            found = [row["unseen"][measure] for row in rows if row["method"] == method and str(row["width"]) == width]
            cells.append(f"<td>{sum(found) / len(found):.4f}</td>" if found else "<td>–</td>")
        shown.append(f"<tr><th>{escape(method)}</th>{''.join(cells)}</tr>")
    title = f"<h2>{escape(measure)} on {count:,} unseen queries</h2>"
    return [f"{title}{table(['width', *widths], shown)}<p><small>{UNSEEN.capitalize()}.</small></p>"]


def evaluated(evaluation: Mapping[str, Any], title: str) -> str:
    """One model: every measure at every width, on all queries and on unseen ones, and what it costs."""
    entries = evaluation["results"]
    measures = [name for name in entries[0] if "@" in name]
    count = entries[0].get("unseen", {}).get("queries", 0)
    apart = measures if 0 < count < evaluation["queries"] else []  # where all are unseen, the figures are the same
    head = ["width", "mean width", *measures, *(f"{name} unseen" for name in apart), "multiply-adds"]
    rows = []
    for entry in entries:
        name = f"{entry['width']} ({entry['policy']})" if "policy" in entry else str(entry["width"])
        figures = [f"{entry['mean_width']:.1f}", *(f"{entry[measure]:.4f}" for measure in measures)]
        figures += [f"{entry['unseen'][measure]:.4f}" for measure in apart]
        figures.append(f"{entry['multiply_adds']:,}")
        rows.append(f"<tr><th>{escape(name)}</th>{''.join(f'<td>{figure}</td>' for figure in figures)}</tr>")
    said = f"<p><small>{count:,} of {evaluation['queries']:,} queries are {UNSEEN}.</small></p>" if count else ""
    return f"<h2>{escape(title)}</h2>{table(head, rows)}{said}"


def bars(titles: tuple[str, str], counts: Mapping[str, float]) -> str:
    """Counts as a table with a bar each."""
    most = max(counts.values())
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td>{count:,.0f}</td><td class="bar"><i style="width: {100 * count / most:.1f}%"></i></td></tr>'
        for name, count in counts.items()
    )
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    return f'<table class="steps"><thead><tr>{head}<th></th></tr></thead><tbody>{rows}</tbody></table>'


def examples(found: Sequence[Mapping[str, Any]], encoder_width: int) -> list[str]:
    """Queries, and the first answers at each width; the right one in bold."""
    parts = ["<h2>Some queries and their answers</h2><p><small>In bold: the right one.</small></p>"] if found else []
    for example in found:
        parts.append(f"<blockquote>{escape(' '.join(example['query'].split()))}</blockquote>")
        for width, answers in example["answers"].items():
            where = f"at all {encoder_width}" if int(width) == encoder_width else f"at {escape(str(width))} coordinates"
            lines = "".join(_answer(str(document), example) for document in answers)
            parts.append(f'<small>{where}</small><ol class="answers">{lines}</ol>')
    return parts


def _answer(document: str, example: Mapping[str, Any]) -> str:
    name, text = escape(document), escape(example.get("texts", {}).get(document, ""))
    shown = f"<b>{name}</b>" if document in example["relevant"] else name
    return f"<li>{shown}{f'<small>{text}</small>' if text else ''}</li>"


def table(head: Iterable[str], rows: Iterable[str]) -> str:
    """A table that scrolls sideways where it is too wide, and shows that it does."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return (
        f'<p class="swipe">The table scrolls sideways →</p><div class="scroll" tabindex="0"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(figure: tuple[float, float] | None, best: float) -> str:
    if figure is None:
        return "<td>–</td>"
    mean, sd = figure
    text = f"{mean:.4f}" + (f"<small> ± {sd:.4f}</small>" if sd else "")
    return f"<td>{f'<b>{text}</b>' if round(mean, 4) >= round(best, 4) else text}</td>"
