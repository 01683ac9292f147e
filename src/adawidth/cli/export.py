"""adawidth export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Force, ModelPath, Task
from .output import emit, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(export)


def export(
    model: ModelPath,
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="sentence-transformers, faiss, onnx, npy or sql.")],
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="File, or folder for sentence-transformers and --tokens.")],
    width: Annotated[int | None, typer.Option("--width", metavar="N", min=1, help="Coordinates to keep.  [default: all]")] = None,
    queries: Annotated[bool, typer.Option("--queries", help="The side of queries: their query map, if the model has one.")] = False,
    task: Task = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Where the encoder is, if it is not recorded or has moved.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="onnx: put the encoder in front, so that tokens go in.")] = False,
    factory: Annotated[
        str | None, typer.Option("--factory", metavar="STRING", help="faiss: the index behind the rotation.  [default: Flat]")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="faiss: vectors to train it on and to fill it with.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="sql: the function's name.  [default: adawidth_rotate]")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for programs without AdaWidth.

    An encoder for sentence-transformers, an index for faiss, a graph for ONNX, a matrix for NumPy or a function for pgvector.
    """
    from ..formats import read_vectors
    from ..integrations import export as exported
    from ..model import AdaWidth

    made = exported(
        AdaWidth.load(model), to, out, width=width, queries=queries or None, task=task, encoder=encoder, tokens=tokens or None,
        factory=factory, vectors=None if vectors is None else read_vectors(vectors), name=name, force=force,
    )  # fmt: skip
    if as_json:
        emit(made)
        return
    say(f"{made['width']} of {made['encoder_width']} coordinates, rotation {made['fingerprint']}")
    say(f"written: {out}")
