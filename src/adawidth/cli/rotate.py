"""adawidth rotate"""

from __future__ import annotations

from typing import Annotated

import typer

from .options import AsJson, Force, ModelPath, On, Task
from .output import emit, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(rotate)


def rotate(
    model: ModelPath,
    vectors: Annotated[
        str,
        typer.Argument(
            metavar="VECTORS", help="File (.npy, .npz, .safetensors, .parquet), folder of .parquet files or .lance data set; path or URI."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", metavar="PATH", help="File of one of these kinds, .lance data set, or folder for .parquet parts.")
    ],
    width: Annotated[int | None, typer.Option("--width", metavar="N", min=1, help="Coordinates to keep.  [default: all]")] = None,
    queries: Annotated[bool, typer.Option("--queries", help="These are queries: use the query map, if the model has one.")] = False,
    task: Task = None,
    on: On = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Rotate and cut vectors for any other index.

    Rows keep their order, and tables their other columns. A folder of parts is resumed when the command is repeated.
    """
    from ..batch import rotate as rotated
    from ..errors import need
    from ..model import AdaWidth

    need("pyarrow")
    made = rotated(AdaWidth.load(model), vectors, out, width=width, queries=queries, task=task, on=on, force=force)
    if as_json:
        emit(made)
        return
    say(f"{made['rows']:,} {'queries' if queries else 'vectors'} of {made['width']} coordinates, unit length")
    say(f"written: {out}")
