"""adawidth refit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, DatasetPath, Encoder, Force, ModelPath, SkipUnknown
from .output import emit, refuse_existing, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(refit)


def refit(
    model: ModelPath,
    dataset: DatasetPath,
    out: Annotated[Path, typer.Option("--out", help="Model folder to write; MODEL itself stays as it is.")],
    encoder: Encoder = None,
    task: Annotated[str, typer.Option("--task", help="Name of the query map; one of this name in MODEL is replaced.")] = "default",
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same map.")] = 0,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn a query map from labels: same rotation, same index; write a model folder with it."""
    from ..formats import load_dataset
    from ..model import AdaWidth
    from ..report.facts import model_facts
    from .info import show_task

    refuse_existing(out, force)
    data = load_dataset(dataset, encoder, skip_unknown=skip_unknown, repeated="mean")
    refitted = AdaWidth.load(model).refit(data, task=task, seed=seed)
    refitted.save(out, force=force)
    facts = model_facts(refitted)
    if as_json:
        emit({"model": str(out), **facts})
        return
    show_task(next(entry for entry in facts["tasks"] if entry["task"] == task))
    say(f"written: {out}; it opens every index made with {model}")
