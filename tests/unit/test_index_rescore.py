"""The fused rescoring against the stage loop over the same float16 rows."""

import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numba import njit

from adawidth.data import Vectors, unit
from adawidth.errors import DataError, OptionError
from adawidth.index.panels import of_rotation
from adawidth.index.rescore import FEW, Rescorer, fusible
from adawidth.kernels.float16 import products
from adawidth.kernels.rescore import Found
from adawidth.policies import Fixed, Policy
from adawidth.policies.certify import Certify
from adawidth.policies.features import order_statistics
from adawidth.policies.router import Head, Router, Trees
from adawidth.policies.taper import Calibration, Taper
from adawidth.rotation import QueryMap, Rotated, Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages
from adawidth.types import Rows

LADDER = (32, 40, 48, 64, 96, 128)


def index_of(rows: np.ndarray, ids: list[str] | None = None) -> MemoryBackend:
    """An index whose float32 rows are these float16 ones."""
    index = MemoryBackend(Vectors.of(rows.astype(np.float32), ids), Rotation.identity(rows.shape[1]))
    index.rows[:] = rows
    return index


def rescorer(index: MemoryBackend, cuts: tuple[int, ...] = ()) -> Rescorer:
    return Rescorer(np.split(index.rows.astype(np.float16), cuts), index.norms, index.documents.tie_rank)


def asked_of(queries: np.ndarray) -> Rotated:
    """Queries that are what they are rotated to, of any length."""
    return Rotated(np.ascontiguousarray(queries, np.float32), QueryMap.identity(Rotation.identity(queries.shape[1])))


def answer(fused: Rescorer, queries: np.ndarray, candidates: Rows, policy: Policy, k: int) -> Found:
    return fused.answer(asked_of(queries), candidates, policy, k)


def signs(seed: int, documents: int, queries: int, width: int) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Rows of ±1, whose sums and lengths are exact in any order: many equal scores, no rounding. Some candidates are padding."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1.0, 1.0], (documents, width)).astype(np.float16)
    rows[rng.random(documents) < 0.2] = rows[0]
    asked = rng.choice([-1.0, 1.0], (queries, width)).astype(np.float32)
    candidates = np.stack([rng.permutation(documents) for _ in range(queries)])[:, : rng.integers(1, documents + 1)]
    return rows, asked, np.where(rng.random(candidates.shape) < 0.1, -1, candidates)


