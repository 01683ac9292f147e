"""The adaptive search over engines against each engine's own full-width search, at equal recall, in turns.

    python benchmarks/engines.py DATASET --encoder NAME --start 160 [--documents 30000] [--engines pgvector qdrant-edge lancedb ...]

Queries come in batches of 100, from one client thread, on both sides. Each side's one knob (the shortlist; the effort of HNSW) runs over a
grid, and times are read off between the grid's points at the recall wanted. Recall is of the exact full-width top 10. Wall clock, and
processor time of client and engine together, which other work on the machine disturbs less. Loads are timed whole: all documents sent and
every index built, ours with norms and what filters need, the engine's own with vectors and ids alone.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Dataset, Index, load_dataset
from adawidth.engines import EngineStore, engine_at
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push
from engines_table import RESULTS, write
from rival_engines import RIVALS, Answer, Rival

K, WANTED, TIMED, BATCH, TURNS = 10, 0.98, 200, 100, 2
FITTED = 20_000  # documents that the rotation is fitted on
SHORTLISTS = (20, 40, 80, 150, 300, 500, 1_000)
STEPPED = SHORTLISTS[1::2]  # of which the slower way takes these
EFFORTS = (20, 50, 100, 200, 400, 700, 1_000, 1_600)


def spent(rival: Rival) -> tuple[float, float]:
    """Wall clock, and processor time of this process and the engine's. Seconds."""
    return time.perf_counter(), time.process_time() + rival.processor_seconds()


def batches(queries: np.ndarray, size: int = BATCH) -> list[np.ndarray]:
    return [queries[begin : begin + size] for begin in range(0, len(queries), size)]


