"""adawidth add, update"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError, OptionError
from .options import AsJson, IdColumn, IndexPath, Overlap, Passage, TextColumn, TitleColumn, TrustEncoder, encoder_for
from .output import emit, say

if TYPE_CHECKING:
    from ..formats import Columns, Cut
    from ..model import AdaWidth

Sources = Annotated[
    list[Path],
    typer.Argument(metavar="SOURCE", help="Texts (folder, .md, .pdf, .csv, …), dataset folders, or vectors (.npy, .parquet, …)."),
]
SourceEncoder = Annotated[
    str | None,
    typer.Option("--encoder", metavar="NAME", help="Encoder whose vectors to use; for texts, where the index's encoder is now."),
]


@dataclass(frozen=True)
class _Texts:
    """How texts are read and encoded."""

    encoder: str | None
    trust_encoder: bool
    columns: Columns
    cut: Cut


def add_documents(
    path: IndexPath,
    sources: Sources,
    encoder: SourceEncoder = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    id_column: IdColumn = None,
    passage: Passage = 1_000,
    overlap: Overlap = 0,
    trust_encoder: TrustEncoder = False,
    as_json: AsJson = False,
) -> None:
    """Add new documents to an index, all or none.

    Texts are encoded with the index's own encoder.
    """
    from ..formats import Columns, Cut

    how = _Texts(encoder, trust_encoder, Columns(text_column, title_column, id_column), Cut(passage, overlap))
    if _are_texts(sources):
        _write_texts(path, sources, how, as_json)
    else:
        _write(path, sources, encoder, as_json)


def update(
    path: IndexPath,
    sources: Sources,
    encoder: SourceEncoder = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    id_column: IdColumn = None,
    passage: Passage = 1_000,
    overlap: Overlap = 0,
    prune: Annotated[bool, typer.Option("--prune", help="Remove all other documents: those that are not among the texts.")] = False,
    trust_encoder: TrustEncoder = False,
    as_json: AsJson = False,
) -> None:
    """Add documents, replacing those with the same ids.

    Of texts, only those that are new or have changed are encoded.
    """
    from ..formats import Columns, Cut

    how = _Texts(encoder, trust_encoder, Columns(text_column, title_column, id_column), Cut(passage, overlap))
    if _are_texts(sources):
        _write_texts(path, sources, how, as_json, update=True, prune=prune)
    elif prune:
        raise OptionError(f"--prune goes with texts, but {sources[0]} holds vectors: remove documents by their ids")
    else:
        _write(path, sources, encoder, as_json, update=True)


def _are_texts(sources: Sequence[Path]) -> bool:
    """Whether all of these are to be encoded, or none; a mixture is refused."""
    from ..formats import encoders_in
    from ..formats.documents import has_vectors

    for source in sources:
        if not source.exists():
            raise DataError(f"{source}: there is no such file or folder")
    encode = {source: not encoders_in(source) if source.is_dir() else not has_vectors(source) for source in sources}
    if len(set(encode.values())) > 1:
        vectors, texts = (next(source for source, value in encode.items() if value is wanted) for wanted in (False, True))
        raise OptionError(f"{vectors} holds vectors and {texts} texts: add them one after the other")
    return encode[sources[0]]


def _write_texts(path: Path, sources: Sequence[Path], how: _Texts, as_json: bool, *, update: bool = False, prune: bool = False) -> None:
    from ..formats.texts import read_corpus
    from ..index import IndexFolder
    from ..model import AdaWidth, Index
    from ..model.texts import write_texts

    with Index(AdaWidth.load(path / "model"), IndexFolder(path), how.encoder, trust_encoder=how.trust_encoder) as index:
        texts = [text for source in sources for text in read_corpus(source, how.columns, how.cut)]
        done = write_texts(index, texts, str(sources[0]), update=update, prune=prune)
        segments = len(index.facts()["segments"])
    counts = {"added": done.added, "replaced": done.replaced, "removed": done.removed, "unchanged": done.unchanged}
    words = f"added {done.added:,} texts, replaced {done.replaced:,}, removed {done.removed:,}, {done.unchanged:,} as they were"
    report(path, counts, words, as_json, done.documents, segments)


def _write(path: Path, sources: Sequence[Path], encoder: str | None, as_json: bool, *, update: bool = False) -> None:
    from ..formats.documents import joined, of_dataset, of_file
    from ..index import IndexFolder
    from ..model import AdaWidth
    from ..model.drift import warn_if_grown

    with IndexFolder(path, searching=False) as opened:
        model = AdaWidth.load(opened.path / "model")
        width = model.width
        found = [
            of_dataset(source, vectors_of(model, source, encoder), width=width) if source.is_dir() else of_file(source, width=width)
            for source in sources
        ]
        written = opened.write(joined(found), update=update)
    warn_if_grown(model, written.documents)
    counts = {"added": written.added, "replaced": written.replaced, "storage": written.storage}
    words = f"added {written.added:,} documents, replaced {written.replaced:,}"
    report(path, counts, words, as_json, written.documents, written.segments)


def vectors_of(model: AdaWidth, dataset: Path, asked: str | None) -> str | None:
    """The encoder whose vectors to use. A dataset that has vectors of another encoder only is refused, unless --encoder names it."""
    from ..formats import encoders_in

    fitted, found = model.record.encoder, encoders_in(dataset)
    if asked is None and fitted and len(found) == 1 and fitted not in found:
        mend = f"encode it with {fitted}, or give --encoder {found[0]} if that is the same encoder"
        raise OptionError(f"{dataset}: its vectors are of the encoder {found[0]}, the model is for {fitted}: {mend}")
    return encoder_for(model, dataset, asked)


def report(path: Path, counts: dict[str, Any], words: str, as_json: bool, documents: int, segments: int) -> None:
    """What a change did."""
    if as_json:
        emit({"index": str(path), **counts, "documents": documents})
    else:
        say(f"{words}; {path} has {documents:,} documents in {segments} segments")
