"""Certified answers equal brute force, and the bounds they rest on hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.data import Vectors, unit
from adawidth.policies import Fixed
from adawidth.policies.certify import Certify, spread
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend, Stage
from adawidth.stages.loop import by_stages, run

WIDTH = 96


def made(seed: int, documents: int = 60, queries: int = 10, decay: float = 20.0, offset: float = 0.5, twins: int = 0) -> Stage:
    """A stage at width 32 over random vectors whose energy falls from axis to axis; `twins` documents stand in twice."""
    rng = np.random.default_rng(seed)
    spectrum = np.exp(-np.arange(WIDTH) / decay)
    mean = offset * rng.standard_normal(WIDTH) * spectrum
    rows = unit(rng.standard_normal((documents, WIDTH)) * spectrum + mean)
    rows[documents - twins :] = rows[:twins]
    asked = unit(rows[rng.integers(documents, size=queries)] + 0.3 * rng.standard_normal((queries, WIDTH)) * spectrum)
    index = MemoryBackend(Vectors.of(rows), Rotation.identity(WIDTH))
    return index.search(asked, 32, documents)


def exact(stage: Stage, width: int = WIDTH) -> np.ndarray:
    """Scores of all candidates at a width, in float64."""
    rows = np.stack([np.asarray(stage.backend.source.values, np.float64)[c] for c in stage.candidates])[..., :width]  # (Q, C, m)
    queries = stage.queries[:, :width].astype(np.float64)
    scores = np.einsum("qd,qcd->qc", queries, rows)
    return scores / np.linalg.norm(rows, axis=2) / np.linalg.norm(queries, axis=1)[:, None]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    documents=st.integers(3, 80),
    decay=st.sampled_from([3.0, 10.0, 40.0, 1e6]),
    offset=st.sampled_from([0.0, 1.0, 3.0]),
    twins=st.integers(0, 1),
    k=st.integers(1, 12),
    target=st.sampled_from([64, WIDTH]),
)
def test_the_answer_equals_brute_force(seed: int, documents: int, decay: float, offset: float, twins: int, k: int, target: int) -> None:
    """100 examples of 10 queries: 1,000 random trials. Scores nearer than float32 can tell may come in either order."""
    stage = made(seed, documents, 10, decay, offset, twins)
    k = min(k, documents)
    rows, _ = run(stage, Certify(32, target, k)).ranked(k)
    scores = np.empty((len(stage), documents))
    np.put_along_axis(scores, stage.candidates, exact(stage, target), axis=1)  # by document row
    for answer, truth in zip(rows, scores, strict=True):
        assert len(set(answer.tolist())) == k
        np.testing.assert_allclose(truth[answer], np.sort(truth)[::-1][:k], rtol=0, atol=1e-6)
    brute, _ = run(stage, Fixed(target, 32)).ranked(k)
    gaps = np.abs(np.diff(-np.sort(-scores, axis=1)[:, : k + 1], axis=1))
    clear = (gaps > 1e-6).all(axis=1)
    np.testing.assert_array_equal(rows[clear], brute[clear])


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    decay=st.sampled_from([3.0, 20.0, 1e6]),
    offset=st.sampled_from([0.0, 1.0, 3.0]),
    width=st.sampled_from([32, 48, 80]),
)
def test_bounds_hold_and_blocks_are_never_looser(seed: int, decay: float, offset: float, width: int) -> None:
    stage = run(made(seed, decay=decay, offset=offset), Fixed(width, 32))
    every = np.arange(len(stage))
    truth = exact(stage)
    tail = stage.queries[:, width:].astype(np.float64) @ stage.backend.centre[width:]
    edges = [m for m in (32, 48, 64, 80, 96) if m >= width]
    plain, centred = (spread(stage, every, (width, WIDTH), centred=c) for c in (False, True))
    block, centred_block = (spread(stage, every, edges, centred=c) for c in (False, True))
    for slack, middle in ((plain, 0.0), (block, 0.0), (centred, tail[:, None]), (centred_block, tail[:, None])):
        assert (np.abs(truth - stage.sums - middle) <= slack + 1e-6).all()
    assert (block <= plain + 1e-6).all()
    assert (centred_block <= centred + 1e-6).all()
    lower, upper = Certify(width, WIDTH).bounds(stage)
    assert (lower <= truth + 1e-6).all()
    assert (truth <= upper + 1e-6).all()
    assert (upper - lower <= 2 * np.minimum(block, centred_block) + 1e-6).all()


def test_the_partial_distance_is_never_tighter() -> None:
    stage = made(3)
    slack = spread(stage, np.arange(len(stage)), (32, WIDTH))
    tail = 1 - np.linalg.norm(stage.queries[:, :32], axis=1)[:, None] ** 2
    others = 1 - stage.backend.norms(32)[stage.candidates] ** 2
    assert (slack <= (tail + others) / 2 + 1e-6).all()


def test_clear_queries_stop_early_and_say_so() -> None:
    rng = np.random.default_rng(0)
    rows = np.eye(WIDTH, dtype=np.float32)[rng.permutation(40)] + 0.01 * rng.standard_normal((40, WIDTH)).astype(np.float32)
    index = MemoryBackend(Vectors.of(unit(rows)), Rotation.identity(WIDTH))
    hard = unit(rng.standard_normal((1, WIDTH)))
    easy = np.eye(WIDTH, dtype=np.float32)[:1]  # nothing of it lies beyond width 32
    queries = np.concatenate([hard, easy])
    hits = by_stages(index, queries, Certify(32, WIDTH, 1), 1, shortlist=40)
    assert hits.widths[0] > 32
    assert hits.widths[1] == 32
    np.testing.assert_array_equal(hits.rows, by_stages(index, queries, Fixed(WIDTH, 32), 1, shortlist=40).rows)


@pytest.mark.parametrize("k", [1, 4])
def test_twins_are_never_told_apart_by_a_proof(k: int) -> None:
    """Equal documents have equal bounds: with every document there twice, every query is read to the end."""
    done = run(made(5, documents=8, twins=4), Certify(32, WIDTH, k))
    assert (done.widths == WIDTH).all()
