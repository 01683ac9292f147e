"""The law on vectors that follow a known one, and its answers where the data can't say."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adawidth import WidthLaw
from adawidth.data import Dataset, Qrels, Vectors
from adawidth.errors import DataError, OptionError
from adawidth.rotation import Rotation
from adawidth.sufficiency import Decay, compare_rates, information_rates
from adawidth.sufficiency.forms import FORMS, fit
from adawidth.sufficiency.rates import tail
from adawidth.types import Id

WIDTH, SCALE = 512, 24.0  # of the exponential that the lengths below follow
DEPTHS = (10, 20, 50, 100)
LEVELS = (0.25, 0.5, 0.75)  # prefix cosines of the relevant documents: by eighths, so that every width of the grid has them exactly


@cache
def planted(documents: int) -> Dataset:
    """A document follows the query for T coordinates and turns away behind them; T is exponential with mean SCALE.

    At width m > T its prefix cosine is (2 T - m) / m. A relevant document has the cosine r at every width, so others overtake
    it up to 2 T / (1 + r): a share exp(-γ m) of them, with γ = (1 + r) / (2 SCALE). The width at which the k-th of N goes is
    ln(N / k) / γ. All queries are alike, with the same relevant documents; a tenth of these has the lowest r.
    """
    turn = SCALE * np.log(documents / np.arange(1, documents + 1))
    followers = np.where(np.arange(WIDTH) < np.random.default_rng(0).permutation(turn)[:, None], 1.0, -1.0)
    levels = np.repeat(LEVELS, (2, 6, 12))
    relevant = np.array([np.tile(np.where(np.arange(8) < round(4 * (1 + r)), 1.0, -1.0), WIDTH // 8) for r in levels])
    values = np.concatenate([followers, relevant]).astype(np.float32) / math.sqrt(WIDTH)
    queries = np.ones((4, WIDTH), np.float32) / math.sqrt(WIDTH)
    grades: dict[Id, dict[Id, float]] = {i: {documents + j: 1.0 for j in range(len(levels))} for i in range(len(queries))}
    return Dataset(Vectors.of(values), Vectors.of(queries), {"train": Qrels(grades, "train")}, "planted", "planted")


def rate(level: float) -> float:
    """The true γ of a relevant document with this prefix cosine."""
    return (1 + level) / (2 * SCALE)


@pytest.fixture(scope="module")
def law() -> WidthLaw:
    return WidthLaw.fit(planted(8_000), quantile=0.95, depths=DEPTHS, chains=20)


def test_the_planted_law_comes_back(law: WidthLaw) -> None:
    _, b, c = law.coefficients
    slope = 1 / rate(LEVELS[0])
    assert b == pytest.approx(slope, rel=0.1)
    assert c == pytest.approx(-slope, rel=0.1)
    assert law.r2_mean_point > 0.99
    assert law.at(0.8).coefficients[1] == pytest.approx(1 / rate(LEVELS[1]), rel=0.1)


@pytest.mark.parametrize(("documents", "k"), [(8_000, 10), (8_000, 35), (32_000, 10), (32_000, 100), (64_000, 20)])
def test_predictions_meet_the_planted_law_within_and_beyond_the_corpus(law: WidthLaw, documents: int, k: int) -> None:
    truth = math.log(documents / k) / rate(LEVELS[0])
    found = law.predict(documents, k)
    assert found.width is not None
    assert found.interval is not None
    assert found.width == pytest.approx(truth, rel=0.05)
    assert found.interval[0] <= found.width <= found.interval[1]
    assert found.extrapolated == (documents > 8_020)
    assert found.bytes_per_document == 4 * found.width


def test_the_prediction_is_what_a_larger_corpus_needs(law: WidthLaw) -> None:
    larger = WidthLaw.fit(planted(32_000), quantile=0.95, depths=DEPTHS, chains=2)
    measured = larger.cells[0, -1, DEPTHS.index(20)]
    found = law.predict(32_000, 20)
    assert found.width == pytest.approx(measured, rel=0.05)


def test_the_interval_widens_with_the_distance(law: WidthLaw) -> None:
    near, far = law.predict(8_000, 10), law.predict(64_000, 10)
    assert near.interval is not None
    assert far.interval is not None
    assert near.interval[1] - near.interval[0] < far.interval[1] - far.interval[0]


def test_the_fitted_rate_is_the_true_one(law: WidthLaw) -> None:
    rates, constants = information_rates(law.required)
    truth = np.tile(np.repeat([rate(level) for level in LEVELS], (2, 6, 12)), len(np.unique(law.required.queries)))
    np.testing.assert_allclose(rates, truth, rtol=0.05)
    np.testing.assert_allclose(constants, 0, atol=0.15)


def test_the_bound_holds_on_the_planted_corpus(law: WidthLaw) -> None:
    """The sufficient width of the slowest pairs is enough for all of them in every chain, up to one step of the grid."""
    for i, size in enumerate(law.required.sizes.tolist()):
        for j, k in enumerate(DEPTHS):
            enough = Decay(rate(LEVELS[0])).sufficient_width(size, k, delta=0.1)
            assert (law.required.values[:, i, j] > enough + 8).mean() <= 0.1


def test_a_prediction_beyond_the_encoder_width_says_so(law: WidthLaw) -> None:
    found = law.predict(1e12, 10)
    assert (found.width, found.interval, found.extrapolated) == (None, None, True)
    assert "the encoder has 512" in str(found.reason)


def test_a_depth_that_was_not_measured_gets_no_width(law: WidthLaw) -> None:
    found = law.predict(8_000, 1_000)
    assert found.width is None
    assert found.extrapolated
    assert "10 to 100" in str(found.reason)


def test_a_law_that_goes_astray_on_held_out_sizes_gives_no_width_far_away(collection: Dataset) -> None:
    law = WidthLaw.fit(collection, quantile=0.5, smallest=60, depths=(1, 3, 5, 10))
    assert law.to_json()["held_out"]["drift"]["10"] is not None
    assert law.predict(480, 10).width is not None
    far = law.predict(1e9, 10)
    assert far.width is None
    assert far.extrapolated
    assert far.reason


def test_what_the_full_width_does_not_find_no_width_finds(collection: Dataset) -> None:
    noisy = collection.queries.values + 0.3 * np.random.default_rng(0).standard_normal(collection.queries.values.shape).astype(np.float32)
    data = Dataset(collection.documents, Vectors.of(noisy, collection.queries.ids), collection.qrels, "noisy")
    with pytest.raises(DataError, match=r"too few for a law: ask for a lower --quantile"):
        WidthLaw.fit(data, quantile=0.97, smallest=60)
    law = WidthLaw.fit(data, quantile=0.4, smallest=60)
    share = 1 - law.required.censored()
    assert law.found(480, 10) == pytest.approx(share[-1, law.required.depths.tolist().index(10)], abs=0.06)
    found = law.predict(1e6, 10)
    assert found.width is None
    assert "64 coordinates are expected to put" in str(found.reason)


def test_the_json_has_what_design_promises(law: WidthLaw) -> None:
    result = json.loads(json.dumps(law.to_json(), allow_nan=False))
    assert {"a", "b", "c", "r2_mean_point"} <= result["law"].keys()
    assert result["held_out"]["largest_size"]["fitted_to"] == 4_010
    assert [entry["form"] for entry in result["forms"]] == ["logarithm", "power", "square root", "linear", "floor"]
    assert len(result["cells"]) == len(result["sizes"]) * len(DEPTHS)
    assert result["held_out"]["chain"]["r2"] > 0.9
    assert min(result["forms"], key=lambda entry: entry["held_out_rmse"][0])["form"] in ("logarithm", "power", "floor")


def test_a_rotation_that_brings_the_signal_to_the_front_raises_the_rate() -> None:
    """The planted corpus with as many empty coordinates strewn in: half the rate, until a rotation moves them behind the others."""
    data = planted(4_000)
    places = np.concatenate([np.arange(0, 2 * WIDTH, 2), np.arange(1, 2 * WIDTH, 2)])
    strewn = [Vectors.of(np.stack([x.values, 0 * x.values], axis=2).reshape(len(x), -1)) for x in (data.documents, data.queries)]
    wide = Dataset(strewn[0], strewn[1], data.qrels)
    turn = Rotation(np.eye(2 * WIDTH, dtype=np.float32)[places], "random")
    slow = WidthLaw.fit(wide, depths=DEPTHS).required
    fast = WidthLaw.fit(wide, turn, depths=DEPTHS).required
    same, raised = compare_rates(slow, slow), compare_rates(slow, fast)
    assert same["difference"] == same["low"] == same["high"] == same["raised"] == 0
    assert raised["raised"] == 1
    assert raised["low"] > 0
    assert raised["after"] == pytest.approx(2 * raised["before"], rel=0.1)
    assert raised["after"] == pytest.approx(rate(LEVELS[-1]), rel=0.1)


def test_each_form_recovers_itself() -> None:
    n, k = (x.ravel() for x in np.meshgrid([500.0, 1e3, 2e3, 4e3, 8e3], [1.0, 3.0, 10.0, 30.0], indexing="ij"))
    shapes = {"power": 0.3, "square root": 0.5, "linear": 1.0, "floor": 0.6 / 8e3, "logarithm": 0.0}
    for form in FORMS:
        widths = form.design(n, k, shapes[form.name]) @ np.array([20.0, 9.0, -7.0])
        fitted = {other.name: fit(other, n, k, widths) for other in FORMS}
        assert min(fitted.values(), key=lambda one: one.aic).form.name in (form.name, "power")
        np.testing.assert_allclose(fitted[form.name].predict(n, k), widths, atol=0.5)
    floor = fit(FORMS[-1], n, k, FORMS[-1].design(n, k, 0.6 / 8e3) @ np.array([20.0, 9.0, -7.0]))
    assert np.isinf(floor.predict(np.array([1e6]), np.array([1.0]))).all()


def test_the_tail_tells_a_power_law_from_an_exponential(law: WidthLaw) -> None:
    rng = np.random.default_rng(0)
    for heavy, values in ((True, 10 * (1 - rng.random(4_000)) ** (-1 / 1.5)), (False, 10 + rng.exponential(40, 4_000))):
        censored = np.where(values > WIDTH, np.inf, values).astype(np.float32)
        required = replace(law.required, values=np.broadcast_to(censored, (20, 5, 4, 4_000)), queries=np.arange(4_000))
        found = tail(required)
        assert found is not None
        assert (found.log_likelihood_ratio > 0) == heavy
        assert (found.hill == pytest.approx(1.5, rel=0.1)) if heavy else (found.exponential_rate == pytest.approx(1 / 40, rel=0.1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"split": "test"}, "test queries are kept for testing"),
        ({"quantile": 1.0}, "quantile 1.0 is not between 0 and 1"),
    ],
)
def test_options_out_of_range(collection: Dataset, change: dict, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        WidthLaw.fit(collection, smallest=60, **change)


def test_no_labels_no_law(collection: Dataset) -> None:
    with pytest.raises(DataError, match="no labels for the train split"):
        WidthLaw.fit(Dataset(collection.documents, collection.queries), smallest=60)


def test_a_learned_rotation_is_measured_on_dev(collection: Dataset) -> None:
    identity = Rotation.identity(64)
    learned = Rotation(identity.matrix, "rank-kl")
    options = {"quantile": 0.5, "smallest": 60}
    assert WidthLaw.fit(collection, identity, **options).facts["split"] == "train"
    law = WidthLaw.fit(collection, learned, **options, queries=30)
    assert law.facts["split"] == "dev"
    assert law.facts["queries"] == 30


def test_predictions_of_nothing_are_refused(law: WidthLaw) -> None:
    for documents, k in ((0, 10), (math.nan, 10), (100, 0)):
        with pytest.raises(OptionError, match="1 or more"):
            law.predict(documents, k)
