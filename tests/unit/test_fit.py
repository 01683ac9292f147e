"""Fitting: what it promises about full width, choices on dev, determinism, labels and their absence."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset, Qrels, Vectors
from adawidth.errors import DataError, LeakError, OptionError
from adawidth.rotation import Rotation
from adawidth.training import choose, rotation
from adawidth.training.recipes import LABELLED, UNLABELLED, Recipe
from adawidth.training.rotation import LearnedRotation
from adawidth.training.task import Task, mean


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same recipes with fewer steps: a tiny collection needs no more."""
    monkeypatch.setattr(choose, "LABELLED", tuple(replace(recipe, steps=60) for recipe in LABELLED))
    monkeypatch.setattr(choose, "UNLABELLED", tuple(replace(recipe, steps=60) for recipe in UNLABELLED))
    monkeypatch.setattr(choose, "PAPER", replace(choose.PAPER, steps=40, widths=(16, 32)))


@pytest.mark.parametrize("recipe", ["auto", "paper", "pca", "kyfan", "identity"])
def test_full_width_is_the_frozen_ranking_after_any_recipe(collection: Dataset, recipe: str) -> None:
    model = AdaWidth.fit(collection, recipe=recipe)
    x = collection.documents.all()
    y = model.rotation.apply(x)
    assert np.abs(y @ y.T - x @ x.T).max() < 1e-5
    if recipe != "auto":
        assert model.record.chosen == recipe
    assert model.record.labels


def test_auto_is_best_on_dev_and_records_every_trial(collection: Dataset) -> None:
    model = AdaWidth.fit(collection)
    trials = {trial.recipe: trial.mean for trial in model.record.trials}
    assert set(trials) == {"identity", "pca", "kyfan", *(recipe.name for recipe in LABELLED)}
    for closed in ("identity", "pca", "kyfan"):
        assert trials[model.record.chosen] >= trials[closed]
    assert model.seen == {d for split in ("train", "dev") for grades in collection.qrels[split].grades.values() for d in grades}


