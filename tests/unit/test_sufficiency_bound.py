"""The paper's bounds, against simulation where overtaking decays exponentially."""

import math

import numpy as np
import pytest

from adawidth.errors import OptionError
from adawidth.sufficiency import Decay, Envelope

DOCUMENTS, TRIALS = 400, 2_000
DECAY = Decay(rate=0.05, constant=0.8)


def overtakers(width: int, rng: np.random.Generator) -> np.ndarray:
    """How many of the documents overtake, trial by trial, each on its own."""
    return rng.binomial(DOCUMENTS, DECAY.constant * math.exp(-DECAY.rate * width), size=TRIALS)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_failures_stay_below_the_bound(k: int) -> None:
    rng = np.random.default_rng(k)
    for width in range(0, 200, 20):
        failed = (overtakers(width, rng) >= k).mean()
        assert failed <= DECAY.failure(width, DOCUMENTS, k) + 3 * math.sqrt(0.25 / TRIALS)


@pytest.mark.parametrize(("k", "delta"), [(1, 0.1), (10, 0.1), (10, 0.01)])
def test_the_sufficient_width_is_sufficient_and_no_wider_than_the_bound_says(k: int, delta: float) -> None:
    width = DECAY.sufficient_width(DOCUMENTS, k, delta)
    assert DECAY.failure(width, DOCUMENTS, k) == pytest.approx(delta)
    assert (overtakers(math.ceil(width), np.random.default_rng(0)) >= k).mean() <= delta + 3 * math.sqrt(delta / TRIALS)
    assert DECAY.sufficient_width(2 * DOCUMENTS, k, delta) - width == pytest.approx(math.log(2) / DECAY.rate)


def test_copies_that_overtake_together_keep_the_bound() -> None:
    rng = np.random.default_rng(0)
    for width in range(0, 200, 20):
        groups = rng.binomial(DOCUMENTS // 10, DECAY.constant * math.exp(-DECAY.rate * width), size=TRIALS)
        assert (10 * groups >= 10).mean() <= DECAY.failure(width, DOCUMENTS, 10) + 3 * math.sqrt(0.25 / TRIALS)


def test_the_first_hit_tail_holds_where_documents_come_and_go() -> None:
    rng, k = np.random.default_rng(1), 3
    widths = np.arange(300)
    probability = DECAY.constant * np.exp(-DECAY.rate * widths)
    failed = rng.binomial(DOCUMENTS, probability, size=(TRIALS, len(widths))) >= k  # anew at every width
    last = np.where(failed.any(axis=1), len(widths) - 1 - failed[:, ::-1].argmax(axis=1), -1)
    for width in range(150, 260, 10):
        bound = DECAY.first_hit_tail(width, DOCUMENTS, k)
        assert (last >= width).mean() <= bound + 3 * math.sqrt(0.25 / TRIALS)
    assert DECAY.first_hit_tail(200, DOCUMENTS, k) == pytest.approx(DECAY.failure(200, DOCUMENTS, k) / (1 - math.exp(-DECAY.rate)))


def test_a_floor_makes_the_width_infinite_in_a_large_corpus() -> None:
    decay = Decay(rate=0.05, constant=0.8, floor=1e-4)
    assert math.isfinite(decay.sufficient_width(900, 1, 0.1))
    assert decay.sufficient_width(1_001, 1, 0.1) == math.inf
    assert decay.sufficient_width(900, 1, 0.1) > DECAY.sufficient_width(900, 1, 0.1)
    assert decay.first_hit_tail(1_000, 900, 1) == 1


def test_the_law_of_an_envelope_is_where_its_failure_is_delta() -> None:
    envelope = Envelope(rate=0.04, kappa=2.0, alpha=0.9, beta=0.7)
    a, b, c = envelope.law(0.1)
    for documents, k in ((1e3, 1), (1e6, 10), (1e8, 100)):
        assert envelope.failure(a + b * math.log(documents) + c * math.log(k), documents, k) == pytest.approx(0.1)
    assert b > 0 > c


def test_a_decay_that_does_not_decay_is_refused() -> None:
    with pytest.raises(OptionError, match="rate"):
        Decay(rate=0.0)
