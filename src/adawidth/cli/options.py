"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DatasetPath = Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as `fit` writes it.")]
IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder, as `index` writes it.")]
Encoder = Annotated[str | None, typer.Option("--encoder", help="Whose vectors; may be left out where the dataset has one encoder.")]
SkipUnknown = Annotated[bool, typer.Option("--skip-unknown", help="Leave out labels whose query or document has no vector.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what stands at --out.")]
NoLabels = Annotated[bool, typer.Option("--no-labels", help="Learn from documents and queries alone.")]
Task = Annotated[
    str | None,
    typer.Option("--task", help="Query map of this name; none: no map.  [default: the one called default, if any]", show_default=False),
]
Split = Annotated[str, typer.Option("--split", help="Whose queries and labels: train, dev or test.")]


def labels_of(no_labels: bool) -> bool | None:
    """What the Python side calls `labels`: False, or None for "where there are any"."""
    return False if no_labels else None
