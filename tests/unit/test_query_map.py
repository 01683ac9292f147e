"""The query map: folded with the rotation, identity at start, off when asked, and learned only where labels show a gain."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth
from adawidth.data import Dataset, Judged, Qrels, unit
from adawidth.errors import ArtifactError, DataError, OptionError
from adawidth.policies.certify import Certify
from adawidth.record import TaskRecord, Trial
from adawidth.rotation import QueryMap, Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages, exhaustive
from adawidth.tasks import TaskMap

D = 64


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca", labels=False)


@pytest.fixture(scope="module")
def some_map(model: AdaWidth) -> QueryMap:
    rng = np.random.default_rng(3)
    return QueryMap.fold(model.rotation, 0.1 * rng.standard_normal((D, D)), 0.05 * rng.standard_normal(D))


@pytest.fixture(scope="module")
def mapped(model: AdaWidth, some_map: QueryMap) -> AdaWidth:
    """A model with two tasks, neither of them learned."""
    identity = QueryMap.identity(model.rotation)
    return replace(model, tasks={"default": TaskMap(some_map, model.policies), "same": TaskMap(identity, model.policies)})


def test_folded_is_rotated_then_mapped(model: AdaWidth, collection: Dataset) -> None:
    rng = np.random.default_rng(0)
    change, bias = rng.standard_normal((D, D)), rng.standard_normal(D)
    rotated = model.rotation.apply(collection.queries.all())
    folded = QueryMap.fold(model.rotation, change, bias).apply(collection.queries.all())
    np.testing.assert_allclose(folded, rotated + rotated @ change.T + bias, atol=1e-5)


def test_the_identity_is_the_rotation_exactly(model: AdaWidth, collection: Dataset) -> None:
    x = collection.queries.all()
    for query_map in (QueryMap.identity(model.rotation), QueryMap.fold(model.rotation, np.zeros((D, D)), np.zeros(D))):
        np.testing.assert_array_equal(query_map.apply(x), model.rotation.apply(x))


def test_a_cut_is_the_leading_coordinates(some_map: QueryMap, collection: Dataset) -> None:
    x = collection.queries.all()
    np.testing.assert_allclose(some_map.apply(x, 10), some_map.apply(x)[:, :10], atol=1e-6)


def test_a_map_of_another_shape_is_refused() -> None:
    with pytest.raises(ArtifactError, match="4×4 and 3"):
        QueryMap(np.eye(4, dtype=np.float32), np.zeros(3, np.float32), "")


def test_without_a_map_the_ranking_is_the_frozen_one(mapped: AdaWidth, model: AdaWidth, collection: Dataset) -> None:
    queries = collection.queries_of("test")
    index = mapped.index(collection.documents)
    off = index.search(queries, width=D, task="none")
    frozen = exhaustive(MemoryBackend(collection.documents, Rotation.identity(D)), queries.all(), D, 10)
    np.testing.assert_array_equal(off.rows, frozen.rows)
    plain = model.index(collection.documents).search(queries)
    np.testing.assert_array_equal(index.search(queries, task="none").scores, plain.scores)
    np.testing.assert_array_equal(index.search(queries, task="same").scores, plain.scores)
    assert (index.search(queries).rows != plain.rows).any()  # unnamed: the task called default


def test_certify_is_exact_for_mapped_queries(some_map: QueryMap, model: AdaWidth, collection: Dataset) -> None:
    index = MemoryBackend(collection.documents, model.rotation)
    queries = some_map.apply(collection.queries_of("test").all())
    proved = by_stages(index, queries, Certify(16, D), 10, shortlist=len(collection.documents))
    np.testing.assert_array_equal(proved.rows, exhaustive(index, queries, D, 10).rows)
    assert proved.mean_width < D


def test_prefix_scores_are_cosines(some_map: QueryMap, model: AdaWidth, collection: Dataset) -> None:
    index = MemoryBackend(collection.documents, model.rotation)
    queries = some_map.apply(collection.queries_of("test").all())
    hits = exhaustive(index, queries, 32, 5)
    wanted = unit(queries[:, :32]) @ unit(index.rows[:, :32]).T
    np.testing.assert_allclose(hits.scores, np.take_along_axis(wanted, hits.rows, axis=1), atol=1e-5)


def test_saved_and_loaded_with_its_tasks(mapped: AdaWidth, some_map: QueryMap, tmp_path: Path) -> None:
    record = TaskRecord(chosen="x", strength=0.5, trials=(Trial("x", {32: 0.25, 64: 0.5}, 3, 2, strength=0.5),))
    task = replace(mapped.tasks["default"], record=record, seen=frozenset(["d1", "d2"]))
    replace(mapped, tasks={**mapped.tasks, "default": task}).save(tmp_path / "m")
    loaded = AdaWidth.load(tmp_path / "m")
    assert list(loaded.tasks) == ["default", "same"]
    assert loaded.rotation.fingerprint == mapped.rotation.fingerprint == loaded.tasks["default"].query_map.fingerprint
    np.testing.assert_array_equal(loaded.tasks["default"].query_map.matrix, some_map.matrix)
    np.testing.assert_array_equal(loaded.tasks["default"].query_map.bias, some_map.bias)
    assert loaded.tasks["default"].seen == {"d1", "d2"}
    assert loaded.tasks["default"].record == task.record
    assert "## Task default" in (tmp_path / "m" / "README.md").read_text()
    assert loaded.tasks["same"].policies.taper.config() == mapped.policies.taper.config()


def test_tasks_are_picked_by_name(mapped: AdaWidth, model: AdaWidth) -> None:
    assert mapped.task() is mapped.tasks["default"]
    assert mapped.task("same") is mapped.tasks["same"]
    assert mapped.task("none") is None
    assert model.task() is None
    with pytest.raises(OptionError, match="there is no task 'legal'; there are default, same, none"):
        mapped.task("legal")


def test_an_index_under_another_rotation_is_refused(model: AdaWidth, collection: Dataset) -> None:
    other = replace(model, rotation=Rotation.identity(D))
    index = other.index(collection.documents)
    with pytest.raises(ArtifactError, match=f"{other.rotation.fingerprint}, the model's is {model.rotation.fingerprint}"):
        index.with_model(model)


torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def refitted(model: AdaWidth, collection: Dataset) -> AdaWidth:
    return model.refit(turned_away(collection))


def turned_away(collection: Dataset) -> Dataset:
    """The collection with queries moved by a map of their own: there is something for labels to undo."""
    rng = np.random.default_rng(5)
    turn = np.eye(D) + 0.6 * rng.standard_normal((D, D)) / np.sqrt(D)
    return replace(collection, queries=replace(collection.queries, values=(collection.queries.values @ turn).astype(np.float32)))


def test_refit_learns_what_labels_show(model: AdaWidth, refitted: AdaWidth, collection: Dataset) -> None:
    record = refitted.tasks["default"].record
    assert record.strength > 0
    trials = {(trial.recipe, trial.strength): trial.mean for trial in record.trials}
    assert trials[record.chosen, record.strength] > trials["rotation alone", 0.0]
    assert record.dataset == "collection"


def test_refit_keeps_the_rotation_and_opens_the_old_index(model: AdaWidth, refitted: AdaWidth, collection: Dataset) -> None:
    assert refitted.rotation.fingerprint == model.rotation.fingerprint == refitted.tasks["default"].query_map.fingerprint
    old = model.index(collection.documents)
    queries = turned_away(collection).queries_of("test")
    again = old.with_model(refitted).search(queries, task="none")
    np.testing.assert_array_equal(again.scores, old.search(queries).scores)
    assert (old.with_model(refitted).search(queries).rows != again.rows).any()


def test_the_policies_are_calibrated_for_mapped_queries(model: AdaWidth, refitted: AdaWidth) -> None:
    policies = refitted.tasks["default"].policies
    assert policies.taper is not model.policies.taper
    assert policies.router is not None


@pytest.mark.slow
def test_the_same_seed_gives_the_same_map(model: AdaWidth, refitted: AdaWidth, collection: Dataset) -> None:
    again = model.refit(turned_away(collection)).tasks["default"].query_map
    np.testing.assert_array_equal(again.matrix, refitted.tasks["default"].query_map.matrix)


@pytest.mark.slow
def test_labels_that_mislead_leave_queries_as_they_are(model: AdaWidth, collection: Dataset) -> None:
    """Random labels to learn from, true ones to choose by: the ranking must stay the one before, exactly."""
    rng = np.random.default_rng(0)
    wrong = Qrels({q: {f"d{rng.integers(480)}": 1.0} for q in collection.qrels["train"].grades})
    task = model.refit(replace(collection, qrels={**collection.qrels, "train": wrong})).tasks["default"]
    assert task.record.strength == 0
    np.testing.assert_array_equal(task.query_map.matrix, model.rotation.matrix)
    assert task.policies is model.policies


def test_the_strongest_of_maps_that_dev_cannot_tell_apart() -> None:
    from adawidth.training.refit import MapTrial, choose

    def trial(gain: float, noise: float, strength: float) -> MapTrial:
        """A mean gain over the rotation alone, and its spread over queries, a pattern of its own for each strength."""
        signs = np.where(np.arange(100) // (2 if strength == 1.0 else 1) % 2, 1, -1)
        return MapTrial(dict.fromkeys((32, 64), 0.5 + gain + noise * signs), strength=strength)

    alone = MapTrial({m: np.full(100, 0.5) for m in (32, 64)})
    assert choose([alone, trial(0.10, 0.01, 0.5), trial(0.05, 0.01, 1.0)])[0].strength == 0.5  # clearly better
    assert choose([alone, trial(0.10, 0.20, 0.5), trial(0.09, 0.20, 1.0)])[0].strength == 1.0  # who knows
    assert choose([alone, trial(-0.05, 0.01, 0.5)])[0] is alone  # harm
    assert choose([alone, trial(0.01, 0.50, 1.0)])[0] is alone  # may well be harm


def test_few_labels_are_not_enough(model: AdaWidth, collection: Dataset) -> None:
    train = collection.qrels["train"]
    few = Qrels(dict(list(train.grades.items())[:10]), train.name)
    task = model.refit(replace(collection, qrels={**collection.qrels, "train": few})).tasks["default"]
    assert task.record.chosen == "rotation alone"


def test_several_tasks_stand_side_by_side(model: AdaWidth, collection: Dataset) -> None:
    train = collection.qrels["train"]
    few = replace(collection, qrels={**collection.qrels, "train": Qrels(dict(list(train.grades.items())[:5]), train.name)})
    both = model.refit(few, task="a").refit(few, task="b")
    assert list(both.tasks) == ["a", "b"]
    assert both.task() is None


@pytest.mark.parametrize("name", ["none", "", " x"])
def test_names_that_no_task_can_have(model: AdaWidth, collection: Dataset, name: str) -> None:
    with pytest.raises(OptionError, match="can't name a task"):
        model.refit(collection, task=name)


@pytest.mark.slow
def test_refit_from_arrays(model: AdaWidth, collection: Dataset) -> None:
    documents, queries = collection.documents.all(), collection.queries.all()
    labels = {i: {int(next(iter(collection.qrels["train"].grades[f"q{i}"]))[1:]): 1.0} for i in range(60)}
    task = model.refit(documents, queries[:60], labels).tasks["default"]
    assert task.record.dataset == "arrays"
    assert task.record.train_queries + task.record.dev_queries == 60


def test_a_model_of_another_width_is_refused(model: AdaWidth, collection: Dataset) -> None:
    documents, queries = (unit(x.all()[:, :48]) for x in (collection.documents, collection.queries))
    with pytest.raises(DataError, match="48 wide, the model 64"):
        model.refit(documents, queries, {i: {i: 1.0} for i in range(30)})


def test_no_labels_are_refused(model: AdaWidth, collection: Dataset) -> None:
    with pytest.raises(DataError, match="no labels for the train split"):
        model.refit(replace(collection, qrels={}))


def test_without_dev_queries_nothing_can_be_chosen(model: AdaWidth, collection: Dataset) -> None:
    with pytest.raises(OptionError, match="there are 30 and 0"):
        model.refit(collection.documents.all(), collection.queries.all(), {i: {i: 1.0} for i in range(30)}, dev={})


def test_a_low_rank_change_has_that_rank(model: AdaWidth, collection: Dataset) -> None:
    from adawidth.training.query_map import Lesson, MapRecipe, learn

    lesson = Lesson.of(collection.learning(), model.rotation)
    change = learn(MapRecipe("low rank", kl=0.5, low_rank=4, steps=20), lesson, until=20).change
    assert change is not None
    assert np.linalg.matrix_rank(change.matrix, tol=1e-6) == 4


def test_grades_weigh_and_refused_documents_are_the_first_negatives() -> None:
    from adawidth.training.candidates import Candidates
    from adawidth.training.query_map import judged_first, relevance

    judged = Judged.of([{3: 2.0, 5: 1.0, 9: 0.0, 8: -1.0}, {4: 1.0}])
    positives = Judged.of([{3: 2.0, 5: 1.0}, {4: 1.0}])
    candidates = Candidates(positives, np.array([[1, 9, 2, 6], [7, 7, 7, 7]]), np.array([4, 1]))
    first = judged_first(candidates, judged)
    assert first.negatives.tolist() == [[9, 8, 1, 2], [7, 7, 7, 7]]
    assert first.counts.tolist() == [4, 1]
    assert relevance(first, np.array([0, 1]), np.array([3, 4, 5, 9])).tolist() == [[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]]


def test_the_dev_curve_is_brute_force(model: AdaWidth, some_map: QueryMap, collection: Dataset) -> None:
    from adawidth.metrics import Measure, evaluate
    from adawidth.training.query_map import Change, Lesson

    learning = collection.learning()
    lesson = Lesson.of(learning, model.rotation)
    rng = np.random.default_rng(1)
    change = Change((0.1 * rng.standard_normal((D, D))).astype(np.float32), (0.1 * rng.standard_normal(D)).astype(np.float32))
    curve = lesson.dev_curve(change, 0.5)
    index = MemoryBackend(collection.documents, model.rotation)
    queries = change.fold(model.rotation, 0.5).apply(learning.dev.vectors.all())
    assert list(curve) == [32, D]
    for width, values in curve.items():
        hits = exhaustive(index, queries, width, 10)
        assert learning.dev.judged is not None
        wanted = evaluate([Measure("nDCG", 10)], hits.rows, learning.dev.judged)["nDCG@10"]
        np.testing.assert_allclose(values, wanted, atol=1e-9)


@pytest.mark.slow
def test_fit_chooses_a_map_over_the_rotation_that_dev_did_not_teach(collection: Dataset) -> None:
    model = AdaWidth.fit(turned_away(collection), query_map=True)
    task = model.task()
    assert task is not None
    assert task.query_map.fingerprint == model.rotation.fingerprint
    (shipped,) = (trial for trial in model.record.trials if trial.recipe == model.record.chosen)
    assert task.record.trials[0].dev[32] == pytest.approx(shipped.dev[32])  # before it was learned once more
    assert {trial.recipe for trial in task.record.trials} <= {"rotation alone", "rank", "rank, slowly"}


def test_fit_with_a_map_but_no_labels_is_refused_at_once(collection: Dataset) -> None:
    with pytest.raises(OptionError, match="learned from labels, and there are none"):
        AdaWidth.fit(collection, labels=False, query_map=True)


def test_refit_over_a_rotation_of_the_same_labels_is_warned_of(collection: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    train = collection.qrels["train"]
    few = replace(collection, qrels={**collection.qrels, "train": Qrels(dict(list(train.grades.items())[:5]), train.name)})
    AdaWidth.fit(few, recipe="kyfan").refit(few)
    assert "the rotation was trained on these labels" in caplog.text
