"""Funnels, early abandoning and quantisers: what they promise to read, to find and to store."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.baselines.abandoning import abandon
from adawidth.baselines.adsampling import ADSampling
from adawidth.baselines.base import Baseline
from adawidth.baselines.funnel import PlainFunnel, SteppedFunnel
from adawidth.baselines.panorama import Panorama
from adawidth.baselines.quantised import PQ4, Int8, Quantised
from adawidth.data import Dataset, Queries, Vectors, unit
from adawidth.policies import Fixed
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend, Stage
from adawidth.stages.loop import exhaustive, run

WIDTH, INFINITE = 128, float("inf")
METHODS = [PlainFunnel, SteppedFunnel, ADSampling, Panorama, Int8, PQ4]


def shortlist(seed: int, documents: int = 80, queries: int = 5, decay: float = 40.0, start: int = 32) -> Stage:
    """All documents at the start width: random vectors whose energy falls from axis to axis, queries near some of them."""
    rng = np.random.default_rng(seed)
    spectrum = np.exp(-np.arange(WIDTH) / decay)
    rows = unit(rng.standard_normal((documents, WIDTH)) * spectrum)
    asked = unit(rows[rng.integers(documents, size=queries)] + 0.3 * rng.standard_normal((queries, WIDTH)) * spectrum)
    return MemoryBackend(Vectors.of(rows), Rotation.identity(WIDTH)).search(asked, start, documents)


def best(stage: Stage, k: int) -> np.ndarray:
    """The shortlist's k best at full width."""
    return run(stage, Fixed(WIDTH, int(stage.widths[0]))).ranked(k)[0]


shapes = {
    "seed": st.integers(0, 2**32 - 1),
    "documents": st.integers(12, 80),
    "decay": st.sampled_from([10.0, 40.0, 1e6]),
    "k": st.integers(1, 12),
}


@settings(max_examples=50, deadline=None)
@given(**shapes, epsilon=st.sampled_from([20.0, 1e3, INFINITE]))
def test_adsampling_with_a_large_epsilon_finds_every_true_neighbour(
    seed: int, documents: int, decay: float, k: int, epsilon: float
) -> None:
    """Even where the energy lies in the first coordinates, so that the estimate of a distance is 4 times too large."""
    stage = shortlist(seed, documents, decay=decay)
    np.testing.assert_array_equal(ADSampling().read(stage, epsilon, k).rows, best(stage, k))


@settings(max_examples=20, deadline=None)
@given(**shapes, epsilon=st.sampled_from([-2.0, 0.0, 2.1]))
def test_adsampling_in_one_step_is_exact(seed: int, documents: int, decay: float, k: int, epsilon: float) -> None:
    stage = shortlist(seed, documents, decay=decay, start=WIDTH)
    hits = ADSampling().read(stage, epsilon, k)
    np.testing.assert_array_equal(hits.rows, best(stage, k))
    assert (hits.widths == WIDTH).all()


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 1.0, 2.1])
def test_adsampling_reads_what_its_loop_reads(epsilon: float) -> None:
    """Its authors' loop in plain Python over float64 distances: a heap of k, a test after every 32 coordinates."""
    stage, k, widths = shortlist(3, documents=60, decay=1e6), 5, []
    rows = stage.backend.source.values.astype(np.float64)
    for query, candidates in zip(stage.queries.astype(np.float64), stage.candidates, strict=True):
        heap, read = [INFINITE] * k, 0
        for candidate in candidates:
            parts = np.cumsum((query - rows[candidate]) ** 2)
            for i in (32, 64, 96, 128):
                read += 32
                if i < WIDTH and parts[i - 1] > max(heap) * i / WIDTH * (1 + epsilon / np.sqrt(i)) ** 2:
                    break
            else:
                heap = sorted([*heap, parts[-1]])[:k]
        widths.append(read / len(candidates))
    assert min(widths) < WIDTH
    np.testing.assert_allclose(ADSampling().read(stage, epsilon, k).widths, widths)


