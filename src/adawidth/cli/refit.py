"""adawidth refit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import need
from .options import AsJson, Force, ModelEncoder, ModelPath, SkipUnknown, encoder_for
from .output import emit, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(refit)


def refit(
    model: ModelPath,
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder; with --feedback, the index folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="MODEL2", help="Model folder to write; MODEL stays as it is.")],
    encoder: ModelEncoder = None,
    task: Annotated[str, typer.Option("--task", metavar="NAME", help="Name of the query map; replaces one of the same name.")] = "default",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same map.")] = 0,
    feedback: Annotated[
        Path | None, typer.Option("--feedback", metavar="FILE", help="Learn from labels that users of the index's service gave.")
    ] = None,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn a query map from labels, for the same index.

    Writes a model folder that has the query map and opens every index made with MODEL.
    """
    from ..artifact import MODEL
    from ..formats import load_dataset, refuse_out
    from ..model import AdaWidth, open_index
    from ..model.feedback import feedback_dataset
    from ..report.facts import model_facts
    from .info import show_task

    refuse_out(out, MODEL, force=force, inputs=[model, dataset])
    need("torch")
    fitted = AdaWidth.load(model)
    if feedback is None:
        source = encoder_for(fitted, dataset, encoder)
        data = load_dataset(dataset, source, skip_unknown=skip_unknown, repeated="mean", width=fitted.width)
    else:
        with open_index(dataset, fitted, encoder=encoder) as index:
            data = feedback_dataset(index, feedback)
    refitted = fitted.refit(data, task=task, seed=seed)
    refitted.save(out, force=force)
    facts = model_facts(refitted)
    if as_json:
        emit({"model": str(out), **facts})
        return
    show_task(next(entry for entry in facts["tasks"] if entry["task"] == task))
    say(f"written: {out}; it opens every index made with {model}")
