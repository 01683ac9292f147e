"""The memory index against brute force, and the stage loop's bookkeeping."""

import numpy as np
import pytest

from adawidth.data import Dataset, Vectors, unit
from adawidth.rotation import Rotation
from adawidth.stages import Decision, MemoryBackend
from adawidth.types import Rows

WIDTH = 256


@pytest.fixture(scope="module")
def documents() -> Vectors:
    return Vectors.of(unit(np.random.default_rng(1).standard_normal((700, WIDTH))), [f"d{i}" for i in range(700)])


@pytest.fixture(scope="module")
def rotation() -> Rotation:
    return Rotation.random(WIDTH, seed=2)


@pytest.fixture(scope="module")
def index(documents: Vectors, rotation: Rotation) -> MemoryBackend:
    return MemoryBackend(documents, rotation)


@pytest.fixture(scope="module")
def queries(rotation: Rotation) -> np.ndarray:
    return rotation.apply(unit(np.random.default_rng(3).standard_normal((11, WIDTH))))


def cosines(queries: np.ndarray, rows: np.ndarray, width: int) -> np.ndarray:
    """Prefix scores in float64, from nothing but their definition."""
    q, d = (x[:, :width].astype(np.float64) for x in (queries, rows))
    return (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (d / np.linalg.norm(d, axis=1, keepdims=True)).T


@pytest.mark.parametrize("width", [32, 64, 255, 256])
def test_search_is_brute_force(index: MemoryBackend, queries: np.ndarray, width: int) -> None:
    stage = index.search(queries, width, 50)
    truth = cosines(queries, index.rows, width)
    best = np.argsort(-truth, axis=1)[:, :50]
    np.testing.assert_allclose(stage.scores, np.take_along_axis(truth, best, axis=1), atol=2e-6)
    np.testing.assert_allclose(np.take_along_axis(truth, stage.candidates, axis=1), stage.scores, atol=2e-6)
    assert (stage.coordinates == 50 * width).all()
    assert (stage.mean_widths == width).all()


def test_full_width_is_the_encoders_own_ranking(index: MemoryBackend, documents: Vectors, queries: np.ndarray, rotation: Rotation) -> None:
    stage = index.search(queries, WIDTH, 20)
    frozen = rotation.invert(queries) @ documents.all().T
    np.testing.assert_array_equal(stage.candidates, np.argsort(-frozen, axis=1)[:, :20])


def test_search_never_returns_a_querys_own_document(index: MemoryBackend, queries: np.ndarray) -> None:
    best = index.search(queries, 64, 1).candidates[:, 0]
    own = np.where(np.arange(len(queries)) % 2 == 0, best, -1)
    found = index.search(queries, 64, 700, own)
    for query, row in enumerate(own):
        assert row not in found.candidates[query, :699] or row == -1
        assert (found.candidates[query, -1] == -1) == (row >= 0)
    assert (found.coordinates == np.where(own >= 0, 699, 700) * 64).all()


def test_a_large_scan_is_the_same_in_parts(index: MemoryBackend, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    own = np.arange(len(queries))
    whole = index.search(queries, 64, 30, own)
    monkeypatch.setattr("adawidth.stages.memory.SCORES", 3 * 700)
    parts = index.search(queries, 64, 30, own)
    np.testing.assert_array_equal(parts.candidates, whole.candidates)
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-6)


def test_extension_equals_direct_computation_and_counts_coordinates(index: MemoryBackend, queries: np.ndarray) -> None:
    """From 64 to 256: what is added is what was not yet read, and nothing is read twice."""
    first = index.search(queries, 64, 40)
    second = index.rescore(first, Decision(first.alive, np.full(len(queries), WIDTH)))
    direct = index.open(queries, first.candidates, WIDTH)
    np.testing.assert_allclose(second.sums, direct.sums, atol=1e-5)
    np.testing.assert_allclose(second.scores, direct.scores, atol=1e-5)
    np.testing.assert_allclose(second.scores, np.take_along_axis(cosines(queries, index.rows, WIDTH), first.candidates, axis=1), atol=1e-5)
    assert (second.coordinates == 40 * WIDTH).all()
    assert (direct.coordinates == 40 * WIDTH).all()


def test_only_survivors_are_read_and_paid_for(index: MemoryBackend, queries: np.ndarray) -> None:
    first = index.search(queries, 32, 40)
    keep = np.zeros_like(first.alive)
    keep[:, :10] = True
    widths = np.where(np.arange(len(queries)) < 4, 128, 32)  # the others stop
    second = index.rescore(first, Decision(keep, widths))
    moved = widths > 32
    assert (second.coordinates == np.where(moved, 40 * 32 + 10 * 96, 40 * 32)).all()
    np.testing.assert_allclose(second.mean_widths, second.coordinates / 40)
    np.testing.assert_array_equal(second.scores[:, 10:], first.scores[:, 10:])
    truth = np.take_along_axis(cosines(queries, index.rows, 128), first.candidates, axis=1)
    np.testing.assert_allclose(second.scores[moved, :10], truth[moved, :10], atol=2e-6)
    np.testing.assert_array_equal(second.scores[~moved], first.scores[~moved])
    third = index.rescore(second, Decision(np.ones_like(keep), np.where(moved, WIDTH, 32)))
    assert (third.alive == keep).all()  # what was dropped stays dropped
    assert (third.coordinates == np.where(moved, 40 * 32 + 10 * (WIDTH - 32), 40 * 32)).all()


def test_the_dropped_follow_the_survivors(index: MemoryBackend, queries: np.ndarray) -> None:
    first = index.search(queries, 32, 40)
    keep = np.zeros_like(first.alive)
    keep[:, 5:15] = True
    second = index.rescore(first, Decision(keep, np.full(len(queries), WIDTH)))
    rows, scores = second.ranked(40)
    for query in range(len(queries)):
        assert set(rows[query, :10]) == set(first.candidates[query, 5:15])
        assert (np.diff(scores[query, :10]) <= 0).all()
        np.testing.assert_array_equal(rows[query, 10:], np.delete(first.candidates[query], np.s_[5:15]))


def test_padding_is_ranked_last_and_costs_nothing(index: MemoryBackend, queries: np.ndarray) -> None:
    candidates: Rows = np.tile(np.array([-1, 3, 1, -1, 2]), (len(queries), 1))
    stage = index.open(queries, candidates, 64)
    assert (stage.coordinates == 3 * 64).all()
    assert (stage.mean_widths == 64).all()
    wider = index.rescore(stage, Decision(np.ones_like(stage.alive), np.full(len(queries), 128)))
    assert (wider.coordinates == 3 * 128).all()
    rows, _ = wider.ranked(5)
    assert (rows[:, 3:] == -1).all()
    assert (np.sort(rows[:, :3], axis=1) == [1, 2, 3]).all()


def test_equal_scores_are_ranked_by_id_descending() -> None:
    vector = unit(np.random.default_rng(0).standard_normal((1, 64)))
    documents = Vectors.of(np.repeat(vector, 12, axis=0), [f"d{i}" for i in range(12)])
    index = MemoryBackend(documents, Rotation.identity(64))
    expected = sorted(documents.ids, reverse=True)
    stage = index.search(vector, 32, 12)
    assert [documents.ids[row] for row in stage.candidates[0]] == expected
    assert [documents.ids[row] for row in stage.ranked(12)[0][0]] == expected


def test_retrieval_works_on_the_small_collection(collection: Dataset) -> None:
    """What the other tests build on: a wider prefix finds more, and full width finds most."""
    test = collection.split("test")
    index = MemoryBackend(collection.documents, Rotation.identity(64))
    best = test.judged.documents[::2]  # each query's document of grade 2
    found = [index.search(test.vectors.all(), width, 10).candidates for width in (8, 32, 64)]
    share = [float((rows == best[:, None]).any(axis=1).mean()) for rows in found]
    assert share[0] < share[1] <= share[2]
    assert share[2] > 0.9


def test_equal_documents_are_ordered_by_id_under_every_rotation() -> None:
    """Rounding differs from place to place in a matrix product; it must not decide between equal documents."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1003, 70)).astype(np.float32)
    copies = rng.choice(1003, 200, replace=False)
    values[copies[100:]] = values[copies[:100]]
    documents = Vectors.of(values, [f"d{i:04}" for i in rng.permutation(1003)])
    queries = unit(values[copies[:100]] + 0.1 * rng.standard_normal((100, 70)))
    for seed in range(5):
        rotation = Rotation.random(70, seed)
        stage = MemoryBackend(documents, rotation).search(rotation.apply(queries), 64, 10)
        for i, (row, score) in enumerate(zip(stage.candidates, stage.scores, strict=True)):
            pair = [np.flatnonzero(row == copies[i]), np.flatnonzero(row == copies[100 + i])]
            assert score[pair[0]] == score[pair[1]]
            first, second = sorted((copies[i], copies[100 + i]), key=lambda r: str(documents.ids[r]), reverse=True)
            assert np.flatnonzero(row == first) < np.flatnonzero(row == second)
