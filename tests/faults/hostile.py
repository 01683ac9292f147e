"""Hostile numbers and arrays at every public entry that leads to compiled code or to an address: run by test_compiled.py.

    python hostile.py HOME      (cases come in and outcomes go out a line each: see watched.py; HOME is that of mutations.py)

A case names an entry and an argument with a value from NUMBERS or an array from ARRAYS; or asks which functions of AdaWidth the entry
calls. Numbers must be refused, or give a well-formed answer; arrays that are only laid out otherwise must give the same answer.
"""

import base64
import json
import logging
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import faiss
import numpy as np

import adawidth
from adawidth import AdaWidth, Dataset, Hits, Index, Qrels, Vectors, compare, open_index
from adawidth.baselines import learning_to_select
from adawidth.batch import mine, shards_of
from adawidth.formats import read_vectors, write_vectors
from adawidth.index.codes import graph
from adawidth.index.repair import examine, repair
from adawidth.integrations.export.faiss import export_faiss
from adawidth.serve.routes.shared import numbers
from adawidth.sufficiency import RequiredWidths, required_widths
from adawidth.training import corpus
from adawidth.types import BYTES
from faults.watched import Case, serve
from small_index import DOCUMENTS, WIDTH, vectors
from small_model import small_model

SOURCE = Path(adawidth.__file__).parent
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 3, 63, 65, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -(10**30), True, False, 0.5, 1e308,
    float("nan"), float("inf"), -float("inf"), np.int64(-1), np.int32(48), np.uint64(2**64 - 1), np.float32("nan"), np.float64(64),
    np.bool_(True),
)  # fmt: skip


def spread(x: np.ndarray) -> np.ndarray:
    """The same numbers, not side by side."""
    wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def locked(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def with_(number: float) -> Callable[[np.ndarray], np.ndarray]:
    def changed(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[-1, -1] = number
        return x

    return changed


SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda x: x,
    "in columns": np.asfortranarray,
    "not side by side": spread,
    "backwards in memory": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": locked,
    "in the other byte order": lambda x: x.astype(">f4"),
    "float64": lambda x: x.astype(np.float64),
    "longdouble": lambda x: x.astype(np.longdouble),
    "lists": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "a subclass": lambda x: x.view(np.memmap),
}
ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    **SAME,
    "float16": lambda x: x.astype(np.float16),
    "NaN": with_(np.nan),
    "infinite": with_(np.inf),
    "huge": lambda x: x.astype(np.float64) * 1e300,
    "largest float32": with_(3e38),
    "tiny": lambda x: x * np.float32(1e-30),
    "zeros": np.zeros_like,
    "one zero row": lambda x: np.concatenate([x[:-1], np.zeros_like(x[:1])]),
    "int64": lambda x: (1000 * x).astype(np.int64),
    "bool": lambda x: x > 0,
    "complex": lambda x: x.astype(np.complex64),
    "text": lambda x: x.astype(str),
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, :0],
    "one too few": lambda x: x[:, :-1],
    "one too many": lambda x: np.concatenate([x, x[:, :1]], axis=1),
    "three dimensions": lambda x: x[None],
    "a number": lambda x: np.float32(1),
    "nothing": lambda x: None,
    "endless rows": lambda x: np.broadcast_to(x[:1], (1, x.shape[1])),
}


@dataclass(frozen=True)
class Entry:
    """A public call with sound arguments, and those of them that are tried."""

    call: Callable[..., Any]
    numbers: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    sound: dict[str, Any] = field(default_factory=dict)


def looked_at(found: Any) -> Any:
    """What can be compared of an answer, which is looked at first."""
    if isinstance(found, Hits):
        there = found.rows >= 0
        assert found.rows.shape == found.scores.shape
        assert np.isfinite(found.scores[there]).all(), found.scores
        assert ((found.widths >= 0) & (found.widths <= WIDTH)).all(), found.widths
        assert all(len(set(names)) == len(names) for names in found.ids)
        return [found.ids, np.round(found.scores, 4).tolist()]
    if isinstance(found, RequiredWidths):
        assert (found.values > 0).all()
        return found.values.tolist()
    if isinstance(found, np.ndarray):
        assert np.isfinite(found).all()
        return np.round(found, 4).tolist()
    return None


@cache
def opened(place: str) -> Index:
    """An index in memory, or the one of HOME with this storage."""
    return (
        small_model().index(vectors(), ids=[f"d{i}" for i in range(DOCUMENTS)])
        if place == "memory"
        else open_index(HOME / f"{place}.index")
    )


def search(place: str, **options: Any) -> Any:
    return opened(place).search(**options)


def written(place: str, x: Any) -> Any:
    """The same documents again: nothing grows."""
    index = opened("memory") if place == "memory" else _scratch(place)
    index.update(x, [f"w{i}" for i in range(4)])
    return index.vectors([f"w{i}" for i in range(4)])