def test_same_seed_same_model_bit_for_bit(collection: Dataset) -> None:
    first, second, other = (AdaWidth.fit(collection, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.rotation.matrix, second.rotation.matrix)
    assert first.record == second.record
    assert first.policies.taper.config() == second.policies.taper.config()
    assert not np.array_equal(first.rotation.matrix, other.rotation.matrix)


def test_a_learned_rotation_that_is_worse_on_dev_does_not_ship(
    collection: Dataset, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ruinous = Recipe("ruinous", start="identity", shared=6, steps=20, rate=3.0)
    learn = rotation.learn

    def without_early_stopping(recipe: Recipe, start: Rotation, task: Task, *further: Any, **options: Any) -> LearnedRotation:
        found = learn(recipe, start, task, *further, **options)
        return replace(found, rotation=type(start).random(task.width, 5))

    monkeypatch.setattr(choose, "LABELLED", (ruinous,))
    monkeypatch.setattr(rotation, "learn", without_early_stopping)
    model = AdaWidth.fit(collection)
    assert model.record.chosen in ("identity", "pca", "kyfan")
    assert "No learned rotation was better on dev" in model.record.reason
    assert "No learned rotation was better on dev" in caplog.text


def test_what_ships_has_learned_from_train_and_dev_together(collection: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int | None, np.ndarray]] = []
    learn = rotation.learn

    def watched(recipe: Recipe, start: Rotation, task: Task, *further: Any, **options: Any) -> LearnedRotation:
        found = learn(recipe, start, task, *further, **options)
        asked.append((len(task.queries), options.get("until"), found.rotation.matrix))
        return found

    monkeypatch.setattr(rotation, "learn", watched)
    model = AdaWidth.fit(collection)
    chosen = next(trial for trial in model.record.trials if trial.recipe == model.record.chosen)
    queries, until, matrix = asked[-1]
    assert queries == model.record.train_queries + model.record.dev_queries
    assert until == chosen.taken_at > 0
    assert np.array_equal(model.rotation.matrix, matrix)
    assert "learned once more, from train and dev" in model.record.reason
    assert all(queries <= model.record.train_queries for queries, *_ in asked[:-1])


def test_a_recipe_may_lead_on_average_and_still_trail_at_one_width() -> None:
    rng = np.random.default_rng(0)
    base, same = rng.uniform(0.4, 0.6, 200), Rotation.identity(64)
    pca = choose.RotationTrial("pca", same, {32: base, 64: base + 0.1})
    ahead = choose.RotationTrial("rank", same, {32: base + 0.3, 64: base + 0.05 + 0.001 * rng.standard_normal(200)}, recipe=LABELLED[0])
    even = choose.RotationTrial("rank + kl", same, {32: base + 0.1, 64: base + 0.1}, recipe=LABELLED[1])
    choice = choose._best([pca, ahead, even])
    assert mean(ahead.curve) > mean(even.curve)
    assert choice.chosen is even


def test_without_labels_the_frozen_ranking_teaches(collection: Dataset) -> None:
    model = AdaWidth.fit(collection, labels=False)
    assert not model.record.labels
    assert model.seen == frozenset()
    assert model.policies.taper.target == collection.documents.width
    blind = Dataset(collection.documents, collection.queries, {}, "blind", "tiny")
    assert AdaWidth.fit(blind).record.train_queries > 120  # all queries, none held back for a test


def test_without_queries_pca_and_a_word_about_it(collection: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    model = AdaWidth.fit(collection.documents)
    assert model.record.chosen == "pca"
    assert "no queries" in caplog.text
    hits = model.index(collection.documents).search(collection.queries_of("test"), k=5)
    assert hits.rows.shape == (60, 5)


def test_plain_arrays_with_labels_by_row(collection: Dataset) -> None:
    train = collection.split("train")
    grades = {i: {int(d): 1.0 for d in train.judged.positives(i)} for i in range(len(train))}
    model = AdaWidth.fit(collection.documents.all(), train.vectors.all(), grades, recipe="kyfan")
    assert model.record.labels
    assert all(isinstance(row, int) for row in model.seen)
    hits = model.index(collection.documents.all()).search(collection.queries_of("test").all()[0], k=3, width=32, start=32)
    assert all(isinstance(row, int) for row in hits.ids[0])


def test_test_queries_are_refused(collection: Dataset) -> None:
    with pytest.raises(LeakError, match="test queries"):
        AdaWidth.fit(collection.documents, collection.queries_of("test"))


def test_few_queries_leave_it_at_closed_forms(collection: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    few = {"train": Qrels(dict(list(collection.qrels["train"].grades.items())[:20]), "train"), "dev": collection.qrels["dev"]}
    model = AdaWidth.fit(Dataset(collection.documents, collection.queries, few, "few", "tiny"))
    assert model.record.chosen in ("identity", "pca", "kyfan")
    assert "20 usable train queries" in caplog.text


def test_options_out_of_range(collection: Dataset) -> None:
    with pytest.raises(OptionError, match=r"no recipe 'best'; there are auto, paper"):
        AdaWidth.fit(collection, recipe="best")
    with pytest.raises(OptionError, match=r"\[32, 65\] are not all between 1 and the encoder width 64"):
        AdaWidth.fit(collection, widths=[32, 65])
    with pytest.raises(OptionError, match="7 is not an even number"):
        AdaWidth.fit(collection, recipe="paper", reflections=7)
    with pytest.raises(DataError, match="no labels for the train split"):
        AdaWidth.fit(Dataset(collection.documents, collection.queries, {}, "blind"), labels=True)
    with pytest.raises(OptionError, match="needs train and dev queries, there are 0 and 0"):
        AdaWidth.fit(collection.documents, recipe="kyfan")


def test_documents_of_another_width_are_refused(collection: Dataset) -> None:
    model = AdaWidth.fit(collection, recipe="pca")
    wider = Vectors.of(np.ones((3, 96), np.float32) / np.sqrt(96).astype(np.float32))
    with pytest.raises(DataError, match="96 wide, the model 64"):
        model.index(wider)
    with pytest.raises(DataError, match="96 wide, the model 64"):
        model.index(collection.documents).search(wider)
