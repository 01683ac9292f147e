"""A collection under another rotation, without downtime: a new collection is filled while the old one answers, and then takes its place.

Reads never wait. Writes are held back while the last changes are copied, and a client that still holds the old collection is told so
before it writes; it searches the old one, rightly, until that is dropped. Every step may be repeated after an interruption.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ..engines import Engine, Layout, Row, Settings, engine_at
from ..engines.base import prefix_lengths
from ..errors import EngineError, OptionError
from ..progress import progress
from ..rotation import Rotation
from .adawidth import AdaWidth
from .collections import current, layout_of, ready, unpacked

log = logging.getLogger("adawidth")

BATCH = 1_000  # documents copied at a time
PASSES = 20  # over all documents, before writes are held back and after: a collection that changes faster is not followed
SETTLED = 2.0  # seconds for writes that had begun when they were held back, where an engine has no transactions
SAME = 1e-3  # difference of two coordinates that float16 explains


@dataclass(frozen=True)
class Moved:
    """What a move did."""

    collection: str  # that answers now
    documents: int
    copied: int  # documents written, those that changed meanwhile counted again
    dropped: tuple[str, ...]  # collections that are gone


def move(model: AdaWidth, url: str, collection: str = "adawidth", *, layout: Layout | None = None, drop: bool = False) -> Moved:
    """Moves a collection to the rotation of `model`, from what the engine keeps. Repeat an interrupted move: it goes on where it was.

    The old collection stays for clients that still hold it; `drop` removes it, now or in a later call.
    """
    layout = layout_of(model, url=url) if layout is None else layout
    old = current(url, collection)
    try:
        before = unpacked(old.open(), old.where)
        if old.layout == layout:
            return Moved(old.collection, old.count(), 0, _dropped(url, collection, old) if drop else ())
        if old.layout.keep < before.width:
            raise OptionError(
                f"{old.where} keeps {old.layout.keep} of {before.width} coordinates, which can't be turned back: "
                f"push the documents to another collection instead"
            )
        if before.width != model.width:
            raise OptionError(f"{old.where} has {before.width} coordinates, the model is for {model.width}: encode and push again")
        new = engine_at(url, _next(collection, old.collection))
        try:
            ready(new, model, layout)
            copied = _followed(old, new, before.rotation, model.rotation)
            new.finish()
            copied += _switched(old, new, before.rotation, model.rotation)
            return Moved(new.collection, new.count(), copied, _dropped(url, collection, new) if drop else ())
        finally:
            new.close()
    finally:
        old.close()


def cancel(url: str, collection: str = "adawidth") -> None:
    """Gives up a move that was interrupted before it switched: lets writes through, and removes what was copied."""
    old = current(url, collection)
    new = engine_at(url, _next(collection, old.collection))
    try:
        old.settle(Settings(old.settings().layout))
        if new.exists():
            new.drop()
    finally:
        old.close()
        new.close()


def _next(root: str, now: str) -> str:
    """The name after this one: papers, papers_2, papers_3."""
    found = re.fullmatch(re.escape(root) + r"_(\d+)", now)
    return f"{root}_{int(found[1]) + 1 if found else 2}"


def _followed(old: Engine, new: Engine, before: Rotation, after: Rotation) -> int:
    """Copies until a pass finds hardly anything to do; how many documents were written."""
    copied = 0
    for _ in range(PASSES):
        changed = _pass(old, new, before, after)
        copied += changed
        if changed <= BATCH:
            break
    return copied


def _switched(old: Engine, new: Engine, before: Rotation, after: Rotation) -> int:
    """Holds writes back, copies the last of them, and lets the new collection answer; how many documents were written."""
    layout = old.settings().layout
    old.settle(Settings(layout, held=True))
    copied = 0
    try:
        time.sleep(0.0 if old.transactional else SETTLED)
        for _ in range(PASSES):
            changed = _pass(old, new, before, after)
            copied += changed
            if not changed:
                old.settle(Settings(layout, held=True, moved_to=new.collection))
                return copied
        raise EngineError(f"{old.where}: it still changes, though writes are held back: end clients other than AdaWidth's, and repeat")
    except BaseException:
        old.settle(Settings(layout))  # let writes through again
        raise


def _pass(old: Engine, new: Engine, before: Rotation, after: Rotation) -> int:
    """Makes the new collection what the old one is; how many documents that took."""
    changed = 0
    with progress("moving", old.count()) as advance:
        for ids in _batches(old.ids()):
            rows = _turned(old, ids, new.layout, before, after)
            stale = _stale(new, rows)
            if stale:
                new.write(stale, update=True)
            changed += len(stale)
            advance(len(ids))
    gone = [name for ids in _batches(new.ids()) for name in sorted(set(ids) - old.present(ids))]
    for ids in _batches(gone):
        new.remove(ids)
    return changed + len(gone)


def _turned(old: Engine, ids: Sequence[str], layout: Layout, before: Rotation, after: Rotation) -> list[Row]:
    """Documents of the old collection as the new one keeps them; those that are gone meanwhile are left out."""
    documents, vectors = old.documents(ids), old.vectors(ids)
    there = [name for name in ids if name in documents and name in vectors]
    if not there:
        return []
    kept = after.apply(before.invert(np.stack([vectors[name] for name in there])), layout.keep)
    lengths = prefix_lengths(kept, layout.widths)
    return [Row(replace(documents[name], id=name), *parts) for name, *parts in zip(there, kept, lengths, strict=True)]


def _stale(new: Engine, rows: Sequence[Row]) -> list[Row]:
    """Those that the new collection does not have, or has otherwise."""
    present = new.present([str(row.document.id) for row in rows])
    known = [str(row.document.id) for row in rows if row.document.id in present]
    documents, vectors = (new.documents(known), new.vectors(known)) if known else ({}, {})

    def same(row: Row) -> bool:
        name = str(row.document.id)
        if documents.get(name) != row.document or name not in vectors:
            return False
        return bool(np.abs(vectors[name] - row.vector).max() <= SAME)

    return [row for row in rows if not same(row)]


def _dropped(url: str, collection: str, now: Engine) -> tuple[str, ...]:
    """Removes the collections before this one; the first stays as a sign to it."""
    names, root = list[str](), engine_at(url, collection)
    try:
        if now.collection == collection:
            return ()
        step = root.settings().moved_to
        while step is not None and step != now.collection:
            passed = engine_at(url, step)
            names.append(step)
            step = passed.settings().moved_to if passed.exists() else None
            passed.close()
        root.settle(replace(root.settings(), moved_to=now.collection))
        root.clear()
    finally:
        root.close()
    for name in names:
        passed = engine_at(url, name)
        passed.drop()
        passed.close()
    return (collection, *names)


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    following = iter(names)
    while batch := list(islice(following, BATCH)):
        yield batch
