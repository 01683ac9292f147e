"""The report: one HTML file with pictures, the table, what queries spent and what a policy did. Needs no network and no script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from .. import __version__
from ..artifact import read_model
from ..errors import ArtifactError, DataError
from ..evaluation.curves import Chart, of_comparison, of_costs, of_evaluation, of_record
from ..evaluation.widths import AUTO
from ..formats import atomic_file
from ..record import Record
from .page import PAGE, STYLE
from .svg import draw, series
from .tables import bars, budgets, by_width, evaluated, examples, mark, on_unseen

Results = Mapping[str, Any]  # what `evaluate --json` or `compare --json` prints; a comparison may hold an "evaluation"


def read_results(path: Path) -> Results:
    """From a folder with results.json, such a file itself, or a model folder."""
    if (path / "config.json").is_file():
        config, _ = read_model(path)
        return {"record": config["record"], "encoder_width": config["width"]}
    file = path / "results.json" if path.is_dir() else path
    try:
        results = json.loads(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: can't be read ({error.strerror}): give what `compare --out` or `demo` wrote, or a model folder") from None
    except ValueError as error:
        raise DataError(f"{file}: this is no JSON: {error}") from None
    if not isinstance(results, dict) or not {"results", "encoder_width"} <= results.keys():
        raise DataError(f"{file}: neither the results of `evaluate --json` nor of `compare --json`")
    return results


def write_report(path: str | Path, results: Results) -> None:
    """Writes the HTML file, whole or not at all."""
    page = render(results)
    with atomic_file(path) as file:
        file.write(page.encode())


def render(results: Results) -> str:
    """The page."""
    try:
        chart = _chart(results)
        title = _heading(results)
        parts = [_picture(chart), *_tables(results, chart), *_costs(results, chart), *_spent(results), *_policies(results)]
        parts += examples(results.get("examples", ()), int(results["encoder_width"]))
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise ArtifactError(f"these results lack what a report shows ({error!r}): make them again") from None
    body = "\n".join(part for part in parts if part)
    foot = f"<footer>AdaWidth {__version__}</footer>"
    return PAGE.format(title=escape(title), facts=_facts(results), style=STYLE, body=body, foot=foot)


def _chart(results: Results) -> Chart:
    if "record" in results:
        return of_record(Record.of_json(results["record"]), int(results["encoder_width"]))
    if "summary" not in results:
        return of_evaluation(results)
    chart = of_comparison(results)
    spots = of_evaluation(results["evaluation"]).spots if "evaluation" in results else ()
    return Chart(chart.measure, chart.curves, spots, chart.frozen, chart.encoder_width)


def _heading(results: Results) -> str:
    return f"{_origin(results).get('dataset', 'arrays')}: quality against width"


def _origin(results: Results) -> Mapping[str, Any]:
    origin = results.get("record", results)
    return origin if isinstance(origin, Mapping) else {}


def _facts(results: Results) -> str:
    origin = _origin(results)
    facts = [f"encoder {origin.get('encoder') or 'unknown'}, {results['encoder_width']} coordinates"]
    if "record" in results:
        facts += [
            f"{origin.get('train_queries', 0):,} train and {origin.get('dev_queries', 0):,} dev queries",
            "every recipe tried, on dev queries",
        ]
    else:
        facts += [
            f"{results['documents']:,} documents",
            f"{results['queries']:,} {results['split']} queries",
            f"{results['protocol']} ranking",
        ]
    return " · ".join(map(escape, facts))


def _tables(results: Results, chart: Chart) -> list[str]:
    """Of methods: at each width, and on unseen queries. Of one model: every measure at each width."""
    at_widths = f"{chart.measure} at each width"
    if "record" in results:
        return [by_width(chart, at_widths)]
    if "summary" not in results:
        return [evaluated(results, "Every measure, and what it costs")]
    parts = [by_width(chart, at_widths, budgets(results)), *on_unseen(results)]
    if "evaluation" in results:
        parts.append(evaluated(results["evaluation"], "AdaWidth alone: every measure, and what it costs"))
    return parts


def _picture(chart: Chart) -> str:
    keys = _keys(chart)
    keys += "".join(
        f'<li><i class="spot"></i>{escape(spot.name)}, by stages: {spot.mean:.4f} at a mean width of {spot.mean_width:.0f}</li>'
        for spot in chart.spots
    )
    if chart.frozen is not None:
        keys += f'<li><i class="frozen"></i>frozen encoder, all {chart.encoder_width}: {chart.frozen:.4f}</li>'
    seeds = any(any(curve.sds) for curve in chart.curves)
    caption = "Bands: one standard deviation over seeds. " if seeds else ""
    return (
        f'<figure><ul class="keys">{keys}</ul><div class="wide">{draw(chart)}</div><div class="narrow">{draw(chart, narrow=True)}</div>'
        f"<figcaption>{caption}Width on a logarithmic scale; higher and further left is better.</figcaption></figure>"
    )


def _keys(chart: Chart) -> str:
    """The legend: coloured curves by name, the grey ones by number."""
    styles = series(chart)
    named = [f"<li>{mark(style)}{escape(name)}</li>" for name, style in styles.items() if style is not None]
    grey = [name for name, style in styles.items() if style is None]
    others = escape(grey[0]) if len(grey) == 1 else f"{len(grey)} other methods"
    return "".join(named) + (f"<li>{mark(None)}{others}</li>" if grey else "")


def _costs(results: Results, main: Chart) -> list[str]:
    """Quality against bytes per document and against multiply-adds per query, side by side."""
    if "summary" not in results or "multiply_adds" not in results["results"][0]:
        return []
    charts = [
        of_costs(results, "stored_floats_per_document", "bytes stored per document", 4.0),
        of_costs(results, "multiply_adds", "multiply-adds per query, scan included"),
    ]
    pictures = "".join(f"<div>{draw(chart, narrow=True, styles=series(main))}</div>" for chart in charts)
    return [
        "<h2>What it costs</h2>"
        f'<figure><div class="pair">{pictures}</div><figcaption>Colours as above. A method’s points that cost more and bring nothing are '
        "left out.</figcaption></figure>"
    ]


def _spent(results: Results) -> list[str]:
    """How differently queries spend: a histogram for each method that lets them, at the middle one of its widths."""
    rows = [row for row in results.get("results", ()) if "spent" in row and row.get("seed") == 0]
    parts = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        row = mine[len(mine) // 2]
        shown = bars(("mean width of a query", "queries"), {f"to {bound}": count for bound, count in row["spent"].items()})
        parts.append(
            f"<details{' open' if method == 'adawidth' else ''}><summary>{escape(method)}, budget {escape(str(row['width']))}: "
            f"mean width {row['mean_width']:.1f}</summary>{shown}</details>"
        )
    return ["<h2>What queries spend</h2>", *parts] if parts else []


def _policies(results: Results) -> list[str]:
    """What each policy read, step by step, and how it stands beside the fixed width of the same mean."""
    entries = results.get("evaluation", results).get("results", ())
    parts = []
    for entry in entries:
        if entry.get("width") != AUTO:
            continue
        fixed, difference = entry["fixed"], entry["fixed"]["difference"]
        measure, shown = difference["measure"], bars(("width", "candidates read to it"), entry["survivors"])
        parts.append(
            f"<h2>By stages: {escape(entry['policy'])}</h2>"
            f"<p>{escape(measure)} <b>{entry[measure]:.4f}</b> at a mean width of <b>{entry['mean_width']:.1f}</b>, "
            f"{entry['multiply_adds']:,} multiply-adds. The fixed width {fixed['width']}, {fixed['multiply_adds']:,} multiply-adds, "
            f"gives {fixed[measure]:.4f}: a difference of {difference['mean']:+.4f}, "
            f"95 % interval {difference['low']:+.4f} to {difference['high']:+.4f}.</p>{shown}"
        )
    return parts
