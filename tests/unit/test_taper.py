"""Fitting the taper: calibration, target width, dev curves, and data that give it little or nothing to go on."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from adawidth.data import Dataset, Vectors, unit
from adawidth.errors import OptionError
from adawidth.policies.taper import Calibration, Curve, TaperModel
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages, exhaustive
from adawidth.training.taper import RotatedQueries, best_width, calibrate, documents_as_queries, fit_taper, kept


@pytest.fixture(scope="module")
def index(collection: Dataset) -> MemoryBackend:
    return MemoryBackend(collection.documents, Rotation.pca(collection.documents))


def rotated(collection: Dataset, split: str) -> np.ndarray:
    return Rotation.pca(collection.documents).apply(collection.queries_of(split).all())


def asked(collection: Dataset, split: str) -> RotatedQueries:
    return RotatedQueries(rotated(collection, split))


@pytest.fixture(scope="module")
def model(collection: Dataset, index: MemoryBackend) -> TaperModel:
    return fit_taper(index, asked(collection, "train"), asked(collection, "dev"))


def test_calibration_is_least_squares_within_queries(collection: Dataset, index: MemoryBackend) -> None:
    queries = rotated(collection, "train")
    fitted = calibrate(index, queries, (32, 48, 64), nearest=50)
    near = index.search(queries, 32, 50)
    prefix, target = (index.open(queries, near.candidates, width).scores.astype(np.float64) for width in (48, 64))
    prefix, target = (scores - scores.mean(axis=1, keepdims=True) for scores in (prefix, target))
    slope = np.polyfit(prefix.ravel(), target.ravel(), 1)[0]
    of_queries, of_documents = (np.linalg.norm(x[:, 48:], axis=1) for x in (queries, index.rows))
    noise = (target - slope * prefix) / (of_queries[:, None] * of_documents[near.candidates])
    assert fitted.beta[1] == pytest.approx(slope, abs=1e-5)
    assert fitted.sigma[1] == pytest.approx(np.quantile(noise, 0.98) / 2.0537, rel=1e-3)


def test_without_labels_the_target_is_the_encoder_width(model: TaperModel) -> None:
    assert model.target == 64
    assert model.starts == (32, 64)
    assert not model.labelled


def test_curves_rise_to_the_target_width(model: TaperModel) -> None:
    curve = model.curves[0][0]
    assert (np.diff(curve.widths) >= 0).all()
    assert curve.widths[-1] == model.target
    assert curve.quality[-1] == 1.0  # the shortlist holds every document
    assert model.fixed[64] == 1.0


def test_the_best_width_is_the_smallest_within_an_error(collection: Dataset, index: MemoryBackend) -> None:
    dev = collection.split("dev")
    queries = rotated(collection, "dev")
    rankings = {width: exhaustive(index, queries, width, 10).rows for width in (32, 48, 64)}
    assert best_width({48: rankings[64], 64: rankings[64]}, dev.judged) == 48
    worthless = np.full_like(rankings[64], -1)
    assert best_width({32: worthless, 64: rankings[64]}, dev.judged) == 64


def test_a_quality_is_read_off_between_the_grid() -> None:
    curve = Curve(10, np.array([0.0, 1.0, 2.0, np.inf]), np.array([40.0, 50.0, 70.0, 128.0]), np.zeros(4), np.array([0.8, 0.9, 0.98, 1.0]))
    assert curve.keeping(0.8) == (0.0, 40.0)
    assert curve.keeping(0.94) == pytest.approx((1.5, 60.0))
    assert curve.keeping(0.99) == (np.inf, 128.0)  # there is nothing between a number and infinity
    dipping = replace(curve, quality=np.array([0.8, 0.97, 0.9, 1.0]))
    assert dipping.keeping(0.95) == (np.inf, 128.0)  # kept from there on, not only there
    assert curve.keeping(1.01) is None


def test_with_labels_quality_is_a_share_of_ndcg(collection: Dataset, index: MemoryBackend) -> None:
    dev = collection.split("dev")
    fitted = fit_taper(index, asked(collection, "train"), replace(asked(collection, "dev"), judged=dev.judged), target=64)
    hits = exhaustive(index, rotated(collection, "dev"), 32, 10)
    full = exhaustive(index, rotated(collection, "dev"), 64, 10)
    assert fitted.labelled
    assert fitted.fixed[32] == pytest.approx(kept(hits.rows, full.rows, dev.judged, 10))


def test_shares_of_the_top_k() -> None:
    reference = np.array([[1, 2, 3], [4, 5, -1]])
    assert kept(np.array([[3, 9, 1], [5, 4, -1]]), reference, None, 3) == pytest.approx(4 / 5)


def test_a_quality_out_of_reach_costs_no_more_than_it_brings() -> None:
    z, widths = np.array([0.0, 1.0, 2.0, 5.0, np.inf]), np.array([40.0, 60.0, 90.0, 250.0, 512.0])
    curve = Curve(10, z, widths, np.zeros(5), np.array([0.9, 0.97, 0.9798, 0.98, 0.98]))
    model = TaperModel(False, (Calibration((32, 512), np.ones(1), np.ones(1)),), ((curve,),), {512: 1.0})
    assert 1 < model.policy(quality=0.99).z < 2  # 5 reads 250 for .0002


def test_documents_stand_in_for_queries_and_never_find_themselves(index: MemoryBackend) -> None:
    queries = documents_as_queries(index, 50)
    assert queries.own is not None
    assert not (index.search(queries.rows, 64, 5, queries.own).candidates == queries.own[:, None]).any()


def test_without_queries_documents_calibrate_and_a_note_says_so(index: MemoryBackend, caplog: pytest.LogCaptureFixture) -> None:
    none = RotatedQueries(np.empty((0, 64), np.float32))
    fitted = fit_taper(index, none, none)
    assert "no queries" in caplog.text
    assert fitted.policy(budget=48).start == 32


def test_a_budget_is_kept_and_a_quality_is_met(collection: Dataset, index: MemoryBackend, model: TaperModel) -> None:
    dev = rotated(collection, "dev")
    for budget in (40, 48, 60):
        assert by_stages(index, dev, model.policy(budget=budget, start=32), 10).mean_width <= budget
    full = exhaustive(index, dev, 64, 10).rows
    for quality in (0.8, 0.95, 1.0):
        assert kept(by_stages(index, dev, model.policy(quality=quality), 10).rows, full, None, 10) >= quality


def test_constant_scores_fall_back_to_the_start_width(caplog: pytest.LogCaptureFixture) -> None:
    index = MemoryBackend(Vectors.of(np.tile(unit(np.ones((1, 64))), (20, 1))), Rotation.identity(64))
    queries = unit(np.ones((3, 64)))
    with caplog.at_level(logging.WARNING):
        fitted = fit_taper(index, RotatedQueries(queries), RotatedQueries(queries))
    assert "nothing to go on" in caplog.text
    hits = by_stages(index, queries, fitted.policy(), 5)
    assert hits.mean_width == 32
    assert (hits.rows >= 0).all()


@pytest.mark.parametrize("asked", [0, 1, 4])
@pytest.mark.parametrize("documents", [1, 3, 12])
def test_tiny_corpora(documents: int, asked: int) -> None:
    rng = np.random.default_rng(documents)
    index = MemoryBackend(Vectors.of(unit(rng.standard_normal((documents, 48)))), Rotation.identity(48))
    queries = unit(rng.standard_normal((4, 48)))
    fitted = fit_taper(index, RotatedQueries(queries[:asked]), RotatedQueries(queries[:asked]))
    hits = by_stages(index, queries, fitted.policy(quality=1.0), min(10, documents))
    assert all(len(set(rows)) == min(10, documents) for rows in hits.rows.tolist())
    assert (hits.rows >= 0).all()
    truth = exhaustive(index, queries, 48, min(10, documents)).rows
    np.testing.assert_array_equal(np.sort(hits.rows[:asked]), np.sort(truth[:asked]))


def test_a_narrow_encoder_has_one_width() -> None:
    rng = np.random.default_rng(0)
    index = MemoryBackend(Vectors.of(unit(rng.standard_normal((50, 32)))), Rotation.identity(32))
    queries = unit(rng.standard_normal((5, 32)))
    policy = fit_taper(index, RotatedQueries(queries), RotatedQueries(queries)).policy()
    assert by_stages(index, queries, policy, 10).mean_width == 32
    assert policy.calibration.ladder == (32,)


@pytest.mark.parametrize(
    ("knob", "numbers"),
    [({"budget": 20}, ("20", "32")), ({"budget": 48, "start": 64}, ("48", "64")),
     ({"quality": 0.0}, ("0",)), ({"quality": 1.5}, ("1.5",)), ({"start": 40}, ("40", "32")), ({"z": -1.0}, ("-1",))],
)  # fmt: skip
def test_knobs_out_of_range_are_refused_with_both_numbers(model: TaperModel, knob: dict[str, float], numbers: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as error:
        model.policy(**knob)
    assert all(number in str(error.value) for number in numbers)


def test_one_knob_at_a_time(model: TaperModel) -> None:
    with pytest.raises(OptionError, match="one of"):
        model.policy(budget=48, quality=0.9)


def test_a_budget_above_the_target_width_is_not_used_up(collection: Dataset, index: MemoryBackend, model: TaperModel) -> None:
    policy = model.policy(budget=1000, start=32)
    hits = by_stages(index, rotated(collection, "test"), policy, 10)
    assert (hits.widths == model.target).all()


def test_a_budget_that_no_taper_meets_means_the_start_width(model: TaperModel, caplog: pytest.LogCaptureFixture) -> None:
    policy = model.policy(budget=32, k=100)
    assert policy.calibration.ladder == (32,)
    assert "fixed width 32" in caplog.text


def test_round_trip(model: TaperModel) -> None:
    again = TaperModel.of(model.config(), model.tensors(), 64)
    assert again.config() == model.config()
    for name, tensor in model.tensors().items():
        np.testing.assert_array_equal(again.tensors()[name], tensor)
    for knob in ({"budget": 45}, {"quality": 0.9}, {}, {"z": 2.0}):
        assert again.policy(**knob).z == model.policy(**knob).z
    assert again.fixed_width(0.9) == model.fixed_width(0.9)


def test_fixed_width_for_a_quality(model: TaperModel) -> None:
    assert TaperModel(False, model.calibrations, model.curves, {32: 0.7, 48: 0.95, 64: 1.0}).fixed_width(0.9) == 48
    assert TaperModel(False, model.calibrations, model.curves, {32: 0.99, 48: 0.95, 64: 1.0}).fixed_width(0.97) == 64
    assert model.fixed[model.fixed_width(0.99)] >= 0.99
