"""Drift where the answer is known: the same distribution fits; turned, shifted, foreign and grown collections do not."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, bundled, check, load_dataset
from adawidth.data import Dataset, Qrels, Vectors, unit
from adawidth.errors import ArtifactError, DataError
from adawidth.evaluation.check import LABELS, LEARNED, Refit, distance
from adawidth.model.profile import SHARES, Profile, energy, overlap
from adawidth.report.check import write_check

WIDTH, TOPICS = 64, 200
SPECTRUM = np.exp(-np.arange(WIDTH) / 14)
MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "query_map.json"


def made(documents: int, queries: int, seed: int, turn_seed: int = 0, name: str = "made") -> Dataset:
    """Documents around topics that are the same for every seed, queries near documents; `turn_seed` is the encoder."""
    topics = np.random.default_rng(99).standard_normal((TOPICS, WIDTH)) * SPECTRUM
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(turn_seed).standard_normal((WIDTH, WIDTH)))[0]
    rows = topics[rng.integers(TOPICS, size=documents)] + 0.7 * rng.standard_normal((documents, WIDTH)) * SPECTRUM
    asked = rows[rng.integers(documents, size=queries)] + 0.12 * rng.standard_normal((queries, WIDTH))
    turned = [unit((part @ turn).astype(np.float32)) for part in (rows, asked)]
    vectors = [Vectors.of(part, [f"{kind}{i}" for i in range(len(part))]) for kind, part in zip("dq", turned, strict=True)]
    return Dataset(vectors[0], vectors[1], name=name)


@pytest.fixture(scope="module")
def fitted_on() -> Dataset:
    return made(1_500, 400, seed=1)


@pytest.fixture(scope="module")
def model(fitted_on: Dataset) -> AdaWidth:
    return AdaWidth.fit(fitted_on, recipe="pca")


def changed(model: AdaWidth, data: Dataset) -> set[str]:
    """The parts that no longer fit."""
    found = check(model, data)
    parts = {f.part for f in found.findings if f.verdict == "changed" and f.decides}
    assert found.fits == (not parts)
    assert found.sentence.startswith("The model fits" if found.fits else "The model no longer fits")
    return parts


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_documents_and_queries_of_the_same_kind_fit(model: AdaWidth, seed: int) -> None:
    assert changed(model, made(1_500, 400, seed=seed)) == set()


def test_a_collection_without_queries_fits_by_its_documents(model: AdaWidth, fitted_on: Dataset) -> None:
    found = check(model, replace(fitted_on, queries=fitted_on.queries.select([])))
    assert found.stand_ins
    assert not [f for f in found.findings if f.part == "rotation" and f.verdict == "changed"]


def test_another_encoder_does_not_fit(model: AdaWidth) -> None:
    assert "rotation" in changed(model, made(1_500, 400, seed=2, turn_seed=5))


def test_shifted_vectors_do_not_fit(model: AdaWidth, fitted_on: Dataset) -> None:
    away = np.linalg.svd(fitted_on.documents.all(), full_matrices=False)[2][-1]  # where no document points
    shifted = [Vectors.of(unit(side.all() + 0.6 * away), side.ids) for side in (fitted_on.documents, fitted_on.queries)]
    assert "rotation" in changed(model, Dataset(shifted[0], shifted[1], name="shifted"))


def test_queries_of_another_kind_do_not_fit(model: AdaWidth, fitted_on: Dataset) -> None:
    foreign = made(1_500, 400, seed=2, turn_seed=5).queries
    assert "rotation" in changed(model, Dataset(fitted_on.documents, foreign, name="foreign queries"))


@pytest.mark.slow
def test_a_grown_collection_does_not_fit() -> None:
    """Real vectors: a model of 300 documents, and all 3,037 of them."""
    data = load_dataset(bundled.path())
    few = np.sort(np.random.default_rng(0).permutation(len(data.documents))[:300])
    some = Dataset(data.documents.select(few), data.queries_of("train"), name="some")
    found = check(AdaWidth.fit(some, recipe="pca"), replace(data, qrels={}))
    assert not found.fits
    assert {f.part: f.verdict for f in found.findings}["documents"] == "changed"


def test_a_model_without_a_record_of_its_data_is_still_checked(model: AdaWidth, fitted_on: Dataset) -> None:
    old = replace(model, record=replace(model.record, profile={}))
    assert changed(old, fitted_on) == set()
    assert {f.verdict for f in check(old, fitted_on).findings} == {"fits", "unknown"}
    assert "rotation" in changed(old, made(1_500, 400, seed=2, turn_seed=5))


def test_refitting_pays_where_the_rotation_is_wrong_and_not_where_it_is_right(model: AdaWidth, fitted_on: Dataset) -> None:
    wrong = check(model, made(1_500, 400, seed=2, turn_seed=5)).refits
    assert {refit.what.split(",")[0]: refit.pays for refit in wrong}["fit the rotation again"]
    assert not any(refit.pays for refit in check(model, fitted_on).refits)


def test_with_labels_a_refit_is_judged_by_them(collection: Dataset) -> None:
    found = check(AdaWidth.fit(collection, recipe="identity"), collection)
    assert found.labels == 120
    (turned,) = [refit for refit in found.refits if refit.measure.startswith("nDCG@10")]
    assert turned.pays  # the axes were turned at random


def test_test_queries_are_not_fitted_on(fitted_on: Dataset) -> None:
    """With nothing but test queries, nothing is estimated."""
    tested = replace(fitted_on, qrels={"test": Qrels.of({q: ["d1"] for q in fitted_on.queries.ids})})
    assert check(AdaWidth.fit(fitted_on.documents, recipe="pca"), tested).refits == ()


def test_a_page_stands_alone_and_says_the_sentence(model: AdaWidth, fitted_on: Dataset, tmp_path: Path) -> None:
    result = {"model": "m", **check(model, replace(fitted_on, name="<b>notes</b>")).to_json()}
    json.loads(json.dumps(result, allow_nan=False))
    write_check(tmp_path / "check.html", result)
    page = (tmp_path / "check.html").read_text()
    assert "The model fits &lt;b&gt;notes" in page
    assert page.count("<svg") == 1
    assert "<script" not in page


def test_a_narrow_or_tiny_collection_is_told(model: AdaWidth) -> None:
    narrow = Dataset(Vectors.of(np.eye(8, dtype=np.float32)), Vectors.of(np.eye(8, dtype=np.float32)))
    with pytest.raises(DataError, match="vectors are 8 wide, the model 64"):
        check(model, narrow)
    one = made(1, 3, seed=0)
    with pytest.raises(DataError, match="1 documents are too few"):
        check(model, one)


def test_the_profile_is_kept_with_the_model(model: AdaWidth, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    assert AdaWidth.load(tmp_path / "m").record.profile == model.record.profile
    profile = Profile.of(model.record.profile)
    assert profile is not None
    assert profile.documents == 1_500
    assert profile.kept > 0.9


@pytest.mark.parametrize("change", [{"kept": "high"}, {"scores": [0.1]}, {"width": 0}, {"stand_ins": 1}, {"widths": float("nan")}])
def test_a_profile_that_can_not_be_is_refused(model: AdaWidth, change: dict) -> None:
    with pytest.raises(ArtifactError, match="a profile that can't be"):
        Profile.of({**model.record.profile, **change})


def test_distances_are_those_of_kolmogorov_and_smirnov() -> None:
    rng = np.random.default_rng(0)
    reference, same, other = rng.standard_normal(5_000), rng.standard_normal(500), rng.standard_normal(500) + 1
    quantiles = np.quantile(reference, SHARES)
    assert distance(same, quantiles) < 0.08
    assert distance(other, quantiles) == pytest.approx(0.38, abs=0.06)  # 2 Φ(1/2) - 1
    assert distance(np.zeros(50), np.zeros(len(SHARES))) == 0.0  # all equal then and now


def test_energy_and_overlap_by_hand() -> None:
    assert energy(np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 1.0]], np.float32), 2).tolist() == [0.36, 0.0]
    assert overlap(np.array([[1, 2], [3, 4]]), np.array([[2, 9], [4, -1]])).tolist() == [0.5, 1.0]


def test_a_refit_pays_by_gain_or_by_cost() -> None:
    assert Refit("x", "m", 0.9, 0.95, 0.05, 0.02, 0.08).pays
    assert not Refit("x", "m", 0.9, 0.95, 0.05, -0.02, 0.08).pays
    assert not Refit("x", "m", 0.9, 0.905, 0.005, 0.001, 0.008).pays
    assert Refit("x", "m", 0.99, 0.99, 0.0, -0.01, 0.01, 100.0, 70.0).pays
    assert not Refit("x", "m", 0.99, 0.97, -0.02, -0.03, -0.01, 100.0, 70.0).pays


def test_what_is_said_of_labels_was_measured() -> None:
    cells = {name: cell["auto"] for name, cell in json.loads(MEASURED.read_text()).items() if name.startswith("curve/")}
    counts = sorted({int(name.rsplit("/", 1)[1]) for name in cells})
    gains = {count: [cell for name, cell in cells.items() if name.endswith(f"/{count}")] for count in counts}
    for count, (low, high) in LEARNED.items():
        found = [cell["gain"] for cell in gains[count]]
        assert len(found) == 3
        assert (min(found), max(found)) == (low, high)
    sure = [count for count in counts if all(cell["gain"] > 2 * cell["error"] for cell in gains[count])]
    assert sure[0] == LABELS
