"""adawidth index, remove, compact, snapshot, repair"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import OptionError
from ..sizes import in_words
from ..types import Storage
from .add import add_documents, report, update, vectors_of
from .options import AsJson, DatasetPath, Force, IndexPath, ModelEncoder, ModelPath
from .output import emit, say

if TYPE_CHECKING:
    from ..index import IndexFolder


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(index)
    app.command("add")(add_documents)
    for command in (update, remove, compact, snapshot, repair):
        app.command()(command)


def index(
    model: ModelPath,
    dataset: DatasetPath,
    out: Annotated[Path, typer.Option("--out", metavar="INDEX", help="Index folder to write.")],
    encoder: ModelEncoder = None,
    storage: Annotated[
        Storage, typer.Option("--storage", metavar="NAME", help="How to find candidates: auto, flat, int8, pq4, ivf, graph.")
    ] = "auto",
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="Coordinates to store per document.  [default: all]")
    ] = None,
    bytes_per_document: Annotated[
        int | None,
        typer.Option("--bytes-per-document", metavar="N", help="Bytes of 4-bit codes: 16, 24, 32 or 48.  [default: start width / 2]"),
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Memory that there is, such as 2GB: auto may take a graph.")
    ] = None,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Index the words of titles and texts, too.")] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a dataset's documents, rotated, into an index folder."""
    from ..formats import refuse_out
    from ..formats.documents import of_dataset
    from ..index.folder import INDEX
    from ..model import AdaWidth

    refuse_out(out, INDEX, force=force, inputs=[model, dataset])
    fitted = AdaWidth.load(model)
    source = of_dataset(dataset, vectors_of(fitted, dataset, encoder), width=fitted.width)
    with fitted.index(
        source, out, storage=storage, keep=keep, bytes_per_document=bytes_per_document, memory=memory, hybrid=hybrid, force=force
    ) as made:  # fmt: skip
        facts = made.facts()
    if as_json:
        emit({"index": str(out), **facts})
        return
    codes = ", ".join(segment["storage"] for segment in facts["segments"])
    say(f"{facts['documents']:,} documents, {facts['width']} of {facts['encoder_width']} coordinates kept, candidates by {codes}")
    say(f"written: {out} ({in_words(facts['bytes'])})")


def remove(
    path: IndexPath,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of documents.")] = None,
    file: Annotated[Path | None, typer.Option("--ids", metavar="FILE", help="File with one id per line.")] = None,
    as_json: AsJson = False,
) -> None:
    """Remove documents from an index, all or none."""
    from ..formats import read_ids
    from ..index import IndexFolder

    wanted = [*(ids or ()), *(read_ids(file) if file else ())]
    if not wanted:
        raise OptionError("give ids, or a file of them with --ids")
    with IndexFolder(path) as opened:
        removed = opened.remove(wanted)
        report(path, {"removed": removed}, f"removed {removed:,} documents", as_json, *_sizes(opened))


def compact(
    path: IndexPath,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Index the words of titles and texts, too, for hybrid search.")] = False,
    as_json: AsJson = False,
) -> None:
    """Merge an index into one segment, without removed documents."""
    from ..index import IndexFolder

    with IndexFolder(path) as opened:
        done = opened.compact(hybrid=hybrid)
        report(path, {"compacted": done}, "compacted" if done else "nothing to compact", as_json, *_sizes(opened))


def snapshot(
    path: IndexPath,
    out: Annotated[Path, typer.Option("--out", metavar="INDEX2", help="Folder for the copy.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Copy an index at its last commit, also while it is written."""
    from ..formats import refuse_out
    from ..index import IndexFolder
    from ..index.folder import INDEX

    refuse_out(out, INDEX, force=force, inputs=[path])
    with IndexFolder(path) as opened:
        opened.snapshot(out, force=force)
        report(path, {"snapshot": str(out)}, f"written: {out}", as_json, *_sizes(opened))


def repair(
    path: IndexPath,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Save what can be saved of a damaged index; delete nothing."""
    from ..index.repair import repair as repaired

    done = repaired(path, dry_run=dry_run)
    if as_json:
        counts = {"segments": list(done.segments), "saved": done.saved, "lost": list(done.lost), "aside": list(done.aside)}
        emit({"index": str(path), "dry_run": dry_run, **counts})
        return
    would = "would be " if dry_run else ""
    if done.segments:
        say(f"damaged: {', '.join(done.segments)}; {done.saved:,} documents {would}saved, {len(done.lost):,} {would}lost")
    else:
        say("nothing is damaged")
    if done.aside:
        say(f"{would}moved to {path / 'aside'}: {', '.join(done.aside)}")
    for identifier in done.lost:
        say(identifier)


def _sizes(opened: IndexFolder) -> tuple[int, int]:
    return len(opened), len(opened.view.segments)
