"""adawidth reproduce"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, SkipUnknown
from .output import emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(reproduce)


def reproduce(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="scaling or stable-widths.")],
    datasets: Annotated[list[Path], typer.Argument(metavar="DATASET...", help="Dataset folders.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the results; a run that was interrupted goes on in it.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="Encoders, with commas; may be left out where the datasets have one encoder.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", help="Model folder whose rotation is measured.")] = None,
    queries: Annotated[int, typer.Option("--queries", min=1, help="Queries measured in each cell, at most.")] = 2_000,
    smallest: Annotated[int, typer.Option("--smallest", help="Documents of the smallest corpus measured.")] = 500,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same subsamples.")] = 0,
    skip_unknown: SkipUnknown = False,
    force: Annotated[bool, typer.Option("--force", help="Measure every cell anew, also those that --out has.")] = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a measurement of the paper on your data: JSON, table, figure, and whether the claim holds."""
    from ..experiments.base import Settings
    from ..experiments.reproduce import experiment
    from ..experiments.reproduce import reproduce as reproduced
    from ..model import AdaWidth

    shown = experiment(name)
    result = reproduced(
        name,
        datasets,
        out,
        encoders=[None] if encoder is None else encoder.replace(",", " ").split(),
        rotation=None if model is None else AdaWidth.load(model).rotation,
        settings=Settings(smallest, queries, seed),
        skip_unknown=skip_unknown,
        force=force,
    )
    if as_json:
        emit(result)
        return
    say(result["verdict"].replace("**", ""))
    say()
    table(*shown.table(result["cells"]))
    say(f"\nwritten: {', '.join(str(out / f'{name}.{kind}') for kind in ('json', 'md', 'svg'))}")