def curves(ways: Mapping[str, Mapping[int, Answer]], queries: np.ndarray, truth: Sequence[set[str]], rival: Rival) -> dict[str, list[Any]]:
    """Of each way, by its knob: recall and milliseconds a query, wall and processor. All ways take turns, and the best turn counts."""
    found: dict[tuple[str, int], list[Any]] = {}
    for _ in range(TURNS):
        for place in range(max(map(len, ways.values()))):
            for name, settings in ways.items():
                if place >= len(settings):
                    continue
                knob, answer = list(settings.items())[place]
                answer(queries[: BATCH // 5])
                before = spent(rival)
                answers = [names for batch in batches(queries) for names in answer(batch)]
                wall, processor = (1e3 * (after - first) / len(queries) for first, after in zip(before, spent(rival), strict=True))
                recall = float(np.mean([len(set(names) & wanted) / K for names, wanted in zip(answers, truth, strict=True)]))
                known = found.setdefault((name, knob), [knob, recall, wall, processor])
                known[2:] = [min(known[2], wall), min(known[3], processor)]
    return {name: [[knob, *(round(value, 4) for value in found[name, knob][1:])] for knob in ways[name]] for name in ways}


def at_recall(curve: Sequence[Sequence[float]], wanted: float, column: int) -> float | None:
    """Milliseconds at a recall: between the two settings around it, or at one beyond that is no slower; none if it is not reached."""
    place = next((place for place, point in enumerate(curve) if point[1] >= wanted), None)
    if place is None:
        return None
    beyond = min(float(point[column]) for point in curve[place:] if point[1] >= wanted)
    if place == 0:
        return beyond
    low, high = curve[place - 1], curve[place]
    share = (wanted - low[1]) / (high[1] - low[1])
    return min(beyond, float(np.exp((1 - share) * np.log(low[column]) + share * np.log(high[column]))))


def equal(drawn: Mapping[str, Sequence[Sequence[float]]], owns: Sequence[str]) -> dict[str, Any]:
    """Times at the recall wanted, or the most that both sides reach, and how much faster ours is than each of the engine's own."""
    wanted = min(WANTED, *(max(point[1] for point in drawn[way]) for way in ("own", "adaptive")))
    times = {kind: {way: at_recall(drawn[way], wanted, column) for way in drawn} for column, kind in ((2, "wall"), (3, "processor"))}
    return {
        "equal_recall": round(wanted, 4),
        "milliseconds": {kind: {way: value and round(value, 3) for way, value in found.items()} for kind, found in times.items()},
        "speedup": {
            kind: {way: round(found[way] / found["adaptive"], 2) for way in owns if found[way] and found["adaptive"]}  # type: ignore[operator]
            for kind, found in times.items()
        },
    }


@contextmanager
def by_steps(index: Index) -> Any:
    """Searches that bring candidates to the client, whatever that costs."""
    assert isinstance(index.store, EngineStore)
    engine = index.store.engine
    engine.one_request, before = False, engine.one_request  # type: ignore[misc]
    try:
        yield
    finally:
        engine.one_request = before  # type: ignore[misc]


def prices(index: Index, queries: np.ndarray, rival: Rival) -> dict[str, float]:
    """What engines/prices.py keeps: microseconds of processor time a query."""
    assert isinstance(index.store, EngineStore)
    engine, rotated = index.store.engine, index.model.rotate_queries(queries)
    start, keep, few, many = engine.layout.start, engine.layout.keep, 50, 350
    narrow, whole = np.ascontiguousarray(rotated[:, :start]), np.ascontiguousarray(rotated[:, :keep])

    def cost(ask: Callable[[], Any]) -> float:
        ask()
        before = spent(rival)[1]
        for _ in range(4):
            ask()
        return 1e6 * (spent(rival)[1] - before) / 4 / len(queries)

    found = [answer.ids for answer in engine.nearest(narrow, many, None)]
    brought = [cost(lambda size=size: engine.nearest(narrow, size, None)) for size in (few, many)]  # type: ignore[misc]
    scored = [cost(lambda size=size: engine.scores(whole, [ids[:size] for ids in found])) for size in (1, many)]  # type: ignore[misc]
    wide = [cost(lambda x=x: engine.widened(x, K, many, None)) for x in (narrow, whole)] if engine.one_request else [0.0, 0.0]  # type: ignore[misc]
    coordinate = max(0.0, wide[1] - wide[0]) / many / (keep - start)
    there, back = (brought[1] - brought[0]) / (many - few), (scored[1] - scored[0]) / (many - 1) - keep * coordinate
    measured = {"trip": scored[0], "candidate": there + max(0.0, back) / 2, "coordinate": coordinate}
    return {name: round(value, 4) for name, value in measured.items()}


def measure(name: str, data: Dataset, model: AdaWidth, start: int, folder: Path) -> dict[str, Any]:
    rival: Rival = RIVALS[name](folder)
    documents, ids = data.documents.all(), [str(one) for one in data.documents.ids]
    queries = data.queries_of("test").all()
    queries = queries[np.random.default_rng(0).permutation(len(queries))[:TIMED]]
    exact = np.argpartition(-(queries @ documents.T), K, axis=1)[:, :K]
    truth = [{ids[row] for row in rows} for rows in exact.tolist()]
    layout = layout_of(model, widths=(start,))
    engine_at(rival.url, "none").exists()  # the client's package is imported, and connected
    began = spent(rival)
    push(model, of_vectors(data.documents), rival.url, "ours", layout=layout)
    pushed = [after - before for before, after in zip(began, spent(rival), strict=True)]
    began = spent(rival)
    rival.load(documents, ids)
    loaded = [after - before for before, after in zip(began, spent(rival), strict=True)]
    index = connect(rival.url, "ours")
    assert isinstance(index.store, EngineStore)

    def ours(shortlist: int, **how: Any) -> Answer:
        return lambda batch: [[str(one) for one in names] for names in index.search(batch, K, shortlist=shortlist, **how).ids]

    def in_steps(shortlist: int) -> Answer:
        def answer(batch: np.ndarray) -> list[list[str]]:
            with by_steps(index):
                return ours(shortlist)(batch)

        return answer

    owns = rival.searches()
    ways: dict[str, dict[int, Answer]] = {
        **{way: {effort: search(effort) for effort in EFFORTS} if rival.has_effort else {0: search(0)} for way, search in owns.items()},
        "adaptive": {size: ours(size) for size in SHORTLISTS},
        "in_steps": {size: in_steps(size) for size in STEPPED},
    }
    drawn = curves(ways, queries, truth, rival)
    enough = next((point[0] for point in drawn["adaptive"] if point[1] >= WANTED), SHORTLISTS[-1])
    before = index.store.engine.trips
    hits = index.search(queries[:BATCH], K, shortlist=enough)
    trips = index.store.engine.trips - before
    with by_steps(index):
        steps = index.search(queries[:BATCH], K, shortlist=enough)
    ours_bytes, own_bytes = rival.sizes()
    return {
        "engine": name,
        "dataset": data.name,
        "encoder": data.encoder,
        "documents": len(ids),
        "encoder_width": data.documents.width,
        "widths": list(layout.widths),
        "load_average": round(os.getloadavg()[0], 1),
        "batch": BATCH,
        "curves": drawn,
        **equal(drawn, list(owns)),
        "shortlist": enough,
        "requests_a_batch": trips,
        "mean_width": {"adaptive": round(hits.mean_width, 1), "in_steps": round(steps.mean_width, 1)},
        "candidate_bytes": {way: int(found.read.bytes.mean()) for way, found in (("adaptive", hits), ("in_steps", steps)) if found.read},
        "prices": prices(index, queries[:BATCH], rival),
        "index_bytes": {"own": own_bytes, "ours": ours_bytes},
        "load_seconds": {
            kind: {"own": round(loaded[place], 1), "ours": round(pushed[place], 1)} for place, kind in enumerate(("wall", "processor"))
        },
    }


def fitted(data: Dataset) -> AdaWidth:
    """A PCA rotation, without labels, of some of the documents, its taper set on train queries."""
    rng = np.random.default_rng(0)
    documents = data.documents.select(np.sort(rng.permutation(len(data.documents))[:FITTED]))
    queries = data.queries_of("train").all()
    return AdaWidth.fit(documents, queries[rng.permutation(len(queries))[:1_000]], recipe="pca")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--start", type=int, default=128)
    parser.add_argument("--documents", type=int, help="take so many of them, at random")
    parser.add_argument("--engines", nargs="+", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data = load_dataset(arguments.dataset, arguments.encoder)
    if arguments.documents is not None:
        rows = np.random.default_rng(0).permutation(len(data.documents))[: arguments.documents]
        data = replace(data, documents=data.documents.select(np.sort(rows)))
    model = fitted(data)
    entries = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    found = {(entry["engine"], entry["dataset"], entry["documents"]): entry for entry in entries}
    for name in arguments.engines:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            entry = measure(name, data, model, arguments.start, Path(folder))
        found[name, entry["dataset"], entry["documents"]] = entry
        print(json.dumps(entry), flush=True)
        arguments.out.write_text(json.dumps([found[key] for key in sorted(found)], indent=1) + "\n")
    if arguments.out == RESULTS:
        write()


if __name__ == "__main__":
    main()