@cache
def _scratch(storage: str) -> Index:
    path = HOME / "scratch" / f"{storage}.index"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(HOME / f"{storage}.index", path)
    return open_index(path)


def indexed(x: Any, **options: Any) -> Any:
    """A new index on disk, searched."""
    path = HOME / "scratch" / "made.index"
    with small_model().index(x, path, force=True, **options) as index:
        return index.search(vectors(3, seed=9), 5)


def mended() -> None:
    """A folder with damaged rows, repaired, and searched through."""
    path = HOME / "scratch" / "mended.index"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(HOME / "pq4.index", path)
    file = max(path.glob("*.segment"), key=lambda one: one.stat().st_size)
    data = bytearray(file.read_bytes())
    data[200] ^= 8
    file.write_bytes(data)
    assert examine(path)
    assert repair(path).saved
    with open_index(path) as index:
        index.compact()
        index.store.view.scan(vectors(2, seed=9), 48, 5)  # type: ignore[attr-defined]
        index.snapshot(path.with_name("copy.index"), force=True)


@cache
def labelled() -> Dataset:
    """Queries near documents, with labels."""
    rng = np.random.default_rng(0)
    asked = vectors()[:120] + 0.3 * rng.standard_normal((120, WIDTH)).astype(np.float32)
    splits = {"train": range(60), "dev": range(60, 90), "test": range(90, 120)}
    qrels = {split: Qrels({f"q{i}": {f"d{i}": 1.0} for i in rows}, split) for split, rows in splits.items()}
    documents = Vectors.of(vectors(), [f"d{i}" for i in range(DOCUMENTS)], name="documents")
    return Dataset(documents, Vectors.of(asked, [f"q{i}" for i in range(120)], name="queries"), qrels, name="hostile", encoder="tiny")


def fit(x: Any, **options: Any) -> Any:
    model = AdaWidth.fit(x, vectors(40, seed=2), recipe="pca", **options)
    return model.rotate(vectors(3, seed=9))


def fit_by_scanning(x: Any) -> Any:
    """Documents that do not fit in memory: they are scanned."""
    held, corpus.FLOATS = corpus.FLOATS, 100 * WIDTH  # type: ignore[misc]
    try:
        return AdaWidth.fit(x, vectors(40, seed=2), recipe="pca").rotate(vectors(3, seed=9))
    finally:
        corpus.FLOATS = held  # type: ignore[misc]


def mined(queries: Any, k: Any) -> Any:
    path = HOME / "scratch" / "mined.npy"
    np.save(path, vectors())
    return mine(shards_of(str(path)), queries, k)[1]


@cache
def behind_faiss() -> Index:
    finder = faiss.IndexFlatIP(32)
    finder.add(small_model().rotate(vectors(), width=32))
    return small_model().index(vectors()).with_finder(finder)


def found_by_faiss(**options: Any) -> Any:
    return behind_faiss().search(**options)


def widths_required(**options: Any) -> Any:
    data = labelled()
    return required_widths(data.documents, data.learning().train, **{"smallest": 60, "chains": 2, "depths": (1, 3), **options})


def compared(**options: Any) -> None:
    learning_to_select.STEPS = 8  # type: ignore[attr-defined]
    compare(labelled(), **{"methods": ["int8", "pq4", "learning-to-select:renormalised"], "widths": [32], **options})


def stored(x: Any) -> Any:
    """Written to files, and read back."""
    for suffix in (".npy", ".npz", ".safetensors"):
        path = HOME / "scratch" / f"x{suffix}"
        path.unlink(missing_ok=True)
        write_vectors(path, Vectors.of(x, [f"ö{i}" for i in range(len(np.shape(x) and x))]))
        found = read_vectors(path).all()
    return found


@cache
def with_words() -> Index:
    texts = [f"word{i % 7} word{i % 11} and others" for i in range(DOCUMENTS)]
    return small_model().index(vectors(), HOME / "scratch" / "words.index", texts=texts, force=True)


def found_by_words(**options: Any) -> Any:
    with_words().compact(hybrid=True)
    return with_words().search(text=[f"word{i} others" for i in range(6)], hybrid=True, **options)


def exported(x: Any, **options: Any) -> Any:
    """A faiss index that rotates, filled and searched."""
    path = HOME / "scratch" / "exported.faiss"
    export_faiss(small_model(), path, vectors=x, force=True, **options)
    return faiss.read_index(str(path)).search(vectors(3, seed=9), 5)[0]


def requested() -> Any:
    """Vectors as a request may carry them: in base64."""
    return numbers(base64.b64encode(vectors(4, seed=7).tobytes()).decode(), WIDTH)


