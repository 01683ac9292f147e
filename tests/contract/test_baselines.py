"""What every method of the registry promises."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from adawidth.baselines import REGISTRY, Baseline, Encoding, Staged, baseline
from adawidth.baselines.descent import Ground
from adawidth.baselines.dialled import Dialled
from adawidth.baselines.masked import Masked
from adawidth.data import Dataset, Learning
from adawidth.errors import OptionError
from adawidth.metrics import Measure, evaluate
from adawidth.training.task import Task

NAMES = sorted(REGISTRY)
WIDTH = 64  # of the collection's vectors
TAUGHT = [  # by gradient, with labels
    "conae",
    "learning-to-select",
    "learning-to-select:renormalised",
    "matryoshka-adaptor",
    "search-adaptor",
    "smec",
    "smec:nested",
]


# quick tests have one of the kind: matryoshka-adaptor
DEAR = {*TAUGHT, "dense", "adawidth:unlabelled", "adawidth-query", "adawidth-query:labelled", "dense:paper"} - {"matryoshka-adaptor"}


def some_slow(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in names]


@pytest.fixture(scope="module", params=some_slow(NAMES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def fitted(name: str, collection: Dataset) -> Baseline:
    method = baseline(name)
    assert method.fit(collection.learning(), seed=0) is method
    return method


@pytest.mark.parametrize("width", [16, 40, WIDTH])
def test_answers_every_query_within_the_width(fitted: Baseline, collection: Dataset, width: int) -> None:
    queries = collection.split("test")
    hits = fitted.search(collection.documents, queries, width, 10)
    assert hits.rows.shape == hits.scores.shape == (60, 10)
    assert hits.documents is not None
    assert all(len(set(answer)) == 10 for answer in hits.ids)
    assert np.isfinite(hits.scores).all()
    assert hits.mean_width <= max(1.1 * width, width + 2)  # budgets are set on dev
    assert 0 < fitted.stored_floats(width) <= 2 * WIDTH + 2
    assert fitted.multiply_adds(width, hits) > 0


def test_is_better_than_chance_and_reads_no_test_label(name: str, fitted: Baseline, collection: Dataset) -> None:
    queries, measure = collection.split("test"), Measure("nDCG", 10)
    assert queries.judged is not None
    found = fitted.search(collection.documents, queries, 40, 10)
    worth = evaluate([measure], found.rows, queries.judged)[str(measure)].mean()
    assert worth > 0.1  # by chance about .02
    if not name.endswith(":oracle"):
        blind = collection.queries.select([collection.queries.row_of[q] for q in queries.vectors.ids])
        from adawidth.data import Queries

        again = fitted.search(collection.documents, Queries(blind, None, queries.own), 40, 10)
        np.testing.assert_array_equal(again.rows, found.rows)


def test_ranks_the_candidates_alone_where_queries_have_some(fitted: Baseline, collection: Dataset) -> None:
    queries = collection.split("test")
    some = np.array([np.random.default_rng(i).choice(len(collection.documents), 30, replace=False) for i in range(len(queries))])
    some[0, 5:] = -1  # has five
    hits = fitted.search(collection.documents, replace(queries, candidates=some), 40, 10)
    assert all(set(rows[rows >= 0]) <= set(given) for rows, given in zip(hits.rows, some, strict=True))
    assert set(hits.rows[0]) == set(some[0, :5]) | {-1}
    everything = np.tile(np.arange(len(collection.documents)), (len(queries), 1))
    all_of_them = fitted.search(collection.documents, replace(queries, candidates=everything), 40, 10)
    if not isinstance(fitted, Staged | Dialled):  # these read on from a shortlist of 500
        np.testing.assert_array_equal(all_of_them.ids, fitted.search(collection.documents, queries, 40, 10).ids)


@pytest.mark.parametrize("role", ["query", "document"])
def test_encodes_as_wide_as_asked(fitted: Baseline, collection: Dataset, role: str) -> None:
    if not isinstance(fitted, Encoding) or isinstance(fitted, Staged):
        pytest.skip("makes no vectors of its own")
    for width in (16, 32, WIDTH):
        encoded = fitted.encode(collection.documents.all()[:7], role, width)  # type: ignore[arg-type]
        assert encoded.shape == (7, width)
        assert encoded.dtype == np.float32
        assert np.isfinite(encoded).all()


def test_parameters_are_counted(fitted: Baseline) -> None:
    assert isinstance(fitted.parameters, int)
    assert fitted.parameters >= 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answers(name: str, collection: Dataset) -> None:
    learning, queries = collection.learning(), collection.split("test")
    first, again = (baseline(name).fit(learning, seed=1).search(collection.documents, queries, 32, 10).rows for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.slow
def test_learns_without_labels(name: str, collection: Dataset) -> None:
    method = baseline(name).fit(collection.learning(labels=False))
    assert method.search(collection.documents, collection.split("test"), 32, 10).rows.shape == (60, 10)


def test_labels_that_are_hidden_change_nothing(collection: Dataset) -> None:
    first, again = (baseline("adawidth:unlabelled").fit(collection.learning(labels=labels)) for labels in (True, False))
    found = (method.search(collection.documents, collection.split("test"), 32, 10).rows for method in (first, again))
    np.testing.assert_array_equal(*found)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("descent", "dense"):
        monkeypatch.setattr(f"adawidth.baselines.{module}.steps_for", lambda task: 60)
    for module in ("smec", "learning_to_select"):
        monkeypatch.setattr(f"adawidth.baselines.{module}.STEPS", 60)


@pytest.fixture
def seen(few_steps: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many train queries every learning of a fit has."""
    counts: list[int] = []
    of: Callable[[Learning], Task] = Task.of
    monkeypatch.setattr(Task, "of", lambda learning: counts.append(len(learning.train)) or of(learning))
    return counts


