"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..model import AdaWidth

DatasetPath = Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as written by `fit`.")]
IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder, as written by `index`.")]
Encoder = Annotated[
    str | None, typer.Option("--encoder", metavar="NAME", help="Encoder whose vectors to use.  [default: the dataset's only one]")
]
ModelEncoder = Annotated[
    str | None,
    typer.Option("--encoder", metavar="NAME", help="Encoder whose vectors to use.  [default: the model's, or the dataset's only one]"),
]
EngineUrl = Annotated[str | None, typer.Option("--engine", metavar="URL", help="Collection in an engine instead of a folder.")]
Collection = Annotated[str, typer.Option("--collection", metavar="NAME", help="Name of the collection in the engine.")]
SkipUnknown = Annotated[bool, typer.Option("--skip-unknown", help="Ignore labels whose query or document has no vector.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite --out, if AdaWidth wrote it.")]
NoLabels = Annotated[bool, typer.Option("--no-labels", help="Learn from documents and queries alone.")]
Task = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="Query map to use; none for no map.  [default: the map called default, if any]"),
]
Split = Annotated[str, typer.Option("--split", metavar="SPLIT", help="Split to rank: train, dev or test.")]
Policy = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="taper, router, paper-router, fixed or certify.  [default: taper]")
]
Protocol = Annotated[
    str,
    typer.Option("--protocol", metavar="NAME", help="exhaustive (all documents) or frozen-shortlist (the paper's 500 candidates)."),
]
Budget = Annotated[float | None, typer.Option("--budget", metavar="WIDTH", help="Largest mean width that the queries may spend.")]
Quality = Annotated[
    float | None, typer.Option("--quality", metavar="SHARE", help="Share of the target width's quality to keep.  [default: 0.99]")
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="ADDRESS", help="Ray cluster to run on: ray://HOST:10001, or local.  [default: this process]"),
]
EncoderModel = Annotated[
    str,
    typer.Option("--model", metavar="NAME", help="Encoder: a preset (minilm, wordllama, …), a folder, a hub name, or openai:NAME."),
]
TextColumn = Annotated[str | None, typer.Option("--text-column", metavar="NAME", help="Column with the text, in a table.")]
TitleColumn = Annotated[str | None, typer.Option("--title-column", metavar="NAME", help="Column to put in front of the text.")]
IdColumn = Annotated[str | None, typer.Option("--id-column", metavar="NAME", help="Column with the ids.  [default: file and row]")]

Passage = Annotated[int, typer.Option("--passage", metavar="N", min=1, help="Longest passage of a document, in characters.")]
Overlap = Annotated[
    int, typer.Option("--overlap", metavar="N", min=0, help="Characters, in whole sentences, that a passage repeats of the last.")
]
TrustEncoder = Annotated[bool, typer.Option("--trust-encoder", help="Load whichever encoder the index names.")]


def labels_of(no_labels: bool) -> bool | None:
    """What the Python side calls `labels`: False, or None for "where there are any"."""
    return False if no_labels else None


def encoder_for(model: AdaWidth, dataset: Path, encoder: str | None) -> str | None:
    """The encoder asked for; else the one the model was fitted for, where the dataset has its vectors."""
    from ..formats import encoders_in
    from ..report.facts import model_facts

    fitted = str(model_facts(model)["encoder"])
    return fitted if encoder is None and fitted in encoders_in(dataset) else encoder
