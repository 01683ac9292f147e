"""adawidth index, add, update, remove, compact, snapshot, repair"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from ..types import Storage
from .options import AsJson, DatasetPath, Encoder, Force, IndexPath, ModelPath
from .output import emit, refuse_existing, say, size

if TYPE_CHECKING:
    from ..formats.documents import Source
    from ..index import IndexFolder

Sources = Annotated[
    list[Path], typer.Argument(metavar="DATASET|FILE...", help="Dataset folders, or files of vectors: .npy, .npz, .safetensors, .parquet.")
]


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(index)
    app.command("add")(add_documents)
    for command in (update, remove, compact, snapshot, repair):
        app.command()(command)


def index(
    model: ModelPath,
    dataset: DatasetPath,
    out: Annotated[Path, typer.Option("--out", help="Index folder to write.")],
    encoder: Encoder = None,
    storage: Annotated[Storage, typer.Option("--storage", help="How candidates are found: auto, flat, int8, pq4 or ivf.")] = "auto",
    keep: Annotated[int | None, typer.Option("--keep", help="Coordinates to store.  [default: all]", show_default=False)] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the documents of a dataset, rotated, into an index folder that stands alone."""
    from ..formats.documents import of_dataset
    from ..model import AdaWidth

    refuse_existing(out, force)
    with AdaWidth.load(model).index(of_dataset(dataset, encoder), out, storage=storage, keep=keep, force=force) as made:
        facts = made.facts()
    if as_json:
        emit({"index": str(out), **facts})
        return
    codes = ", ".join(segment["storage"] for segment in facts["segments"])
    say(f"{facts['documents']:,} documents, {facts['width']} of {facts['encoder_width']} coordinates kept, candidates by {codes}")
    say(f"written: {out} ({size(facts['bytes'])})")


def add_documents(path: IndexPath, sources: Sources, encoder: Encoder = None, as_json: AsJson = False) -> None:
    """Add documents, all or none; ids that are there already are refused."""
    _write(path, sources, encoder, as_json, update=False)


def update(path: IndexPath, sources: Sources, encoder: Encoder = None, as_json: AsJson = False) -> None:
    """Add documents in place of those with the same ids, all or none."""
    _write(path, sources, encoder, as_json, update=True)


def remove(
    path: IndexPath,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of documents.")] = None,
    file: Annotated[Path | None, typer.Option("--ids", help="File with one id a line.")] = None,
    as_json: AsJson = False,
) -> None:
    """Remove documents, all or none."""
    from ..formats import read_ids
    from ..index import IndexFolder

    wanted = [*(ids or ()), *(read_ids(file) if file else ())]
    if not wanted:
        raise OptionError("which documents? give their ids, or a file of them with --ids")
    with IndexFolder(path) as opened:
        removed = opened.remove(wanted)
        _report(opened, {"removed": removed}, f"removed {removed:,} documents", as_json)


def compact(path: IndexPath, as_json: AsJson = False) -> None:
    """Make one segment of all, without what was removed; searches go on meanwhile."""
    from ..index import IndexFolder

    with IndexFolder(path) as opened:
        done = opened.compact()
        _report(opened, {"compacted": done}, "compacted" if done else "nothing to compact", as_json)


def snapshot(
    path: IndexPath,
    out: Annotated[Path, typer.Option("--out", help="Folder for the copy.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Copy an index as it is at its last commit, also while it is written to; every byte is checked."""
    from ..index import IndexFolder

    refuse_existing(out, force)
    with IndexFolder(path) as opened:
        opened.snapshot(out, force=force)
        _report(opened, {"snapshot": str(out)}, f"written: {out}", as_json)


def repair(
    path: IndexPath,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check every byte of an index, and save all that can be saved of damaged files; nothing is deleted."""
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


def _write(path: Path, sources: Sequence[Path], encoder: str | None, as_json: bool, *, update: bool) -> None:
    from ..index import IndexFolder

    with IndexFolder(path) as opened:
        written = opened.write(_source(sources, encoder), update=update)
        counts = {"added": written.added, "replaced": written.replaced, "storage": written.storage}
        _report(opened, counts, f"added {written.added:,} documents, replaced {written.replaced:,}", as_json)


def _source(paths: Sequence[Path], encoder: str | None) -> Source:
    from ..formats.documents import joined, of_dataset, of_file

    return joined([of_dataset(path, encoder) if path.is_dir() else of_file(path) for path in paths])


def _report(opened: IndexFolder, counts: dict[str, Any], words: str, as_json: bool) -> None:
    if as_json:
        emit({"index": str(opened.path), **counts, "documents": len(opened)})
    else:
        say(f"{words}; {opened.path} has {len(opened):,} documents in {len(opened.view.segments)} segments")
