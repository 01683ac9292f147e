"""The graph: walks against a second implementation, answers against brute force, and what `auto` makes of the memory it is told of."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adawidth import AdaWidth
from adawidth.data import unit
from adawidth.errors import ArtifactError, OptionError
from adawidth.index import IndexFolder, codes
from adawidth.index.codes import Graph, build
from adawidth.index.codes import graph as graphs
from adawidth.index.codes.packed import bits_of
from adawidth.kernels import links, scan
from adawidth.kernels.graph import BEGINNINGS, NEIGHBOURS
from small_index import empty, vectors

N, M = 12_000, 32


@njit
def filled(query, matrix, points, leasts, tables):  # type: ignore[no-untyped-def]
    """The tables that a walk makes of a query, rounded as there."""
    turned = np.empty(len(matrix), np.float32)
    scan.turn(query, matrix, turned)
    scan.fill(turned, points, leasts, tables)


def block_of(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    spectrum = np.exp(-np.arange(M) / 12)
    centres = np.random.default_rng(99).standard_normal((40, M)) * spectrum
    return unit(centres[rng.integers(40, size=count)] + 0.7 * rng.standard_normal((count, M)) * spectrum)


@pytest.fixture(scope="module")
def built() -> Graph:
    made = build(block_of(0, N), "graph", seed=0)
    assert isinstance(made, Graph)
    return made


@pytest.fixture
def always_walking(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a segment is."""
    monkeypatch.setattr(graphs, "SCANNED", 0)


def scored(made: Graph, query: np.ndarray) -> np.ndarray:
    """A query's scores of all rows, as a walk adds them up."""
    arrays = made.arrays()
    levels = arrays["levels"]
    tables, leasts = np.empty((-(-arrays["codes"].shape[1] // 2) * 2, 2, 16), np.uint8), np.empty(M, np.float32)
    filled(query, arrays["turn"], np.ascontiguousarray(levels[:, None, :]), leasts, tables)
    every, held = np.arange(arrays["codes"].shape[1]), arrays["codes"]
    return np.asarray((tables[every, 0, held & 15].astype(int) + tables[every, 1, held >> 4]).sum(axis=1))


def walked(scores: np.ndarray, neighbours: np.ndarray, entries: np.ndarray, held: int) -> set[int]:
    """A plain beam search: all rows met. The row to be expanded next is chosen before the neighbours of the one before are looked at."""

    def ranked(rows: set[int]) -> list[int]:
        return sorted(rows, key=lambda row: (scores[row], row), reverse=True)

    beam = ranked(set(entries.tolist()))[: min(BEGINNINGS, held)]
    met, chosen = set(beam), list[int]()

    def choose() -> None:
        chosen.extend([row for row in beam if row not in chosen][:1])

    choose()
    expanded = 0
    while expanded < len(chosen):
        row, before = chosen[expanded], len(chosen)
        if before == expanded + 1:
            choose()
        near = {int(other) for other in neighbours[row] if other >= 0} - met
        met |= near
        beam = ranked({*beam, *near})[:held]
        expanded += 1
        if expanded == len(chosen):
            choose()
    return met


def best_of(rows: set[int], scores: np.ndarray, k: int) -> list[int]:
    """The k best, ascending; the lower row of equals is better."""
    return sorted(sorted(rows, key=lambda row: (-scores[row], row))[:k])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), count=st.integers(1, 300), held=st.integers(1, 80), k=st.integers(1, 80), share=st.floats(0, 1)
)  # fmt: skip
def test_a_walk_is_a_beam_search(seed: int, count: int, held: int, k: int, share: float) -> None:
    """Over graphs drawn at random: also where some rows can't be reached, and some have no neighbours."""
    rng = np.random.default_rng(seed)
    plain = codes.FourBit.build(unit(rng.standard_normal((count, M)).astype(np.float32)), seed=0).arrays()
    neighbours = rng.integers(0, count, (count, NEIGHBOURS)).astype(np.int32)
    neighbours[np.arange(NEIGHBOURS) >= rng.integers(0, 12, (count, 1))] = -1
    entries = np.unique(rng.integers(0, count, 20)).astype(np.int32)
    made = Graph(**plain, neighbours=neighbours, entries=entries, effort=np.array([100]))
    queries = unit(rng.standard_normal((3, M)).astype(np.float32))
    allowed = rng.random(count) < share
    found, some = made._walk(queries, k, held), made._walk(queries, k, held, allowed=bits_of(allowed))
    for query, rows, of_filter in zip(queries, found.tolist(), some.tolist(), strict=True):
        scores = scored(made, query)
        met = walked(scores, neighbours, entries, held)
        expected, left = best_of(met, scores, k), best_of({row for row in met if allowed[row]}, scores, k)
        assert sorted(rows) == [-1] * (k - len(expected)) + expected
        assert sorted(of_filter) == [-1] * (k - len(left)) + left


def test_many_rows_met_are_thinned_out_on_the_way(built: Graph) -> None:
    """A walk that meets more rows than there is room for finds the same."""
    queries = block_of(1, 5)
    found = built._walk(queries, 20, N)
    for query, rows in zip(queries, found, strict=True):
        scores = scored(built, query)
        reached = set(built._walk(query[None], N, N)[0].tolist()) - {-1}
        assert len(reached) > 0.99 * N
        assert sorted(rows.tolist()) == best_of(reached, scores, 20)


def test_neighbours_lie_apart() -> None:
    """Against a plain rendering of the rule; and each row is linked to nearest rows, or from there."""
    block = block_of(3, 300)
    near = np.argsort(-(block @ block.T), axis=1)[:, :60].astype(np.int64)
    linked, kept = np.empty((300, NEIGHBOURS), np.int32), np.empty(300, np.int64)
    links.link(block, 0, near, linked, kept)
    far = 2 - 2 * block.astype(np.float64) @ block.T
    for row in range(300):
        apart: list[int] = []
        others = [other for other in near[row].tolist() if other != row]
        for other in others:
            if len(apart) < NEIGHBOURS and all(links.APART * far[other, one] >= far[row, other] for one in apart):
                apart.append(other)
        passed = [other for other in others if other not in apart]
        assert linked[row].tolist() == [*apart, *passed][:NEIGHBOURS]
        assert kept[row] == len(apart)
    ends, sources = np.empty(300, np.int64), np.empty(int(kept.sum()), np.int32)
    links.reverse(linked, kept, ends, sources)
    for row, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        assert sources[begin:end].tolist() == [other for other in range(300) if row in linked[other, : kept[other]].tolist()]
    out = np.empty_like(linked)
    links.relink(block, 0, linked, ends, sources, out)
    for row in range(300):
        allowed = {*linked[row].tolist(), *sources[ends[row - 1] if row else 0 : ends[row]].tolist()}
        assert set(out[row].tolist()) <= allowed - {row}
        assert out[row, 0] == max(allowed - {row, -1}, key=lambda other: block[row] @ block[other])


@pytest.mark.parametrize("part", [1.0, 0.9, 0.3])
def test_a_walk_finds_what_a_scan_finds(built: Graph, always_walking: None, part: float) -> None:
    queries, allowed = block_of(1, 100), np.random.default_rng(2).random(N) < part
    plain = codes.FourBit.read(built.arrays())
    found, scanned = (made.search(queries, 60, None if part == 1 else allowed) for made in (built, plain))
    assert allowed[found].all()
    block = block_of(0, N)
    nearest = [rows[np.argsort(-(block[rows] @ query))[:10]] for query, rows in zip(queries, scanned, strict=True)]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(nearest, found, strict=True)]) >= 0.96