@pytest.mark.parametrize("taught", some_slow([*TAUGHT, "dense"]))
def test_labels_teach_once_more_from_train_and_dev_together(taught: str, collection: Dataset, seen: list[int]) -> None:
    learning = collection.learning()
    baseline(taught).fit(learning)
    assert seen == [len(learning.train), len(learning.train) + len(learning.dev)]


@pytest.mark.parametrize("untaught", some_slow([*TAUGHT, "matryoshka-adaptor:unsupervised"]))
def test_without_labels_nothing_is_learned_again(untaught: str, collection: Dataset, seen: list[int]) -> None:
    learning = collection.learning(labels=untaught == "matryoshka-adaptor:unsupervised")
    baseline(untaught).fit(learning)
    assert seen == [len(learning.train)]


@pytest.mark.parametrize("taught", some_slow(TAUGHT))
@pytest.mark.usefixtures("few_steps")
def test_dev_labels_teach_and_a_seed_gives_the_same(taught: str, collection: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that see nothing but time pass take every descent at its end: dev labels can tell in the last learning alone."""
    clock = count()
    for kind, method in ((Ground, "evaluate"), (Masked, "score")):
        monkeypatch.setattr(kind, method, lambda *settings, **more: float(next(clock)))
    learning, queries = collection.learning(), collection.split("test")
    judged = learning.dev.judged
    assert judged is not None
    others = replace(learning, dev=replace(learning.dev, judged=judged.select(np.roll(np.arange(len(judged)), 1))))
    once, again, otherwise = (
        baseline(taught).fit(given, seed=1).search(collection.documents, queries, 24, 10).scores for given in (learning, learning, others)
    )
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, otherwise)


def test_an_unfitted_method_says_so(name: str, collection: Dataset) -> None:
    with pytest.raises(OptionError, match="has to be fitted"):
        baseline(name).search(collection.documents, collection.split("test"), 32, 10)


def test_an_unknown_method_lists_the_known() -> None:
    with pytest.raises(OptionError, match="there is no method 'magic'; there are truncation"):
        baseline("magic")
