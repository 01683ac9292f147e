"""adawidth fit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError, need
from ..types import Recipe
from .options import AsJson, DatasetPath, Encoder, Force, NoLabels, On, SkipUnknown, labels_of
from .output import emit, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(fit)


def fit(
    dataset: DatasetPath,
    out: Annotated[Path, typer.Option("--out", metavar="MODEL", help="Model folder to write.")],
    encoder: Encoder = None,
    recipe: Annotated[
        Recipe, typer.Option("--recipe", metavar="NAME", help="auto (the best on dev), paper, pca, kyfan or identity.")
    ] = "auto",
    no_labels: NoLabels = False,
    reflections: Annotated[
        int | None, typer.Option("--reflections", metavar="N", min=2, help="Householder reflections of a learned rotation; an even number.")
    ] = None,
    widths: Annotated[str | None, typer.Option("--widths", metavar="LIST", help="Widths to train for, such as 32,64,128.")] = None,
    query_map: Annotated[bool, typer.Option("--query-map", help="Train a query map on the labels too, as `refit` does.")] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same model.")] = 0,
    skip_unknown: SkipUnknown = False,
    on: On = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn a rotation and its policies; write a model folder.

    Learns from the train queries and chooses on the dev queries. Test queries are never read.
    """
    from ..artifact import MODEL
    from ..formats import load_dataset, refuse_out
    from ..model import AdaWidth
    from ..report.facts import model_facts
    from .info import show_task, show_trials

    refuse_out(out, MODEL, force=force, inputs=[dataset])
    data = load_dataset(dataset, encoder, skip_unknown=skip_unknown)
    if on is not None:
        from ..batch import fit as fit_on
        from ..batch import shards_of

        if query_map or reflections is not None or widths is not None:
            raise OptionError(
                "--query-map, --reflections and --widths are for learned rotations: with --on, the recipe is pca, kyfan or identity"
            )
        shards, closed = shards_of(data.documents.name), "pca" if recipe == "auto" else recipe
        model = fit_on(data, shards, recipe=closed, labels=labels_of(no_labels), seed=seed, on=on)
    else:
        if query_map or recipe == "paper" or (recipe == "auto" and len(data.queries)):
            need("torch")
        model = AdaWidth.fit(
            data,
            recipe=recipe,
            labels=labels_of(no_labels),
            reflections=reflections,
            widths=_numbers(widths, data.documents.width),
            query_map=query_map,
            seed=seed,
        )
    model.save(out, force=force)
    facts = model_facts(model)
    if as_json:
        emit({"model": str(out), **facts})
        return
    show_trials(facts)
    say(f"\nshipped: {facts['recipe']}. {facts['reason']}")
    for task in facts["tasks"]:
        say()
        show_task(task)
    say(f"written: {out}")


def _numbers(text: str | None, encoder_width: int) -> tuple[int, ...] | None:
    """Widths to train for."""
    if text is None:
        return None
    from ..evaluation.widths import parse_widths, usable_widths

    widths = usable_widths(parse_widths(text), (), encoder_width, ())
    if not widths:
        raise OptionError("give at least one width to train for")
    return tuple(sorted(int(m) for m in widths))