def test_a_filter_whose_rows_a_walk_does_not_meet_is_scanned(built: Graph, always_walking: None) -> None:
    """They lie together, far from the queries."""
    block, queries = block_of(0, N), block_of(1, 20)
    allowed = block @ block[0] > np.quantile(block @ block[0], 0.9)
    far = queries[np.argsort(queries @ block[0])[:8]]
    found = built.search(far, 50, allowed)
    assert allowed[found].all()
    exact = np.argsort(-np.where(allowed, far @ block.T, -2), axis=1)[:, :10]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]) >= 0.97


def test_small_segments_are_scanned(built: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("walked")

    monkeypatch.setattr(graphs.graph, "walk", refused)
    assert built.search(block_of(1, 2), 500).shape == (2, 500)
    monkeypatch.setattr(graphs, "SCANNED", 0)
    with pytest.raises(AssertionError, match="walked"):
        built.search(block_of(1, 2), 500)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("neighbours", np.full((N, NEIGHBOURS), N, np.int32), "neighbours run from 12000 to 12000, there are 12000 rows"),
        ("neighbours", np.full((N, NEIGHBOURS), -2, np.int32), "neighbours run from -2 to -2"),
        ("neighbours", np.zeros((N, NEIGHBOURS - 1), np.int32), "expected 'neighbours'"),
        ("entries", np.array([-1], np.int32), "entries run from -1 to -1"),
        ("entries", np.array([], np.int32), "0 entries"),
        ("entries", np.array([3, 5, 5], np.int32), "entries do not ascend"),
        ("effort", np.array([2**62]), "an effort of"),
        ("effort", np.array([0]), "an effort of 0 percent"),
    ],
)
def test_a_graph_that_leaves_its_rows_is_refused(built: Graph, name: str, values: np.ndarray, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        Graph.read({**built.arrays(), name: values})


def test_auto_takes_a_graph_where_it_pays_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SMALL", 50), ("WALKED", 200)):
        monkeypatch.setattr(codes, name, value)
    each = graphs.held_by_graph(16)
    for memory, storage in ((None, "pq4"), (300 * each - 1, "pq4"), (300 * each, "graph"), ("1GB", "graph")):
        index = empty(tmp_path / str(memory), memory=memory)
        index.add(vectors(), [f"d{i}" for i in range(300)])
        index.add(vectors(100, seed=1), [f"e{i}" for i in range(100)])
        assert [segment["storage"] for segment in index.facts()["segments"]] == [storage, "pq4"]
        assert IndexFolder(index.path).facts().get("memory") == (None if memory is None else 10**9 if memory == "1GB" else memory)
        index.compact()
        assert index.facts()["segments"][0]["storage"] == ("graph" if memory == "1GB" else "pq4")


def test_memory_is_for_auto_on_disk(tmp_path: Path) -> None:
    model = AdaWidth.fit(vectors(), recipe="pca")
    for options, message in (
        ({"memory": "1GB", "storage": "pq4"}, "storage 'pq4' is already chosen"),
        ({"memory": "much"}, "memory 'much' is no size"),
        ({"memory": -1}, "memory -1 is no size"),
    ):
        with pytest.raises(OptionError, match=message):
            model.index(vectors(), tmp_path / "i", **options)  # type: ignore[arg-type]
        assert not (tmp_path / "i").exists()
    with pytest.raises(OptionError, match="give a path as well"):
        model.index(vectors(), memory="1GB")
