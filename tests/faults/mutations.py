"""Damaged copies of index folders, model folders and input files, and what is still answered: the cases of benchmarks/mutations.py.

    python mutations.py HOME      (cases come in and outcomes go out a line each: see watched.py)

HOME holds sound folders, which `prepare` makes. A case names one of the KINDS and a seed, or is one of the crafted ones. What must
come of it: an AdaWidthError, or the right answer; where contents were changed and all checksums made right, a well-formed answer.
"""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Index, Rotation, open_index
from adawidth.errors import AdaWidthError
from adawidth.index.codes import graph
from adawidth.stages.words import LAYOUT
from faults import crafted, index_fuzz, model_fuzz, reader_fuzz
from faults.watched import Case, serve
from small_index import DOCUMENTS, WIDTH, known, vectors
from small_model import small_model

STORAGES = ("flat", "int8", "pq4", "ivf", "graph")
K = 5
ASKED = ["title 7", "text text 12", "a text of nothing", "title", "", "13 17"]  # a query each
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"quality": 0.9, "task": "none"}, {"budget": 40}, {"policy": "router"}, {"policy": "router", "budget": 50, "task": "none"},
    {"policy": "certify"}, {"policy": "fixed", "quality": 0.95}, {"width": 48, "start": 32}, {"where": "lang = 'en' AND year < 2010"},
    {"hybrid": True, "text": ASKED}, {"hybrid": True, "text": ASKED, "where": "lang = 'en' AND year < 2010"},
)  # fmt: skip

Answers = list[Any]
Mutate = Callable[[Path, np.random.Generator], None]


@dataclass(frozen=True)
class Kind:
    """A kind of file, where one is, and a way to damage it."""

    folder: str  # of HOME
    mutate: Mutate
    sealed: bool = False  # whether checksums are made right, so that another answer may be had
    share: int = 1  # of the cases


KINDS = {
    "manifest.sqlite, bytes": Kind("flat.index", index_fuzz.raw("manifest.sqlite"), share=3),
    "manifest.sqlite, pages and cells": Kind("flat.index", index_fuzz.pages, share=4),
    "manifest.sqlite, head": Kind("flat.index", index_fuzz.head, sealed=True, share=2),
    "manifest.sqlite, entries of segments": Kind("pq4.index", index_fuzz.entries, sealed=True, share=3),
    "manifest.sqlite, documents": Kind("flat.index", index_fuzz.documents, sealed=True),
    "manifest.sqlite, removals": Kind("flat.index", index_fuzz.removed, sealed=True),
    "manifest.sqlite-wal, bytes": Kind("open.index", index_fuzz.raw("manifest.sqlite-wal"), share=2),
    "manifest.sqlite-wal, frames": Kind("open.index", index_fuzz.frames, sealed=True, share=2),
    "manifest.sqlite-shm, bytes": Kind("open.index", index_fuzz.raw("manifest.sqlite-shm")),
    "lock": Kind("flat.index", index_fuzz.lock),
    **{f"segment, {storage}, bytes": Kind(f"{storage}.index", index_fuzz.raw("*.segment")) for storage in STORAGES},
    **{f"segment, {storage}, codes": Kind(f"{storage}.index", index_fuzz.arrays("codes."), sealed=True, share=2) for storage in STORAGES},
    **{f"segment, {name}": Kind("pq4.index", index_fuzz.arrays(name), sealed=True)
       for name in ("rows", "inverse", "numbers", "names", "ends", "places", "total")},
    **{f"segment, words, {name}": Kind("int8.index", index_fuzz.arrays(f"words.{name}"), sealed=True) for name in LAYOUT},
    "model of an index, bytes": Kind("flat.index", index_fuzz.raw("model/*")),
    "model of an index, values": Kind("flat.index", index_fuzz.model, sealed=True),
    **{f"{file}, bytes": Kind("sound.model", index_fuzz.raw(file))
       for file in ("config.json", "model.safetensors", "SHA256SUMS", "README.md")},
    "config.json, values": Kind("sound.model", model_fuzz.config, sealed=True, share=4),
    **{f"model.safetensors, {part}": Kind("sound.model", model_fuzz.arrays(part), sealed=True) for part in model_fuzz.PARTS},
    **{f"reader of {name}": Kind(f"readers/{name}", lambda folder, rng: None, sealed=True) for name in reader_fuzz.FORMATS},
}  # fmt: skip


def cases(count: int, seed: int = 0) -> Iterator[Case]:
    """So many mutations, by the kinds' shares in turn."""
    turns = [name for name, kind in KINDS.items() for _ in range(kind.share)]
    return ({"kind": turns[number % len(turns)], "seed": seed + number} for number in range(count))


