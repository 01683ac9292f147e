"""The router: its endpoints, budgets and qualities, what it stores, and what it does where there is nothing to learn."""

import json
import logging
from dataclasses import dataclass, replace

import numpy as np
import pytest

from adawidth.data import Judged, Vectors
from adawidth.errors import OptionError
from adawidth.metrics import Measure, evaluate
from adawidth.policies.budget import Online
from adawidth.policies.fixed import Fixed
from adawidth.policies.router import Head, Router, RouterModel, Transductive
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend, Stage
from adawidth.stages.loop import by_stages, run
from adawidth.training.examples import Examples, examples, overlap
from adawidth.training.router import TreeSettings, fit_router, gain_curves

START, D = 32, 128
PAIRS = ((32, 64), (48, 96))
WIDTHS = (48, 64, 96)


@dataclass(frozen=True, eq=False)
class World:
    index: MemoryBackend
    queries: np.ndarray
    judged: Judged
    train: Examples
    dev: Examples
    model: RouterModel


@pytest.fixture(scope="module")
def world() -> World:
    """900 documents, 420 queries; how noisy a query is differs, so that some gain from width and some do not."""
    rng = np.random.default_rng(11)
    spectrum = np.exp(-np.arange(D) / 40)
    documents = rng.standard_normal((900, D)) * spectrum
    source = rng.integers(900, size=420)
    noise = rng.uniform(0.2, 1.2, (420, 1))
    queries = documents[source] + noise * rng.standard_normal((420, D)) * spectrum
    index = MemoryBackend(Vectors.of(documents.astype(np.float32)), Rotation.identity(D))
    asked = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(np.float32)
    judged = Judged.of([{int(row): 1.0} for row in source])
    train = examples(index, asked[:300], judged.select(range(300)), start=START, widths=WIDTHS, shortlist=200)
    dev = examples(index, asked[300:], judged.select(range(300, 420)), start=START, widths=WIDTHS, shortlist=200, noise=train.noise)
    model = fit_router(
        train, dev, pairs=PAIRS, sets=("paper", "extended", "query"), settings=(TreeSettings(num_leaves=7),), one_rotation=True
    )
    return World(index, asked, judged, train, dev, model)


def stage_1(world: World, queries: slice = slice(None)) -> Stage:
    return world.index.search(world.queries[queries], START, 200)


@pytest.mark.parametrize("width_place", [0, -1])
def test_endpoints_are_the_fixed_policies(world: World, width_place: int) -> None:
    for head in world.model.heads:
        price = np.inf if width_place == 0 else -np.inf
        routed = by_stages(world.index, world.queries, Router(head, START, world.model.noise, price), 10, shortlist=200)
        fixed = by_stages(world.index, world.queries, Fixed(head.widths[width_place], START), 10, shortlist=200)
        np.testing.assert_array_equal(routed.rows, fixed.rows)
        np.testing.assert_array_equal(routed.widths, fixed.widths)
        worth = [evaluate([Measure("nDCG", 10)], hits.rows, world.judged)["nDCG@10"].mean() for hits in (routed, fixed)]
        assert worth[0] == pytest.approx(worth[1], abs=1e-12)


