"""What every policy must do: endpoints equal the fixed policy, and costs are what was read."""

import numpy as np
import pytest

from adawidth.data import Vectors, unit
from adawidth.errors import OptionError
from adawidth.policies import Fixed, Policy
from adawidth.policies.certify import Certify
from adawidth.policies.funnel import Funnel
from adawidth.policies.taper import Calibration, Taper
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages, run

D = 96


@pytest.fixture(scope="module")
def index() -> MemoryBackend:
    rng = np.random.default_rng(0)
    return MemoryBackend(Vectors.of(unit(rng.standard_normal((300, D)) * np.exp(-np.arange(D) / 20))), Rotation.identity(D))


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    rng = np.random.default_rng(1)
    return unit(rng.standard_normal((40, D)) * np.exp(-np.arange(D) / 20))


def taper(z: float, ladder: tuple[int, ...] = (32, 48, 64, D), band: float = 0.05, k: int = 10) -> Taper:
    steps = len(ladder) - 1
    return Taper(Calibration(ladder, np.ones(steps), np.full(steps, band / np.sqrt(2))), z, k)


@pytest.mark.parametrize("policy", [taper(0), taper(1.0), taper(3.0), Certify(32, D), Funnel(D, ((32, 100), (64, 20))), Fixed(64, 32)])
def test_each_coordinate_is_paid_once(index: MemoryBackend, queries: np.ndarray, policy: Policy) -> None:
    """A candidate that was read to width m has cost m, however many steps it took."""
    done = run(index.search(queries, policy.start, 200), policy)
    np.testing.assert_array_equal(done.coordinates, done.last.sum(axis=1))
    for width in np.unique(done.last).tolist():
        here = done.last == width
        whole = index.open(queries, done.candidates, width)
        np.testing.assert_allclose(done.sums[here], whole.sums[here], atol=1e-6)
        np.testing.assert_allclose(done.scores[here], whole.scores[here], atol=1e-6)


@pytest.mark.parametrize("shortlist", [5, 10, 200, 300])
def test_endless_z_is_the_fixed_policy(index: MemoryBackend, queries: np.ndarray, shortlist: int) -> None:
    ours, fixed = (by_stages(index, queries, policy, 10, shortlist=shortlist) for policy in (taper(np.inf), Fixed(D, 32)))
    np.testing.assert_array_equal(ours.rows, fixed.rows)
    np.testing.assert_array_equal(ours.widths, fixed.widths)
    np.testing.assert_allclose(ours.scores, fixed.scores, atol=1e-6)


def test_a_ladder_of_one_width_is_the_fixed_policy(index: MemoryBackend, queries: np.ndarray) -> None:
    ours, fixed = (by_stages(index, queries, policy, 10, shortlist=200) for policy in (taper(1.0, (48,)), Fixed(48, 48)))
    np.testing.assert_array_equal(ours.rows, fixed.rows)
    np.testing.assert_array_equal(ours.scores, fixed.scores)
    assert ours.mean_width == 48


def test_a_wider_z_never_drops_more(index: MemoryBackend, queries: np.ndarray) -> None:
    stage = index.search(queries, 32, 200)
    narrow, wide = (taper(z).decide(stage).keep for z in (0.5, 1.5))
    assert (narrow <= wide).all()
    assert (narrow.sum(axis=1) >= 10).all()
    assert narrow.sum() < wide.sum()


def test_the_survivor_rule(index: MemoryBackend, queries: np.ndarray) -> None:
    stage = index.search(queries, 32, 200)
    of_queries, of_documents = (np.sqrt(1 - np.linalg.norm(x[:, :32], axis=1) ** 2) for x in (queries, index.rows))
    reach = 2.0 * 0.05 / 2 * of_queries[:, None] * of_documents[stage.candidates]  # z √2 σ / β / 2, times both tails
    kth = np.sort(stage.scores - reach, axis=1)[:, -10, None]
    np.testing.assert_array_equal(taper(2.0).decide(stage).keep, stage.scores + reach >= kth)


def test_equal_tails_give_the_rule_of_one_band(queries: np.ndarray) -> None:
    """Where every document's tail is as long, s is at least the k-th best less z √2 σ / β times the tails."""
    rng = np.random.default_rng(2)
    halves = [unit(rng.standard_normal((200, width))) for width in (32, D - 32)]
    index = MemoryBackend(Vectors.of(np.concatenate(halves, axis=1) / np.float32(np.sqrt(2))), Rotation.identity(D))
    stage = index.search(queries, 32, 200)
    tail = np.sqrt(0.5) * np.sqrt(1 - np.linalg.norm(queries[:, :32], axis=1) ** 2)[:, None]
    kth = np.sort(stage.scores, axis=1)[:, -10, None]
    keep = taper(1.0, band=0.3).decide(stage).keep
    clear = np.abs(stage.scores - kth + 0.3 * tail) > 1e-5
    np.testing.assert_array_equal(keep[clear], (stage.scores >= kth - 0.3 * tail)[clear])


def test_own_documents_are_never_survivors(index: MemoryBackend) -> None:
    own = np.arange(40)
    hits = by_stages(index, index.rows[:40], taper(1.0), 10, own=own)
    assert not (hits.rows == own[:, None]).any()


def test_no_slope_keeps_all(index: MemoryBackend, queries: np.ndarray) -> None:
    blind = Taper(Calibration((32, D), np.zeros(1), np.ones(1)), 0.0)
    assert by_stages(index, queries, blind, 10, shortlist=50).mean_width == D


def test_the_funnel_keeps_its_numbers(index: MemoryBackend, queries: np.ndarray) -> None:
    done = run(index.search(queries, 32, 200), Funnel(D, ((32, 100), (64, 20))))
    np.testing.assert_array_equal((done.last == D).sum(axis=1), 20)
    np.testing.assert_array_equal((done.last >= 64).sum(axis=1), 100)
    with pytest.raises(OptionError, match=r"48.*64"):
        Funnel(48)


def test_a_funnel_wider_than_the_shortlist(index: MemoryBackend, queries: np.ndarray) -> None:
    hits = by_stages(index, queries, Funnel(D, ((32, 100),)), 10, shortlist=30)
    np.testing.assert_array_equal(hits.rows, by_stages(index, queries, Fixed(D, 32), 10, shortlist=30).rows)
