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
    name: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="curves, vqa, capacity, ablation, sweep, scaling, stable-widths; all: all but vqa.")
    ],
    datasets: Annotated[list[Path], typer.Argument(metavar="DATASET...", help="Dataset folders.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the results; a run that was interrupted goes on in it.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="Encoders, with commas; may be left out where the datasets have one encoder.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="curves, vqa: methods, with commas.  [default: all]", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How often everything that is fitted is fitted.")] = 3,
    train_queries: Annotated[int, typer.Option("--train-queries", min=1, help="Train queries learned from, at most.")] = 4_000,
    whole_grid: Annotated[bool, typer.Option("--whole-grid", help="sweep: every combination, not one factor at a time.")] = False,
    model: Annotated[
        Path | None, typer.Option("--model", help="scaling, stable-widths: model folder whose rotation is measured.")
    ] = None,
    queries: Annotated[int, typer.Option("--queries", min=1, help="scaling, stable-widths: queries measured, at most.")] = 2_000,
    smallest: Annotated[int, typer.Option("--smallest", help="scaling, stable-widths: documents of the smallest corpus.")] = 500,
    seed: Annotated[int, typer.Option("--seed", help="scaling, stable-widths: the same seed gives the same subsamples.")] = 0,
    skip_unknown: SkipUnknown = False,
    force: Annotated[bool, typer.Option("--force", help="Measure every cell anew, also those that --out has.")] = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a measurement of the paper on your data: JSON, table, figure, and whether the claim holds."""
    from ..experiments.base import Settings
    from ..experiments.reproduce import EVERY, experiment
    from ..experiments.reproduce import reproduce as reproduced
    from ..model import AdaWidth

    names = EVERY if name == "all" else (name,)
    for each in names:
        experiment(each)
    settings = Settings(
        smallest=smallest,
        queries=queries,
        seed=seed,
        rotation=None if model is None else AdaWidth.load(model).rotation,
        seeds=seeds,
        train_queries=train_queries,
        methods=None if methods is None else tuple(methods.replace(",", " ").split()),
        whole_grid=whole_grid,
    )
    encoders = [None] if encoder is None else encoder.replace(",", " ").split()
    results = []
    for each in names:
        result = reproduced(each, datasets, out, encoders=encoders, settings=settings, skip_unknown=skip_unknown, force=force)
        results.append(result)
        if not as_json:
            say(result["verdict"].replace("**", ""))
            say()
            table(result["table"]["header"], result["table"]["rows"])
            say(f"\nwritten: {', '.join(str(out / f'{each}.{kind}') for kind in ('json', 'md', 'svg'))}\n")
    if as_json:
        emit(results[0] if len(results) == 1 else {"experiments": results})
