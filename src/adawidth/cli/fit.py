"""adawidth fit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from ..types import Recipe
from .options import AsJson, DatasetPath, Encoder, Force, NoLabels, SkipUnknown, labels_of
from .output import emit, refuse_existing, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(fit)


def fit(
    dataset: DatasetPath,
    out: Annotated[Path, typer.Option("--out", help="Model folder to write.")],
    encoder: Encoder = None,
    recipe: Annotated[Recipe, typer.Option("--recipe", help="auto, paper, pca, kyfan or identity.")] = "auto",
    no_labels: NoLabels = False,
    reflections: Annotated[int | None, typer.Option("--reflections", help="Householder reflections in the learned part.")] = None,
    widths: Annotated[str | None, typer.Option("--widths", help="Widths to train for: 32,64,128,256.")] = None,
    query_map: Annotated[bool, typer.Option("--query-map", help="Let the labels also teach a query map, as `refit` does.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same model.")] = 0,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn a rotation and its policies from the train and dev queries; write a model folder."""
    from ..formats import load_dataset
    from ..model import AdaWidth
    from ..report.facts import model_facts
    from .info import show_task, show_trials

    refuse_existing(out, force)
    data = load_dataset(dataset, encoder, skip_unknown=skip_unknown)
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