def test_mean_width_is_the_mixture(world: World) -> None:
    head = world.model.heads[0]
    scores = head.scores(stage_1(world), world.model.noise, START)
    levels = np.unique(scores)
    threshold = float(levels[len(levels) * 7 // 10 :][:2].mean())  # between two predictions
    router = Router(head, START, world.model.noise, threshold / (head.widths[1] - head.widths[0]))
    hits = by_stages(world.index, world.queries, router, 10, shortlist=200)
    rho = float((hits.widths == head.widths[1]).mean())
    assert rho == pytest.approx(float((scores > threshold).mean()), abs=1e-9)
    assert hits.mean_width == pytest.approx((1 - rho) * head.widths[0] + rho * head.widths[1], abs=1e-12)


def test_a_query_reads_what_its_width_says(world: World) -> None:
    done = run(stage_1(world), world.model.policy(budget=56))
    np.testing.assert_array_equal(done.coordinates, done.widths * 200)


@pytest.mark.parametrize("budget", [32, 40, 48, 64, 100, 128])
def test_a_budget_is_kept_on_dev(world: World, budget: float) -> None:
    model = fit_router(world.train, world.dev, pairs=PAIRS, sets=("extended",), settings=(TreeSettings(num_leaves=7),))
    dev = by_stages(world.index, world.queries[300:], model.policy(budget=budget), 10, shortlist=200)
    assert dev.mean_width <= budget + 1e-9


def test_axes_count_only_under_one_rotation(world: World) -> None:
    options = {"multi": False, "pairs": PAIRS[:1], "settings": (TreeSettings(num_leaves=7),)}
    crossed = fit_router(world.train, world.dev, **options)
    assert crossed.heads[0].features != "query"
    assert len(crossed.scores[0]) == len(crossed.values) == len(world.dev)
    together = fit_router(world.train, world.dev, one_rotation=True, **options)
    assert len(together.scores[0]) == len(together.values) == len(world.train) + len(world.dev)


@pytest.mark.parametrize("budget", [40, 50, 64])
def test_transductive_spends_the_budget_on_the_workload(world: World, budget: float) -> None:
    pair = replace(world.model, heads=world.model.heads[:1], scores=world.model.scores[:1])
    policy = pair.policy(budget=budget, transductive=True)
    assert isinstance(policy, Transductive)
    done = run(stage_1(world, slice(0, 300)), policy)
    assert budget - 32 / 300 <= done.mean_widths.mean() <= budget + 1e-9
    scores = pair.heads[0].scores(stage_1(world, slice(0, 300)), pair.noise, START)
    up = done.widths == 64
    assert not up.any() or up.all() or scores[up].min() >= scores[~up].max()


@pytest.mark.parametrize("budget", [31, 129])
def test_a_budget_out_of_range_names_both_ends(world: World, budget: float) -> None:
    with pytest.raises(OptionError, match=f"budget {budget} is not between 32 and 128"):
        world.model.policy(budget=budget)


def test_quality_becomes_the_smallest_budget_that_keeps_it(world: World) -> None:
    budgets = [world.model.budget_for(quality) for quality in (0.5, 0.9, 0.99, 1.0)]
    assert budgets == sorted(budgets)
    assert START <= budgets[0] <= budgets[-1] <= world.model.target
    for bad in (0.0, 1.1):
        with pytest.raises(OptionError, match="quality"):
            world.model.policy(quality=bad)
    with pytest.raises(OptionError, match="not both"):
        world.model.policy(quality=0.9, budget=40)


def test_online_over_the_router(world: World) -> None:
    """Its own dev queries do not drift."""
    online = Online(world.model, 48, window=400)
    assert (online.name, online.start) == ("router", START)
    hits = by_stages(world.index, world.queries[300:], online, 10, shortlist=200)
    assert START <= hits.mean_width <= 1.02 * 48 + 0.02 * 400 * 48 / 120  # the purse is full at first
    assert not online.drifted


def test_round_trip(world: World) -> None:
    config = json.loads(json.dumps(world.model.config()))
    again = RouterModel.of(config, {name: array.copy() for name, array in world.model.tensors().items()}, D)
    for budget in (40, 64, 90):
        hits = [by_stages(world.index, world.queries, model.policy(budget=budget), 10, shortlist=200) for model in (world.model, again)]
        np.testing.assert_array_equal(hits[0].rows, hits[1].rows)
        np.testing.assert_array_equal(hits[0].widths, hits[1].widths)
    assert again.config() == world.model.config()


def test_fitting_is_deterministic(world: World) -> None:
    options = {"pairs": PAIRS, "multi": False, "sets": ("paper",), "settings": (TreeSettings(num_leaves=7),)}
    first, second = (fit_router(world.train, world.dev, **options) for _ in range(2))
    for name, tensor in first.tensors().items():
        np.testing.assert_array_equal(tensor, second.tensors()[name])


def test_without_labels_the_target_is_the_change_of_the_top_ten(world: World) -> None:
    train = examples(world.index, world.queries[:300], None, start=START, widths=WIDTHS, shortlist=200)
    dev = examples(world.index, world.queries[300:], None, start=START, widths=WIDTHS, shortlist=200, noise=train.noise)
    assert not train.labelled
    assert (train.at(D) == 1).all()
    np.testing.assert_allclose(train.changed(32, D), 1 - train.at(32))
    model = fit_router(train, dev, pairs=((32, 64),), sets=("extended",), settings=(TreeSettings(num_leaves=7),))
    assert model.target == D
    found = np.corrcoef(model.scores[0], dev.changed(32, 64))[0, 1]
    assert found > 0.3  # the change is far more predictable than what labels gain


def test_examples_hold_the_worth_of_each_width(world: World) -> None:
    assert world.train.widths == (32, 48, 64, 96, 128)
    fixed = by_stages(world.index, world.queries[:300], Fixed(64, START), 10, shortlist=200)
    worth = evaluate([Measure("nDCG", 10)], fixed.rows, world.judged.select(range(300)))["nDCG@10"]
    np.testing.assert_allclose(world.train.at(64), worth, atol=1e-12)
    with pytest.raises(OptionError, match="width 50 is not among"):
        world.train.at(50)


def test_overlap_does_not_count_padding() -> None:
    a, b = np.array([[1, 2, -1]]), np.array([[2, 3, -1]])
    assert overlap(a, b).tolist() == [0.5]


@pytest.mark.parametrize("case", ["few", "constant", "no gain", "one width", "no dev"])
def test_nothing_to_learn_from(world: World, case: str, caplog: pytest.LogCaptureFixture) -> None:
    train, dev = world.train, world.dev
    if case == "few":
        train = train.select(range(20))
    elif case == "constant":
        train = replace(train, features=np.zeros_like(train.features))
    elif case == "no gain":
        train = replace(train, values=np.ones_like(train.values))
    elif case == "one width":
        train, dev = (replace(e, widths=(32,), values=e.values[:, :1], tops=e.tops[:, :1]) for e in (train, dev))
    else:
        dev = dev.select([])
    with caplog.at_level(logging.WARNING, "adawidth"):
        model = fit_router(train, dev, pairs=PAIRS)
        policy = model.policy(budget=32)
    assert isinstance(policy, Fixed)
    assert policy.width == policy.start == START
    assert "every query will end at the start width, 32" in caplog.text
    assert RouterModel.of(model.config(), model.tensors(), D).heads == ()


def test_equal_gains_everywhere_still_route(world: World) -> None:
    """Constant predictions: no query stands out, none goes up at a positive price."""
    head = world.model.heads[0]
    flat_head = Head(head.widths, head.features, head.trees, np.array([-1.0, 1.0]), np.zeros((2, 2)))
    hits = by_stages(world.index, world.queries, Router(flat_head, START, world.model.noise, 1e-9), 10, shortlist=200)
    assert (hits.widths == head.widths[0]).all()


def test_gain_curves_follow_the_scores() -> None:
    scores = np.linspace(-1, 1, 4000)
    knots, curves = gain_curves(scores, np.stack([np.zeros(4000), scores, 2 * scores], axis=1))
    assert (np.diff(knots) > 0).all()
    assert (curves[:, 0] == 0).all()
    assert (np.diff(curves[:, 1]) > 0).all()
    np.testing.assert_allclose(curves[:, 2], 2 * curves[:, 1])