QUERIES = vectors(6, seed=9)
ASKED = ("k", "width", "start", "shortlist", "offset", "min_score", "threads", "budget", "quality")
FILTER = "lang = 'en' AND year < 2010"
SEARCHES: dict[str, dict[str, Any]] = {
    "by the taper": {},
    "by the router": {"policy": "router"},
    "by the router's own features": {"policy": "router", "budget": 50},
    "by proof": {"policy": "certify"},
    "filtered": {"where": FILTER, "shortlist": 10},
    "of few": {"where": "year = 2007", "shortlist": 3, "k": 2},
}
ASKING = {"queries": QUERIES, "k": 5}
FEWER = ("k", "start", "shortlist")
STORAGES = ("flat", "int8", "pq4", "ivf", "graph")


def at(place: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call for one place."""
    return lambda **given: call(place, **given)


ENTRIES: dict[str, Entry] = {
    **{
        f"search {place} {way}": Entry(at(place, search), FEWER if "where" in options else ASKED, ("queries",), {**ASKING, **options})
        for place in ("memory", *STORAGES)
        for way, options in SEARCHES.items()
        if place != "memory" or "where" not in options
    },
    "search some lists": Entry(at("ivf", search), ("nprobe",), ("queries",), {**ASKING, "nprobe": 2}),
    **{f"write to {place}": Entry(at(place, written), (), ("x",), {"x": vectors(4, seed=7)}) for place in ("memory", "pq4")},
    **{
        f"index as {storage}{' in few bytes' if size else ''}": Entry(
            indexed, ("keep", "bytes_per_document"), ("x",), {"x": vectors(120), "storage": storage, "bytes_per_document": size}
        )
        for storage, size in (*((storage, None) for storage in STORAGES), ("pq4", BYTES[0]))
    },
    "index in 16 bytes": Entry(
        indexed, ("bytes_per_document",), ("x",), {"x": vectors(120), "storage": "pq4", "bytes_per_document": 16}
    ),
    "repair, compact, scan and snapshot": Entry(mended),
    "fit": Entry(fit, ("seed",), ("x",), {"x": vectors()}),
    "fit by scanning": Entry(fit_by_scanning, (), ("x",), {"x": vectors()}),
    "mine by shard": Entry(mined, ("k",), ("queries",), {"queries": QUERIES, "k": 5}),
    "search behind a faiss index": Entry(found_by_faiss, FEWER, ("queries",), dict(ASKING)),
    "search words too": Entry(found_by_words, FEWER, ("queries",), dict(ASKING)),
    "export to faiss": Entry(exported, ("width",), ("x",), {"x": vectors(120), "width": 32}),
    "vectors in a request": Entry(requested),  # tests/serve has the hostile ones
    "width": Entry(widths_required, ("smallest", "chains", "seed")),
    "compare": Entry(compared, ("seeds",)),
    "write and read files": Entry(stored, (), ("x",), {"x": vectors(4, seed=7)}),
}  # fmt: skip


def cases() -> list[Case]:
    """Every argument of every entry with every value."""
    every: list[Case] = []
    for name, entry in ENTRIES.items():
        every += [
            {"entry": name, "argument": argument, "number": place}
            for argument in entry.numbers
            for place, number in enumerate(NUMBERS)
            if argument != "seeds" or not number > 1  # more of them take longer, that is all
        ]
        every += [{"entry": name, "argument": argument, "array": array} for argument in entry.arrays for array in ARRAYS]
    return every


def outcome(case: Case) -> str:
    """ "right", "answered", or the functions that were called."""
    entry = ENTRIES[case["entry"]]
    if "called" in case:
        return f"called: {json.dumps(sorted(called(lambda: looked_at(entry.call(**entry.sound)))))}"
    if "number" in case:
        looked_at(entry.call(**(entry.sound | {case["argument"]: NUMBERS[case["number"]]})))
        return "answered"
    sound = entry.sound[case["argument"]]
    found = looked_at(entry.call(**(entry.sound | {case["argument"]: ARRAYS[case["array"]](sound)})))
    if case["array"] not in SAME:
        return "answered"
    assert found == looked_at(entry.call(**entry.sound)), f"{case}: another answer than for the array as it is"
    return "right"


def called(run: Callable[[], Any]) -> set[str]:
    """The functions of AdaWidth that a call leads to, as "file:first line"."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            found.add(f"{Path(frame.f_code.co_filename).relative_to(SOURCE)}:{frame.f_code.co_firstlineno}")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


if __name__ == "__main__":
    graph.SCANNED = 0  # a graph is walked, however small it is
    logging.disable()
    np.seterr(all="ignore")
    HOME = Path(sys.argv[1])
    (HOME / "scratch").mkdir(exist_ok=True)
    serve(outcome)
