"""A user's faiss index in front of documents in memory and on disk: the same answers as brute force over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from adawidth import AdaWidth, Index
from adawidth.errors import DataError, OptionError
from adawidth.types import F32

WIDTH, START, COUNT = 96, 32, 800


@pytest.fixture(scope="module")
def documents() -> F32:
    rng = np.random.default_rng(3)
    return (rng.standard_normal((COUNT, WIDTH)) * np.linspace(2.0, 0.2, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def queries(documents: F32) -> F32:
    return documents[::50] + 0.3 * np.random.default_rng(4).standard_normal((COUNT // 50, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def model(documents: F32) -> AdaWidth:
    return AdaWidth.fit(documents, recipe="pca")


@pytest.fixture(params=["memory", "disk"])
def index(request: pytest.FixtureRequest, model: AdaWidth, documents: F32, tmp_path: Path) -> Index:
    path = tmp_path / "index" if request.param == "disk" else None
    return model.index(documents, path, ids=[f"d{row}" for row in range(COUNT)], metadata=[{"even": row % 2 == 0} for row in range(COUNT)])


def flat(model: AdaWidth, documents: F32) -> Any:
    finder = faiss.IndexFlatIP(START)
    finder.add(model.rotate(documents, START))
    return finder


def graph(model: AdaWidth, documents: F32) -> Any:
    finder = faiss.IndexHNSWFlat(START, 16)  # L2 over unit vectors
    finder.hnsw.efSearch = 600
    finder.add(model.rotate(documents, START))
    return finder


@pytest.mark.parametrize("make", [flat, graph])
@pytest.mark.parametrize("width", [START, WIDTH])
def test_answers_are_those_of_brute_force(index: Index, model: AdaWidth, documents: F32, queries: F32, make: Any, width: int) -> None:
    hits = index.with_finder(make(model, documents)).search(queries, k=10, width=width, start=START)
    scores = model.rotate_queries(queries, width).astype(np.float64) @ model.rotate(documents, width).astype(np.float64).T
    wanted = np.argsort(-scores, axis=1)[:, :10]
    shared = [len({f"d{row}" for row in rows} & set(found)) for rows, found in zip(wanted.tolist(), hits.ids, strict=True)]
    assert np.mean(shared) >= 9.8
    np.testing.assert_allclose(hits.scores[:, 0], scores.max(axis=1), atol=1e-3)


def test_an_exact_faiss_index_changes_no_answer_of_the_default_policy(index: Index, model: AdaWidth, documents: F32, queries: F32) -> None:
    hits = index.with_finder(flat(model, documents)).search(queries, k=10)
    without = model.index(documents, ids=[f"d{row}" for row in range(COUNT)]).search(queries, k=10, start=START)
    same = np.mean([len(set(one) & set(other)) for one, other in zip(hits.ids, without.ids, strict=True)])
    assert same == 10 if index.path is None else same >= 9.9  # rows on disk are float16
    assert hits.mean_width == pytest.approx(without.mean_width, rel=0.02)


def test_only_what_the_faiss_index_finds_is_read(index: Index, model: AdaWidth, documents: F32, queries: F32) -> None:
    finder = faiss.IndexIVFFlat(faiss.IndexFlatIP(START), START, 8, faiss.METRIC_INNER_PRODUCT)
    finder.train(model.rotate(documents, START))
    finder.add(model.rotate(documents, START))
    assert finder.nprobe == 1
    _, allowed = finder.search(model.rotate_queries(queries, START), COUNT)
    hits = index.with_finder(finder).search(queries, k=20)
    for found, rows in zip(hits.ids, allowed, strict=True):
        assert set(found) <= {f"d{row}" for row in rows if row >= 0}


def test_a_filter_is_met(index: Index, model: AdaWidth, documents: F32, queries: F32) -> None:
    hits = index.with_finder(flat(model, documents)).search(queries, k=10, where={"even": True})
    assert all(int(name[1:]) % 2 == 0 for answer in hits.ids for name in answer)


def test_a_file_of_a_faiss_index(index: Index, model: AdaWidth, documents: F32, tmp_path: Path) -> None:
    faiss.write_index(flat(model, documents), str(tmp_path / "prefixes.faiss"))
    found = index.with_finder(tmp_path / "prefixes.faiss")
    assert found.search(documents[7], k=1).ids == [["d7"]]
    assert found.facts()["finder"] == "IndexFlatIP"
    with pytest.raises(DataError, match=r"nowhere\.faiss"):
        index.with_finder("nowhere.faiss")


def test_a_faiss_index_of_other_vectors_is_refused(index: Index, model: AdaWidth, documents: F32) -> None:
    unrotated = faiss.IndexFlatIP(START)
    unrotated.add(documents[:, ::-1][:, :START])
    fewer = flat(model, documents[:700])
    wider = faiss.IndexFlatIP(WIDTH + 1)
    wider.add(np.ones((COUNT, WIDTH + 1), np.float32))
    moved = faiss.IndexIDMap(faiss.IndexFlatIP(START))
    moved.add_with_ids(model.rotate(documents, START), np.arange(COUNT) + 5_000)
    for finder, message in ((unrotated, "model.rotate"), (fewer, "700 rows"), (wider, f"{WIDTH + 1} wide"), (moved, "from 0 on")):
        with pytest.raises(DataError, match=message):
            index.with_finder(finder)
    with pytest.raises(OptionError, match="list"):
        index.with_finder([1.0])


def test_documents_behind_a_faiss_index_do_not_change(index: Index, model: AdaWidth, documents: F32) -> None:
    found = index.with_finder(flat(model, documents))
    for attempt in (lambda: found.add(documents[:1], ["new"]), lambda: found.remove("d1")):
        with pytest.raises(OptionError, match="do not change"):
            attempt()
    assert len(found) == COUNT
    assert "d1" in found
