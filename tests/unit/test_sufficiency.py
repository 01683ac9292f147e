"""Required widths against brute force, and what every corpus must satisfy."""

import tracemalloc

import numpy as np
import pytest

from adawidth.data import Dataset, Judged, Qrels, Queries, Vectors
from adawidth.errors import DataError, OptionError
from adawidth.rotation import Rotation
from adawidth.sufficiency import RequiredWidths, required_widths
from adawidth.sufficiency import overtakers as module

DEPTHS = (1, 3, 5, 10)


@pytest.fixture(scope="module")
def required(collection: Dataset) -> RequiredWidths:
    return required_widths(collection.documents, collection.split("train"), depths=DEPTHS, smallest=60)


def brute_force(data: Dataset, queries: Queries, rotation: Rotation, sizes: list[int], seed: int, chain: int) -> np.ndarray:
    """Required widths in float64, one pair, size, depth and width after the other. (S, K, P)"""
    documents, asked = (x.all().astype(np.float64) @ rotation.matrix.T for x in (data.documents, queries.vectors))
    order = np.random.default_rng((seed, chain)).permutation(len(documents))
    grid = list(range(8, data.documents.width + 1, 8))
    pairs = [(i, d) for i in range(len(queries)) for d in queries.judged.positives(i).tolist()]
    out = np.full((len(sizes), len(DEPTHS), len(pairs)), np.inf)
    for p, (i, positive) in enumerate(pairs):
        barred = {*queries.judged.positives(i).tolist(), int(queries.own[i])}
        scores = {m: documents[:, :m] @ asked[i, :m] / np.linalg.norm(documents[:, :m], axis=1) for m in grid}
        for s, size in enumerate(sizes):
            rivals = [d for d in order[:size].tolist() if d not in barred]
            counts = [int((scores[m][rivals] >= scores[m][positive] - 1e-9).sum()) for m in grid]
            for j, k in enumerate(DEPTHS):
                good = [all(count < k for count in counts[w:]) for w in range(len(grid))]
                if any(good):
                    out[s, j, p] = grid[good.index(True)]
    return out