def prepare(home: Path) -> None:
    """The sound folders: an index a storage, one with a log, others to exchange files with, a model of each rotation, input files."""
    model, stranger = small_model(), small_model(Rotation.random(WIDTH, seed=2))
    model.save(home / "sound.model")
    stranger.save(home / "other.model")
    for storage in STORAGES:
        filled(model, home / f"{storage}.index", storage).close()
    filled(stranger, home / "other.index", "flat").close()
    with filled(model, home / "logged.index", "flat") as index, open_index(home / "logged.index"):
        index.add(vectors(9, seed=4), [f"f{i}" for i in range(9)])
        index.remove(["f3"])
        shutil.copytree(home / "logged.index", home / "open.index")
    assert (home / "open.index" / index_fuzz.LOG).stat().st_size > 10_000
    (home / "readers").mkdir()
    for name, (make, _) in reader_fuzz.FORMATS.items():
        (home / "readers" / name).write_bytes(make())
    for folder in ("sound.model", *(f"{storage}.index" for storage in STORAGES)):  # a case's time is not for compiling
        answers(Path(shutil.copytree(home / folder, home / "asked" / folder)))


def filled(model: AdaWidth, path: Path, storage: Any) -> Index:
    """An index with two segments and some removals."""
    rows = range(DOCUMENTS)
    said: dict[str, Any] = {
        "titles": [f"title {i}" for i in rows],
        "texts": [f"text {i}" for i in rows],
        "metadata": [known(i) for i in rows],
    }
    index = model.index(vectors(), path, ids=[f"d{i}" for i in rows], storage=storage, hybrid=True, **said)
    more = range(50)
    index.add(vectors(50, seed=3), [f"e{i}" for i in more], titles=[f"title {i}" for i in more], metadata=[known(i) for i in more])
    index.remove(["d3", "e3"])
    return index


def answers(path: Path) -> Answers:
    """All that a folder can be asked for; None for what is refused. Each answer is looked at."""
    if path.suffix == ".model":
        model = AdaWidth.load(path)
        if model.width != WIDTH:
            return [model.width]
        said = {"metadata": [known(i) for i in range(DOCUMENTS)], "titles": [f"title {i}" for i in range(DOCUMENTS)]}
        return searched(model.index(vectors(), **said))
    with open_index(path) as index:
        found = searched(index)
        for ask in (lambda: index.documents(list(index)[::7]), lambda: index.vectors(list(index)[::7]).tolist(), lambda: len(index)):
            try:
                found.append(ask())
            except AdaWidthError:
                found.append(None)
        return found


def searched(index: Index) -> Answers:
    """Answers to some queries in every way."""
    queries, found = vectors(6, seed=9), Answers()
    for options in OPTIONS:
        try:
            hits = index.search(queries, K, **options)
            ids = hits.ids
        except AdaWidthError:
            found.append(None)
            continue
        there = hits.rows >= 0
        assert hits.rows.shape == hits.scores.shape == (len(queries), hits.rows.shape[1]), (options, hits.rows.shape)
        assert (np.diff(there.astype(int), axis=1) <= 0).all(), (options, hits.rows)
        assert not np.isnan(hits.scores).any(), (options, hits.scores)
        assert np.isfinite(hits.widths).all(), (options, hits.widths)
        assert ((hits.widths >= 0) & (hits.widths <= WIDTH)).all(), (options, hits.widths)
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() == len(names) for row, names in zip(hits.rows, ids, strict=True))
        found.append((ids, np.round(hits.scores, 4).tolist()))
    return found


def outcome(case: Case, home: Path, expected: dict[str, Answers]) -> str:
    """Damages a copy and asks it: "right", or "answered" where contents were changed; what is refused raises."""
    if "kind" not in case:
        made = crafted.CRAFTED[case["crafted"]]
        folder, sealed = made.folder, made.sealed
    else:
        folder, sealed = KINDS[case["kind"]].folder, KINDS[case["kind"]].sealed
    copy = home / "copies" / Path(folder).name
    shutil.rmtree(copy.parent, ignore_errors=True)
    copy.parent.mkdir()
    if folder.startswith("readers/"):
        data = (home / folder).read_bytes()
        copy.write_bytes(reader_fuzz.mutated(data, np.random.default_rng(case["seed"])))
        reader_fuzz.FORMATS[copy.name][1](copy)
        return "answered"
    if folder not in expected:
        expected[folder] = answers(Path(shutil.copytree(home / folder, copy)))  # a copy, as opening an index may end its log
        assert all(part is not None for part in expected[folder])
        shutil.rmtree(copy)
    shutil.copytree(home / folder, copy)
    if "kind" in case:
        KINDS[case["kind"]].mutate(copy, np.random.default_rng(case["seed"]))
    else:
        made.mutate(copy, home)
    found = answers(copy)
    if sealed:
        return "answered"
    assert len(found) == len(expected[folder])
    wrong = [place for place, (one, other) in enumerate(zip(found, expected[folder], strict=True)) if one is not None and one != other]
    assert not wrong, f"wrong answers: {wrong}"
    return "right" if None not in found else "refused: in part"


def main() -> None:
    logging.disable()
    np.seterr(all="ignore")
    home, expected = Path(sys.argv[1]), dict[str, Answers]()
    os.environ["TMPDIR"] = str(home)
    serve(lambda case: outcome(case, home, expected))


if __name__ == "__main__":
    graph.SCANNED = 0  # a graph is walked, however small it is
    main()
