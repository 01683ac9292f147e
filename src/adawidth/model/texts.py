"""Texts into an index, with the encoder that made its vectors: what is new or has changed is encoded, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..data import Document, Vectors
from ..errors import DataError
from ..formats import Text
from ..formats.documents import Source, of_vectors
from ..progress import progress
from ..stages import Store, Written

if TYPE_CHECKING:
    from ..encoders import Encoder
    from .index import Index

SOME = 10_000  # documents compared at a time


@dataclass(frozen=True)
class Changes:
    """What was done to an index, and how many documents it has now."""

    added: int
    replaced: int
    removed: int
    unchanged: int
    documents: int

    @property
    def any(self) -> bool:
        """Whether anything was."""
        return bool(self.added or self.replaced or self.removed)


def write_texts(index: Index, texts: Sequence[Text], name: str, *, update: bool = False, prune: bool = False) -> Changes:
    """Adds texts to an index, all or none. With `update`, those that are there already and say the same are left as they are, and others
    replaced; with `prune`, documents that are not among the texts are then removed. Done again after an interruption, it does the rest.
    """
    changed, gone = _difference(index.store, texts) if update or prune else (texts, [])
    written = Written(0, 0, len(index)) if not changed else index.write(encoded(changed, index.encoder, name), update=update)
    removed = index.remove(gone) if prune and gone else 0
    return Changes(written.added, written.replaced, removed, len(texts) - len(changed), written.documents - removed)


def encoded(texts: Sequence[Text], encoder: Encoder, name: str) -> Source:
    """Texts as documents with their vectors."""
    from ..encoders.encode import encode_sorted

    with progress("encoding", len(texts)) as advance:
        values = encode_sorted(encoder, texts, "document", advance)
    vectors = Vectors.of(values, [text.id for text in texts], name=name)
    return of_vectors(vectors, [text.title for text in texts], [text.text for text in texts], [text.metadata for text in texts])


def given(ids: Sequence[str], titles: Sequence[str] | None, texts: Sequence[str]) -> list[Text]:
    """Texts of a caller, to be encoded with their titles; an empty one is refused."""
    heads = [""] * len(texts) if titles is None else titles
    for place, (name, title, text) in enumerate(zip(ids, heads, texts, strict=True)):
        if not isinstance(text, str) or not isinstance(title, str):
            raise DataError(f"documents: the text in row {place} ({name}) is {str(text)[:40]!r}, with title {title!r}: give strings")
        if not f"{title}{text}".strip():
            raise DataError(f"documents: the text in row {place} ({name}) is empty: leave it out, or give a vector for it")
    return [Text(name, text, title) for name, title, text in zip(ids, heads, texts, strict=True)]


def _difference(store: Store, texts: Sequence[Text]) -> tuple[list[Text], list[str]]:
    """The texts that are not in a store, or not as they are, and the ids of documents that are not among the texts."""
    known = {str(document.id): document for document in _known(store, [text.id for text in texts if text.id in store])}
    wanted = {text.id for text in texts}
    changed = [text for text in texts if text.id not in known or _differs(known[text.id], text)]
    return changed, [str(name) for name in store.ids() if str(name) not in wanted]


def _known(store: Store, ids: Sequence[str]) -> Iterator[Document]:
    for start in range(0, len(ids), SOME):
        yield from store.documents(ids[start : start + SOME])


def _differs(document: Document, text: Text) -> bool:
    return (document.title, document.text, dict(document.metadata)) != (text.title, text.text, dict(text.metadata))
