"""adawidth push and move"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from .options import AsJson, Collection, ModelEncoder, ModelPath, On, encoder_for
from .output import emit, say

Keep = Annotated[int | None, typer.Option("--keep", metavar="N", min=1, help="Coordinates to store per document.  [default: all]")]
Widths = Annotated[
    str | None, typer.Option("--widths", metavar="LIST", help="Widths to score at.  [default: start, a step between, target]")
]


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(push)
    app.command()(move)


def push(
    model: ModelPath,
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="Dataset folder, .parquet file or folder of them, or .lance data set; path or URI.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="ENGINE", help="pgvector, milvus, qdrant or lancedb.")],
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The engine's address, as its own clients take it.")],
    collection: Collection = "adawidth",
    encoder: ModelEncoder = None,
    keep: Keep = None,
    widths: Widths = None,
    sql: Annotated[
        Path | None, typer.Option("--sql", metavar="FILE", help="Write pgvector's statements to a file to read, and send nothing.")
    ] = None,
    on: On = None,
    force: Annotated[bool, typer.Option("--force", help="Empty a collection of another rotation or other widths first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write documents, rotated, into a database that you run.

    To repeat an interrupted push, give the same command again: every document is sent again under its id, and none is stored twice.
    """
    from ..batch import push as push_shards
    from ..batch import shards_of
    from ..engines import address_of
    from ..formats.documents import of_dataset
    from ..model import AdaWidth
    from ..model.collections import layout_of, push, statements

    address = address_of(to, url)
    fitted = AdaWidth.load(model)
    layout = layout_of(fitted, keep, None if widths is None else _numbers(widths), url=address)
    if sql is not None:
        sql.write_text(statements(address, collection, layout), encoding="utf-8")
        say(f"written: {sql}; nothing was sent")
        return
    folder = Path(dataset)
    if (folder / "embeddings").is_dir():
        if on is not None:
            raise OptionError(f"{dataset} is a dataset folder, which one process reads: give Parquet or Lance (--on), or leave --on out")
        source = of_dataset(folder, encoder_for(fitted, folder, encoder), width=fitted.width)
        written = push(fitted, source, address, collection, layout=layout, force=force)
    else:
        written = push_shards(fitted, shards_of(dataset), address, collection, layout=layout, force=force, on=on)
    if as_json:
        emit({"engine": to, "collection": collection, "added": written.added, "replaced": written.replaced, "documents": written.documents})
        return
    say(f"{written.added:,} documents added, {written.replaced:,} replaced; {written.documents:,} in {collection}")
    say(f"widths {', '.join(map(str, layout.widths))}; search with: adawidth search --engine URL --collection {collection}")


def move(
    model: ModelPath,
    engine: Annotated[str, typer.Option("--engine", metavar="URL", help="The engine's address, as for `search`.")],
    collection: Collection = "adawidth",
    keep: Keep = None,
    widths: Widths = None,
    drop: Annotated[bool, typer.Option("--drop", help="Also remove the collection that was moved; no client may hold it still.")] = False,
    stop: Annotated[bool, typer.Option("--cancel", help="Give up an interrupted move: remove the copy, let writes through.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move an engine's collection to a new rotation.

    To go on with an interrupted move, give the same command again. Once every client has connected again, give it with --drop.
    """
    from ..model import AdaWidth
    from ..model.collections import layout_of
    from ..model.moving import cancel
    from ..model.moving import move as moved

    if stop:
        cancel(engine, collection)
        say(f"{collection} stays as it was")
        return
    fitted = AdaWidth.load(model)
    layout = layout_of(fitted, keep, None if widths is None else _numbers(widths), url=engine)
    found = moved(fitted, engine, collection, layout=layout, drop=drop)
    if as_json:
        emit({"collection": found.collection, "documents": found.documents, "copied": found.copied, "dropped": list(found.dropped)})
        return
    say(f"{found.copied:,} documents copied; {found.collection} answers for {collection}, with {found.documents:,} documents")
    if found.dropped:
        say(f"dropped: {', '.join(found.dropped)}")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None:
        raise OptionError(f"--widths takes whole numbers with commas between them, not {wrong!r}")
    return [int(part) for part in parts]
