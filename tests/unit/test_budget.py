"""Prices for budgets, and the controller: any 5,000 consecutive queries keep to the budget, whatever the stream."""

import logging
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adawidth.errors import OptionError
from adawidth.policies.base import Policy
from adawidth.policies.budget import Online, allot, price_for, top_share
from adawidth.stages import Decision, Stage

START, WIDE, BUDGET = 64, 256, 96.0


def bare_stage(signals: np.ndarray, candidates: int = 4, width: int = START) -> Stage:
    """A stage whose scores are the signals and that nothing is read from."""
    shape = len(signals), candidates
    return Stage(
        backend=None,  # type: ignore[arg-type]
        queries=np.zeros((len(signals), 1), np.float32),
        candidates=np.zeros(shape, np.int64),
        sums=np.zeros(shape, np.float32),
        scores=np.repeat(signals[:, None], candidates, axis=1).astype(np.float32),
        alive=np.ones(shape, np.bool_),
        last=np.full(shape, width),
        widths=np.full(len(signals), width),
        coordinates=np.full(len(signals), candidates * width),
    )


def read(stage: Stage, decision: Decision) -> Stage:
    keep = decision.keep & stage.alive
    moved = (keep.sum(axis=1) * (decision.widths - stage.widths)).astype(np.int64)
    return Stage(
        backend=stage.backend,
        queries=stage.queries,
        candidates=stage.candidates,
        sums=stage.sums,
        scores=stage.scores,
        alive=keep,
        last=stage.last,
        widths=decision.widths,
        coordinates=stage.coordinates + moved,
    )


@dataclass(frozen=True)
class Steps:
    """Goes to the wide width where the signal is above the threshold, in one step or in several."""

    threshold: float
    steps: tuple[int, ...]
    start: int = START
    name = "steps"

    @property
    def reach(self) -> int:
        return self.steps[-1]

    def decide(self, stage: Stage) -> Decision:
        further = [width for width in self.steps if width > stage.widths[0]]
        if not further:
            return Decision(stage.alive, stage.widths)
        return Decision(stage.alive & (stage.scores > self.threshold), np.full(len(stage), further[0]))


@dataclass(frozen=True, eq=False)
class Family:
    """Signals are uniform on dev, so a budget is a quantile."""

    steps: tuple[int, ...] = (WIDE,)

    def policy(self, *, budget: float) -> Policy:
        return Steps(1 - (budget - START) / (self.steps[-1] - START), self.steps)

    @property
    def reference(self) -> np.ndarray:
        return np.linspace(0, 1, 1001)

    def signal(self, stage: Stage) -> np.ndarray:
        return stage.scores[:, 0].astype(np.float64)


def widths_of(online: Online, stream: np.ndarray, batch: int) -> np.ndarray:
    found = []
    for first in range(0, len(stream), batch):
        stage = bare_stage(stream[first : first + batch])
        while True:
            decision = online.decide(stage)
            if (decision.widths <= stage.widths).all():
                break
            stage = read(stage, decision)
        found.append(stage.mean_widths)
    return np.concatenate(found)


def worst_window(widths: np.ndarray, window: int) -> float:
    sums = np.concatenate([[0.0], np.cumsum(widths)])
    return float((sums[window:] - sums[:-window]).max() / window) if len(widths) >= window else 0.0


STREAMS = {
    "as on dev": lambda rng, n: rng.uniform(0, 1, n),
    "all hard": lambda rng, n: np.ones(n),
    "suddenly hard": lambda rng, n: np.where(np.arange(n) < n // 2, 0.0, 1.0),
    "slow drift": lambda rng, n: rng.uniform(0, 1, n) * np.linspace(0.5, 2, n),
    "bursts": lambda rng, n: ((np.arange(n) // 2500) % 2).astype(float),
    "waves": lambda rng, n: 0.5 + 0.6 * np.sin(np.arange(n) / 700),
}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(WIDE,), (80, 128, WIDE)], ids=["one step", "three steps"])
@pytest.mark.parametrize("name", STREAMS)
def test_any_5000_queries_keep_to_the_budget(name: str, steps: tuple[int, ...]) -> None:
    stream = STREAMS[name](np.random.default_rng(3), 20_000)
    for batch in (1, 1024) if name == "bursts" else (1024,):
        widths = widths_of(Online(Family(steps), BUDGET), stream, batch)
        assert worst_window(widths, 5_000) <= 1.02 * BUDGET + 1e-9
        assert widths.min() >= START


@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1), st.floats(0, 2)), min_size=1, max_size=8),
    batch=st.integers(1, 300),
    steps=st.sampled_from([(WIDE,), (80, 128, WIDE)]),
    seed=st.integers(0, 5),
)
def test_adversarial_streams(parts: list[tuple[int, float, float]], batch: int, steps: tuple[int, ...], seed: int) -> None:
    """A shorter window, so that hypothesis can build many: runs of queries at any level, batches of any size."""
    rng = np.random.default_rng(seed)
    stream = np.concatenate([rng.uniform(low, low + span, count) for count, low, span in parts])
    window = 200
    widths = widths_of(Online(Family(steps), BUDGET, window=window), stream, batch)
    assert worst_window(widths, window) <= 1.02 * BUDGET + 1e-9


