"""adawidth check"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, DatasetPath, ModelEncoder, ModelPath, SkipUnknown, encoder_for
from .output import emit, say, table

NO_LONGER = 3  # exit code


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(check)


def check(
    model: ModelPath,
    dataset: DatasetPath,
    encoder: ModelEncoder = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed looks at the same documents and queries.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="HTML file to write, with a figure.")] = None,
    skip_unknown: SkipUnknown = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite --out, if AdaWidth wrote it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell if a model still fits, and if refitting would pay.

    Needs no labels. Exits with 0 if it fits, with 3 if it does not, and with 1 if that could not be found out.
    """
    from ..evaluation.check import check as checked
    from ..formats import load_dataset
    from ..model import AdaWidth
    from ..report.check import write_check
    from .results import refuse_report

    if out is not None:
        refuse_report(out, force=force)
    fitted = AdaWidth.load(model)
    data = load_dataset(dataset, encoder_for(fitted, dataset, encoder), skip_unknown=skip_unknown, width=fitted.width)
    found = checked(fitted, data, seed=seed)
    result = {"model": str(model), **found.to_json()}
    if out is not None:
        write_check(out, result)
    if as_json:
        emit(result)
    else:
        show(result)
        if out is not None:
            say(f"\nwritten: {out}")
    if not found.fits:
        raise typer.Exit(NO_LONGER)


def show(result: Mapping[str, Any]) -> None:
    """The sentence, what was looked at, what a refit would give, and what labels would."""
    from ..evaluation.check import lines
    from ..report.check import QUICK, cells, refits

    say(result["sentence"])
    asked = "documents stood in for queries" if result["stand_ins"] else f"{result['queries']:,} queries looked at"
    say(f"\n{result['dataset']}, {result['encoder'] or 'encoder unknown'}: {result['documents']:,} documents, {asked}\n")
    table(["", "verdict", "at the fit", "now", "95 % interval"], [cells(finding) for finding in result["findings"]])
    if result["refits"]:
        say(f"\nWhat a quick refit gives. {QUICK}\n")
        table(["", "pays", "measure", "now", "refitted", "difference"], [refits(refit) for refit in result["refits"]])
    for line in lines(result["labels"]):
        say(f"\n{line}")
