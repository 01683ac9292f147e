"""adawidth compare"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, DatasetPath, Encoder, Force, NoLabels, Protocol, SkipUnknown, Split, labels_of
from .output import at_best, emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(compare)


def compare(
    dataset: DatasetPath,
    encoder: Encoder = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="LIST", help="Names with commas between them, or all.  [default: ten typical ones]"),
    ] = None,
    widths: Annotated[str | None, typer.Option("--widths", metavar="LIST", help="Widths and full.  [default: 32,64,128,256,full]")] = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="How many times to fit each method, with seeds 0, 1, …")] = 3,
    split: Split = "test",
    no_labels: NoLabels = False,
    protocol: Protocol = "exhaustive",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for results.json, which `report` draws.")] = None,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit several methods and rank a split's queries with each."""
    from ..baselines import REGISTRY
    from ..evaluation.compare import METHODS
    from ..evaluation.compare import compare as compared
    from ..evaluation.widths import parse_widths
    from ..formats import atomic_folder, load_dataset, refuse_out
    from .results import RESULTS, write_json

    if out is not None:
        refuse_out(out, RESULTS, force=force, inputs=[dataset])
    asked = list(METHODS) if methods is None else list(REGISTRY) if methods == "all" else methods.replace(",", " ").split()
    data = load_dataset(dataset, encoder, skip_unknown=skip_unknown)
    parsed = None if widths is None else parse_widths(widths)
    result = compared(data, asked, widths=parsed, seeds=seeds, split=split, labels=labels_of(no_labels), protocol=protocol).to_json()
    if out is not None:
        with atomic_folder(out, RESULTS, force=force, inputs=[dataset]) as folder:
            write_json(folder / "results.json", result)
    if as_json:
        emit(result)
        return
    show(result)
    if out is not None:
        say(f"\nwritten: {out / 'results.json'}; adawidth report {out} --out report.html draws it")


def show(result: Mapping[str, Any]) -> None:
    """Methods down, widths across, bytes per document (float32) under each width; what a width means where it is a budget."""
    from ..report.tables import budgets

    cells = {(cell["method"], str(cell["width"])): cell for cell in result["summary"]}
    methods = list(dict.fromkeys(method for method, _ in cells))
    widths = list(dict.fromkeys(width for _, width in cells))
    spread = any(cell["sd"] for cell in cells.values())
    say(
        f"{result['measure']}, {result['dataset']}, {result['encoder']}: {result['queries']} {result['split']} queries, "
        f"{result['documents']} documents; frozen full width {result['frozen'][result['measure']]:.4f}"
    )
    if "shortlist" in result:
        say(at_best(result["shortlist"]))
    bytes_per_document = [f"{4 * (result['encoder_width'] if width == 'full' else int(width)):,}" for width in widths]
    rows = [["bytes per document", *bytes_per_document]]
    rows += [[method, *(_figure(cells[method, width], spread) for width in widths)] for method in methods]
    table(["method", *widths], rows)
    for note in budgets(result):
        say(note)


def _figure(cell: Mapping[str, Any], spread: bool) -> str:
    return f"{cell['mean']:.4f} ± {cell['sd']:.4f}" if spread else f"{cell['mean']:.4f}"
