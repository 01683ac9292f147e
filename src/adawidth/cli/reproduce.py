"""adawidth reproduce"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Protocol, SkipUnknown
from .output import emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(reproduce)


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="curves, vqa, capacity, ablation, sweep, scaling, stable-widths, or all (but vqa).")
    ],
    datasets: Annotated[list[Path], typer.Argument(metavar="DATASET", help="Dataset folders.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results; an interrupted run resumes there.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="LIST", help="Encoders, with commas.  [default: each dataset's only one]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="LIST", help="For curves and vqa: methods, with commas.  [default: all]")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="How many times to repeat every fit.")] = 3,
    train_queries: Annotated[
        int, typer.Option("--train-queries", metavar="N", min=1, help="Train queries to learn from, at most.")
    ] = 4_000,
    whole_grid: Annotated[bool, typer.Option("--whole-grid", help="For sweep: every combination, not one factor at a time.")] = False,
    protocol: Protocol = "exhaustive",
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="For scaling and stable-widths: model whose rotation to measure.")
    ] = None,
    queries: Annotated[
        int, typer.Option("--queries", metavar="N", min=1, help="For scaling and stable-widths: queries to measure, at most.")
    ] = 2_000,
    smallest: Annotated[
        int, typer.Option("--smallest", metavar="N", min=1, help="For scaling and stable-widths: size of the smallest subsample.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="For scaling and stable-widths: seed of the subsamples.")] = 0,
    skip_unknown: SkipUnknown = False,
    force: Annotated[bool, typer.Option("--force", help="Measure every cell again, also those in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Repeat an experiment of the paper on your data.

    Writes JSON, a table and a figure, and says whether the paper's claim holds.
    """
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
        protocol=protocol,
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