@settings(max_examples=50, deadline=None)
@given(**shapes)
def test_panorama_with_factor_one_finds_the_full_width_answer(seed: int, documents: int, decay: float, k: int) -> None:
    stage = shortlist(seed, documents, decay=decay)
    proved = Panorama().read(stage, 1.0, k)
    np.testing.assert_array_equal(proved.rows, best(stage, k))
    np.testing.assert_array_equal(Panorama().read(stage, INFINITE, k).widths, proved.widths)


def test_panorama_reads_less_than_everything_and_with_a_smaller_factor_less_still() -> None:
    stage = shortlist(1, decay=40.0)
    widths = [Panorama().read(stage, factor, 3).mean_width for factor in (0.0, 0.5, 1.0)]
    assert 32 < widths[0] < widths[1] < widths[2] < WIDTH


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), candidates=st.integers(1, 30), levels=st.integers(1, 5), k=st.integers(1, 10))
def test_hopes_that_hold_lose_nobody(seed: int, candidates: int, levels: int, k: int) -> None:
    """The k best are read to the last level, ties with the k-th among them, in whatever order candidates come."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(10, size=(4, candidates)).astype(np.float64)
    hopes = scores[:, :, None] + rng.integers(6, size=(4, candidates, levels))
    read = abandon(hopes, scores, k)
    kth = np.sort(scores, axis=1)[:, ::-1][:, : min(k, candidates)][:, -1:]
    assert (read[scores >= kth] == levels - 1).all()
    assert (read[:, :k] == levels - 1).all()


def test_a_hopeless_candidate_is_given_up_at_the_first_level_that_shows_it() -> None:
    scores = np.array([[0.5, 0.4, 0.9]])
    hopes = np.array([[[1.0, 1.0, 0.5], [0.7, 0.45, 0.4], [1.0, 0.95, 0.9]]])
    assert abandon(hopes, scores, 1).tolist() == [[2, 1, 2]]


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([PlainFunnel, SteppedFunnel]),
    start=st.sampled_from([32, 64]),
    knob=st.floats(0.0, 3.0),
    k=st.integers(1, 12),
)
def test_funnels_cost_what_their_steps_say(seed: int, kind: type[PlainFunnel | SteppedFunnel], start: int, knob: float, k: int) -> None:
    stage, funnel = shortlist(seed, start=start), kind()
    steps = [step for step in funnel.steps(start, knob, k) if step[0] < WIDTH]
    edges = [*(width for width, _ in steps), WIDTH]
    assert edges[0] == start
    cost = start * 80 + sum(min(count, 80) * (end - begin) for (_, count), (begin, end) in zip(steps, pairwise(edges), strict=True))
    hits = funnel.read(stage, knob, k)
    np.testing.assert_allclose(hits.widths, cost / 80)
    assert hits.rows.shape == (5, k)


def test_funnels_keep_the_promised_counts() -> None:
    assert SteppedFunnel().steps(64, 1.0, 10) == ((64, 100), (128, 40), (256, 20))
    assert SteppedFunnel().steps(32, 0.4, 10) == ((32, 80), (64, 40), (128, 16), (256, 10))
    assert SteppedFunnel().steps(64, INFINITE, 10) == ((64, 500), (128, 500), (256, 500))
    assert PlainFunnel().steps(64, 0.2, 10) == ((64, 100),)


def test_a_funnel_spends_its_budget_to_the_candidate(collection: Dataset) -> None:
    funnel = PlainFunnel().fit(collection.learning())
    hits = funnel.search(collection.documents, collection.split("test"), 48, 10)
    setting = funnel.setting(48)
    assert setting is not None
    start, share = setting
    ((_, count),) = funnel.steps(start, share, 10)
    assert hits.mean_width == pytest.approx(32 + count * 32 / 480)
    assert 48 - 32 / 480 <= hits.mean_width <= 48
    assert funnel.multiply_adds(48, hits) == pytest.approx(64 * 64 + 480 * 32 + count * 32)
    assert (funnel.stored_floats(48), funnel.stored_floats(32)) == (64, 32)


def test_panorama_stores_its_tails(collection: Dataset) -> None:
    panorama = Panorama().fit(collection.learning())
    assert panorama.stored_floats(60) == 64 + 2  # beyond widths 32 and 48
    assert panorama.stored_floats(20) == 20


def test_int8_at_full_width_answers_as_floats_do(collection: Dataset) -> None:
    queries = collection.split("test")
    hits = Int8().fit(collection.learning()).search(collection.documents, queries, 64, 10)
    index = MemoryBackend(collection.documents, Rotation.identity(64))
    exact = exhaustive(index, queries.vectors.all(), 64, 10, queries.own)
    held = [len(set(a) & set(b)) for a, b in zip(hits.rows.tolist(), exact.rows.tolist(), strict=True)]
    assert np.mean(held) > 9.8
    np.testing.assert_allclose(hits.scores, exact.scores, atol=0.01)
    assert (hits.widths == 16).all()


@pytest.mark.parametrize(("width", "coordinates"), [(4, 16), (8, 32), (16, 64), (64, 64)])
def test_int8_stores_what_it_says(collection: Dataset, width: int, coordinates: int) -> None:
    method = Int8().fit(collection.learning())
    decoded = method.decoded(collection.documents, width)
    assert decoded.shape == (480, coordinates)
    assert method.stored_floats(width) == coordinates / 4
    assert max(len(np.unique(column)) for column in decoded.T) <= 256


@pytest.mark.parametrize(("width", "codes"), [(1, 8), (3, 16), (4, 32), (8, 64), (64, 64)])
def test_pq4_stores_what_it_says(collection: Dataset, width: int, codes: int) -> None:
    """All coordinates, in groups of which each has at most 16 values."""
    method = PQ4().fit(collection.learning())
    decoded = method.decoded(collection.documents, width)
    assert decoded.shape == (480, 64)
    assert method.stored_floats(width) == codes / 8 <= width
    groups = decoded.reshape(480, codes, -1)
    assert all(1 < len(np.unique(groups[:, i], axis=0)) <= 16 for i in range(codes))


def test_more_codes_lose_less(collection: Dataset) -> None:
    method, queries = PQ4().fit(collection.learning()), collection.split("test")
    scores = [method.search(collection.documents, queries, width, 10).scores for width in (1, 2, 4, 8)]
    exact = Int8().fit(collection.learning()).search(collection.documents, queries, 64, 10).scores
    errors = [np.abs(found - exact).mean() for found in scores]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("kind", METHODS)
def test_a_query_that_is_a_document_never_finds_itself(collection: Dataset, kind: type[Baseline]) -> None:
    method = kind().fit(collection.learning())
    rows = np.arange(0, 480, 17)
    vectors = collection.documents.select(rows)
    alone, free = (method.search(collection.documents, Queries(vectors, None, own), 40, 10) for own in (rows, np.full_like(rows, -1)))
    assert (free.rows[:, 0] == rows).mean() > 0.9
    assert not (alone.rows == rows[:, None]).any()
    assert (alone.rows >= 0).all()


@pytest.mark.parametrize("kind", [Int8, PQ4])
def test_equal_codes_come_in_the_order_of_trec_eval(kind: type[Quantised]) -> None:
    rng = np.random.default_rng(0)
    rows = unit(np.repeat(rng.standard_normal((30, 64)), 2, axis=0))
    documents = Vectors.of(rows, [f"d{i:02}" for i in range(60)])
    queries = Vectors.of(rows[::2])
    learning = Dataset(documents, queries).learning(labels=False)
    hits = kind().fit(learning).search(documents, Queries(queries, None, np.full(30, -1)), 64, 2)
    np.testing.assert_array_equal(hits.rows, np.stack([np.arange(1, 60, 2), np.arange(0, 60, 2)], axis=1))