def smooth(seed: int, documents: int, queries: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    spectrum = np.exp(-np.arange(width) / 40)
    rows, asked = (unit(rng.standard_normal((count, width)) * spectrum) for count in (documents, queries))
    return rows.astype(np.float16), asked


def assert_same(found: Found, index: MemoryBackend, queries: np.ndarray, candidates: Rows, policy: Policy, k: int) -> None:
    """Same rows, coordinates and scores as the stage loop's; rows may trade places where rounding alone tells them apart."""
    expected = by_stages(index, queries, policy, k, candidates=candidates)
    shown = expected.rows.shape[1]
    np.testing.assert_allclose(found.widths, expected.widths)
    np.testing.assert_allclose(found.scores[:, :shown], expected.scores, atol=1e-5)
    assert (found.rows[:, shown:] == -1).all()
    for query, place in np.argwhere(found.rows[:, :shown] != expected.rows):
        near = np.flatnonzero(np.abs(expected.scores[query] - found.scores[query, place]) < 1e-6)
        assert len(near) > 1, (query, place)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    documents=st.integers(1, 90),
    queries=st.integers(1, 4),
    steps=st.integers(1, len(LADDER)),
    z=st.sampled_from([0.0, 0.5, 1.0, 3.0, np.inf]),
    kept=st.integers(1, 20),
    k=st.integers(1, 90),
)
def test_taper_is_the_stage_loop_to_the_last_tie(seed: int, documents: int, queries: int, steps: int, z: float, kept: int, k: int) -> None:
    rows, asked, candidates = signs(seed, documents, queries, LADDER[-1])
    k = min(k, documents)
    rng = np.random.default_rng(seed)
    beta = np.where(rng.random(steps - 1) < 0.1, 0.0, rng.uniform(0.5, 1.2, steps - 1))  # without a slope all survive
    policy = Taper(Calibration(LADDER[:steps], beta, rng.uniform(0.02, 0.3, steps - 1)), z, kept)
    index = index_of(rows, [f"d{i}" for i in range(documents)])
    found = answer(rescorer(index, (documents // 3, documents // 2)), asked, candidates, policy, k)
    expected = by_stages(index, asked, policy, k, candidates=candidates)
    shown = expected.rows.shape[1]
    np.testing.assert_array_equal(found.rows[:, :shown], expected.rows)
    np.testing.assert_array_equal(found.widths, expected.widths)
    np.testing.assert_allclose(found.scores[:, :shown], expected.scores, atol=1e-6)
    assert (found.rows[:, shown:] == -1).all()


@njit
def read(row: np.ndarray, query: np.ndarray, count: int) -> tuple[float, float]:
    return products(row.ctypes.data, query.ctypes.data, count)  # type: ignore[call-arg]


@pytest.mark.parametrize("count", [*range(40), 63, 64, 100, 127])
def test_products_of_any_number_of_coordinates(count: int) -> None:
    """The numbers behind the last one are read by no one: they would make the sums NaN."""
    rng = np.random.default_rng(count)
    row, query = (np.full(128, np.nan, kind) for kind in (np.float16, np.float32))
    row[:count], query[:count] = rng.standard_normal(count), rng.standard_normal(count)
    wide = row[:count].astype(np.float64)
    np.testing.assert_allclose(read(row.view(np.uint16), query, count), (wide @ query[:count], wide @ wide), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [33, 128, 200])
@pytest.mark.parametrize("policy", [
    Taper(Calibration((32, 33), np.ones(1), np.full(1, 0.1)), 1.0),
    Taper(Calibration((32, 33), np.ones(1), np.full(1, 0.05)), 1.0, k=3),
    Fixed(32, 32), Fixed(33, 32),
])  # fmt: skip
def test_odd_widths(width: int, policy: Policy) -> None:
    rows, queries = smooth(width, 300, 7, width)
    index = index_of(rows)
    candidates = index.search(queries, 32, 200).candidates
    assert_same(answer(rescorer(index, (100,)), queries, candidates, policy, 10), index, queries, candidates, policy, 10)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_real_numbers_give_what_the_stage_loop_gives(k: int) -> None:
    rows, queries = smooth(k, 2000, 40, 128)
    index = index_of(rows)
    candidates = index.search(queries, 32, 500).candidates
    for sigma in (0.02, 0.1, 0.4):
        policy = Taper(Calibration(LADDER, np.linspace(0.7, 1, 5), np.full(5, sigma)), 1.5, k)
        assert_same(answer(rescorer(index), queries, candidates, policy, k), index, queries, candidates, policy, k)


def router(features: np.ndarray, widths: tuple[int, ...], price: float) -> Router:
    """Stumps that halve the queries of these features (Q, 18), and gains that rise and fall with the stumps' sum."""
    rng = np.random.default_rng(len(widths))
    trees = 7
    nodes = np.arange(3 * trees, dtype=np.int32).reshape(trees, 3)
    children = np.stack([nodes, nodes], axis=2)
    children[:, 0] = nodes[:, 1:]
    feature = rng.integers(18, size=3 * trees).astype(np.int32)
    ensemble = Trees(
        feature=feature,
        threshold=np.median(features, axis=0)[feature],
        children=children.reshape(-1, 2),
        value=np.outer(rng.uniform(0.5, 1.0, trees), [0.0, -1.0, 1.0]).ravel(),
        roots=nodes[:, 0].copy(),
        depths=np.ones(trees, np.int32),
    )
    curves = np.stack([(3 - i) * np.array([-2.0, -1.0, 1.0, 2.0, -1.0]) + i for i in range(len(widths))], axis=1)
    curves -= curves[:, :1]
    return Router(Head(widths, "paper", ensemble, np.linspace(-3, 3, 5), curves), 32, 0.1, price)


@pytest.mark.parametrize("price", [-np.inf, -0.01, 0.0, 0.003, np.inf])
@pytest.mark.parametrize("widths", [(32, 128), (48, 96), (32, 48, 64, 128)])
def test_router_is_the_stage_loop(widths: tuple[int, ...], price: float) -> None:
    rows, queries = smooth(5, 1500, 60, 128)
    index = index_of(rows)
    candidates = index.search(queries, 32, 300).candidates
    candidates[::7, 40:] = -1  # fewer than features look at
    policy = router(order_statistics(index.open(queries, candidates, 32).scores), widths, price)
    found = answer(rescorer(index, (700, 701)), queries, candidates, policy, 10)
    assert_same(found, index, queries, candidates, policy, 10)
    assert price != 0 or len(set(found.widths.tolist())) > 1


def test_a_query_without_candidates_has_no_answer() -> None:
    rows, queries = smooth(1, 50, 3, 64)
    index = index_of(rows)
    candidates = np.full((3, 20), -1)
    candidates[1, 3] = 7
    for policy in (Fixed(64, 32), Taper(Calibration((32, 64), np.ones(1), np.ones(1)), 1.0), router(np.zeros((1, 18)), (32, 64), 0.001)):
        found = answer(rescorer(index), queries, candidates, policy, 5)
        assert found.rows.tolist() == [[-1] * 5, [7, -1, -1, -1, -1], [-1] * 5]
        assert np.isneginf(found.scores[0]).all()
        assert found.coordinates[0] == found.widths[0] == 0


def test_threads_change_nothing() -> None:
    rows, queries = smooth(2, 1000, 51, 128)
    index = index_of(rows)
    candidates = index.search(queries, 32, 400).candidates
    policy = Taper(Calibration(LADDER, np.ones(5), np.full(5, 0.1)), 1.0)
    fused = rescorer(index)
    alone = answer(fused, queries, candidates, policy, 10)
    answers: list[Found] = []
    workers = [threading.Thread(target=lambda: answers.append(answer(fused, queries, candidates, policy, 10))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 4
    for found in answers:
        np.testing.assert_array_equal(found.rows, alone.rows)
        np.testing.assert_array_equal(found.scores, alone.scores)
        np.testing.assert_array_equal(found.coordinates, alone.coordinates)


def test_half_precision_is_read_exactly() -> None:
    """Every finite float16, subnormal ones too, becomes the float32 of the same value."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    every = every[np.isfinite(every) & (every != 0)]
    rows = np.zeros((len(every), 32), np.float16)
    rows[:, 0] = every
    rows[:, 1] = 1.0
    query = np.zeros((1, 32), np.float32)
    query[0, 0] = 1.0
    fused = Rescorer([rows], lambda width: np.ones(len(rows), np.float32), np.arange(len(rows)))
    found = answer(fused, query, np.arange(len(rows))[None], Fixed(32, 32), len(rows))
    values = every[found.rows[0]].astype(np.float64)
    np.testing.assert_allclose(found.scores[0], values / np.hypot(values, 1.0), rtol=1e-6)


def test_what_can_not_be_fused_is_refused() -> None:
    rows, queries = smooth(3, 40, 2, 64)
    index = index_of(rows)
    fused = rescorer(index)
    candidates = np.arange(20)[None].repeat(2, axis=0)
    certify = Certify(32, 64)
    assert not fusible(certify)
    with pytest.raises(OptionError, match="certify"):
        answer(fused, queries, candidates, certify, 5)
    with pytest.raises(OptionError, match=r"128 coordinates.*64"):
        answer(fused, queries, candidates, Fixed(128, 32), 5)
    with pytest.raises(DataError, match=r"row 40.*40 rows"):
        answer(fused, queries, candidates + 21, Fixed(64, 32), 5)
    with pytest.raises(OptionError, match=r"widths \[-5\].*at least 1"):
        answer(fused, queries, candidates, Fixed(-5, -5), 5)
    with pytest.raises(DataError, match="k = 0"):
        answer(fused, queries, candidates, Fixed(64, 32), 0)
    for asked in (queries[:, :48], queries[:1]):
        with pytest.raises(DataError, match="64 wide"):
            answer(fused, asked, candidates, Fixed(64, 32), 5)
    with pytest.raises(DataError, match="segment 1"):
        Rescorer([rows, rows.astype(np.float32)], index.norms, np.arange(80))


def test_a_query_is_rotated_as_far_as_it_is_read() -> None:
    rows, queries = smooth(6, 600, 5, 128)
    index, rotation = index_of(rows), Rotation.random(128, seed=3)
    given = unit(queries @ rotation.matrix)
    candidates = index.search(queries, 32, 300).candidates
    taper = Taper(Calibration((32, 64, 128), np.ones(2), np.full(2, 1e-6)), 0.0, 5)
    routed = router(order_statistics(index.open(queries, candidates, 32).scores), (32, 128), 1e9)
    for policy, widest in ((taper, 128), (Fixed(48, 32), 64), (routed, 32)):
        asked = Rotated(given, rotation)
        asked.upto(32)
        found = rescorer(index).answer(asked, candidates, policy, 5)
        assert asked.ready.max() == widest  # in panels of 32
        np.testing.assert_array_equal(found.rows, by_stages(index, asked.all(), policy, 5, candidates=candidates).rows)


@pytest.mark.parametrize("width", [1, 5, 32, 75, 9 * 64 + 5])
def test_few_queries_are_rotated_by_axes_of_float16(width: int) -> None:
    """In panels of 32, the last of which may have fewer; many are rotated together, in float32."""
    rotation, bias = Rotation.random(width), np.linspace(-1, 1, width, dtype=np.float32)
    documents, queries = smooth(4, 400, FEW + 1, width)
    fused = rescorer(index_of(unit(documents).astype(np.float16)))
    candidates = np.tile(np.arange(400), (FEW + 1, 1))
    for through in (rotation, QueryMap(rotation.matrix, bias, rotation.fingerprint)):
        asked = Rotated(unit(queries[:1]), through)
        one = fused.answer(asked, candidates[:1], Fixed(width, 1), 10)
        np.testing.assert_allclose(asked.values, through.apply(unit(queries[:1])), atol=4e-4)
        together = fused.answer(Rotated(unit(queries), through), candidates, Fixed(width, 1), 10)
        np.testing.assert_allclose(one.scores[0], together.scores[0], atol=1e-4)


def test_a_query_map_too_large_for_float16_gives_numbers() -> None:
    panels = of_rotation(np.full((300, 300), 1e9, np.float32)).view(np.float16)
    assert panels.shape == (10, 300, 32)
    assert np.isfinite(panels).all()
    assert panels.max() > 6e4