def test_spends_the_budget_where_queries_are_as_on_dev() -> None:
    widths = widths_of(Online(Family(), BUDGET), np.random.default_rng(4).uniform(0, 1, 20_000), 500)
    assert 0.97 * BUDGET <= widths.mean() <= 1.02 * BUDGET


def test_spends_less_where_queries_are_easier() -> None:
    widths = widths_of(Online(Family(), BUDGET), np.random.default_rng(4).uniform(0, 0.9, 20_000), 500)
    assert widths.mean() < 0.95 * BUDGET


def test_the_share_follows_so_that_few_are_refused() -> None:
    harder = np.random.default_rng(4).uniform(0.1, 1.1, 20_000)
    online = Online(Family(), BUDGET)
    widths = widths_of(online, harder, 500)
    assert 0.9 * BUDGET <= widths[-5_000:].mean() <= 1.02 * BUDGET
    assert online.refused < 200


def test_drift_is_seen_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(5)
    online = Online(Family(), BUDGET)
    widths_of(online, rng.uniform(0, 1, 4_000), 500)
    assert not online.drifted
    with caplog.at_level(logging.WARNING, "adawidth"):
        widths_of(online, rng.uniform(0.3, 1.3, 4_000), 500)
    assert online.drifted
    assert online.drift == pytest.approx(0.3, abs=0.05)
    assert caplog.text.count("drift") == 1


gains = arrays(np.float64, st.tuples(st.integers(1, 30), st.just(4)), elements=st.floats(-1, 1)).map(lambda g: g - g[:, :1])


@settings(max_examples=80, deadline=None)
@given(gains=gains, budget=st.floats(64, 256))
def test_a_price_keeps_to_its_budget(gains: np.ndarray, budget: float) -> None:
    widths = (64, 96, 128, 256)
    price = price_for(gains, widths, budget)
    assert allot(gains, widths, price).mean() <= budget
    assert allot(gains, widths, np.inf).tolist() == [64] * len(gains)
    assert allot(gains, widths, -np.inf).tolist() == [256] * len(gains)


def test_the_price_is_the_lowest_that_will_do() -> None:
    gains = np.array([[0, 0.1], [0, 0.2], [0, 0.3], [0, 0.4]])
    price = price_for(gains, (64, 128), 96)
    assert allot(gains, (64, 128), price).tolist() == [64, 64, 128, 128]
    assert price * 64 == pytest.approx(0.2)


def test_top_share_takes_the_largest_gains() -> None:
    gains = np.array([[0, 0.1], [0, -0.4], [0, 0.3], [0, 0.0]])
    assert top_share(gains, (64, 128), 96).tolist() == [128, 64, 128, 64]
    assert top_share(gains, (64, 128), 64).tolist() == [64] * 4
    assert top_share(gains, (64, 128), 128).tolist() == [128] * 4


@pytest.mark.parametrize("budget", [63, 257])
def test_budget_out_of_range(budget: float) -> None:
    with pytest.raises(OptionError, match=f"budget {budget} is not between 64 and 256"):
        price_for(np.zeros((3, 2)), (64, 256), budget)


def test_at_the_narrowest_width_no_query_moves_however_large_its_gain() -> None:
    price = price_for(np.array([[0.0, 0.1], [0.0, -0.2]]), (64, 128), 64)
    assert allot(np.array([[0.0, 5.0]]), (64, 128), price).tolist() == [64]