@pytest.mark.parametrize("blocks", [(128, 2048), (7, 50)])
def test_required_widths_are_those_of_brute_force(collection: Dataset, blocks: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUERY_BLOCK", blocks[0])
    monkeypatch.setattr(module, "DOCUMENT_BLOCK", blocks[1])
    queries = collection.split("train").select(range(25))
    queries = Queries(queries.vectors, queries.judged, np.where(np.arange(25) % 3, -1, 40))  # a third of them is document 40
    rotation = Rotation.random(collection.documents.width, seed=1)
    found = required_widths(collection.documents, queries, rotation, depths=DEPTHS, smallest=60, chains=2, seed=5)
    assert found.sizes.tolist() == [60, 120, 240, 480]
    for chain in range(2):
        np.testing.assert_array_equal(found.values[chain], brute_force(collection, queries, rotation, [60, 120, 240, 480], 5, chain))


def test_widths_grow_with_the_corpus_and_shrink_with_the_depth(required: RequiredWidths) -> None:
    by_size = np.maximum.accumulate(required.values, axis=1)
    by_depth = np.minimum.accumulate(required.values, axis=2)
    np.testing.assert_array_equal(by_size, required.values)
    np.testing.assert_array_equal(by_depth, required.values)
    assert len(np.unique(required.values)) > 4


def test_the_whole_corpus_is_the_same_in_every_chain(required: RequiredWidths) -> None:
    assert (required.values[:, -1] == required.values[:1, -1]).all()
    assert (required.values[:, 0] != required.values[:1, 0]).any()


def test_a_copy_of_the_relevant_document_overtakes_it_at_every_width() -> None:
    rng = np.random.default_rng(0)
    documents = rng.standard_normal((400, 64)).astype(np.float32)
    documents[1:4] = documents[0]
    queries = Vectors.of(documents[:1] + 0.05 * rng.standard_normal((1, 64)).astype(np.float32))
    found = required_widths(Vectors.of(documents), Queries(queries, Judged.of([{0: 1.0}]), np.array([-1])), depths=(3, 5), smallest=100)
    assert np.isinf(found.values[:, -1, 0]).all()  # three copies fill a top 3
    assert np.isfinite(found.values[:, -1, 1]).all()


def test_a_quantile_is_enough_for_its_share_and_infinite_where_too_many_are_censored() -> None:
    values = np.array([8, 16, 24, 32, 40, 48, 56, 64, np.inf, np.inf], np.float32).reshape(1, 1, 1, 10)
    found = RequiredWidths(np.arange(8, 65, 8), np.array([100]), np.array([1]), values, np.arange(10), np.zeros((10, 8), np.int32))
    assert [found.quantile(q).item() for q in (0.1, 0.5, 0.75, 0.8)] == [8, 40, 64, 64]
    assert found.quantile(0.81).item() == np.inf
    assert found.censored().item() == pytest.approx(0.2)


def test_the_best_relevant_document_of_a_query(required: RequiredWidths) -> None:
    best = required.best()
    assert len(best) == 120 < len(required) == 240
    np.testing.assert_array_equal(best.values[..., 3], required.values[..., required.queries == 3].min(axis=-1))


def test_a_draw_takes_queries_whole(required: RequiredWidths) -> None:
    drawn = required.draw(np.random.default_rng(0))
    assert len(drawn) == len(required)  # every query has two relevant documents here
    known = {required.overtakers[pair : pair + 2].tobytes() for pair in range(0, 240, 2)}
    assert {drawn.overtakers[pair : pair + 2].tobytes() for pair in range(0, 240, 2)} < known


def test_memory_stays_below_the_formula() -> None:
    rng = np.random.default_rng(0)
    n, d, q = 20_000, 128, 300
    documents = Vectors.of(rng.standard_normal((n, d)).astype(np.float16).astype(np.float32))
    queries = Vectors.of(rng.standard_normal((q, d)).astype(np.float32))
    judged = Queries(queries, Judged.of([{i: 1.0} for i in range(q)]), np.full(q, -1))
    required_widths(documents, judged.select(range(2)), smallest=4000)  # compiles
    tracemalloc.start()
    found = required_widths(documents, judged, smallest=600)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    p, w, c, s, k = len(found), len(found.widths), len(found.values), len(found.sizes), len(found.depths)
    allowed = 4 * p * w * (c * s + 2) + 4 * p * c * s * (k + 2) + 4 * d * (q + p) + (c + 16) * n + 80_000 * (d + 100)
    assert peak < allowed < 8 * n * d * 4


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"smallest": 500}, DataError, r"480 documents make 0 of the 3 corpus sizes .*have 2000 documents"),
        ({"smallest": 200}, DataError, r"480 documents make 2 of the 3"),
        ({"smallest": 2}, OptionError, "at least 5"),
        ({"depths": (10,)}, OptionError, r"at least 2 depths k of at most 12 .*found 1 among 10"),
        ({"depths": (5, 100)}, OptionError, "found 1 among 5, 100"),
        ({"depths": (0, 5)}, OptionError, "depth 0"),
        ({"chains": 1}, OptionError, "chains is 1, at least 2"),
    ],
)
def test_what_can_not_be_measured_is_refused(collection: Dataset, change: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        required_widths(collection.documents, collection.split("train"), **{"smallest": 60, **change})


def test_labels_are_needed(collection: Dataset) -> None:
    with pytest.raises(DataError, match="no labels"):
        required_widths(collection.documents, Queries(collection.queries, None, np.full(len(collection.queries), -1)), smallest=60)
    nothing = Dataset(collection.documents, collection.queries, {"train": Qrels({"q0": {"d0": 0.0}}, "train")}, "nothing")
    with pytest.raises(DataError, match="none of the 1 queries has a relevant document"):
        required_widths(nothing.documents, nothing.split("train"), smallest=60)
