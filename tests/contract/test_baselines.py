"""What every method of the registry promises."""

import numpy as np
import pytest

from adawidth.baselines import REGISTRY, Baseline, Encoding, Staged, baseline
from adawidth.data import Dataset
from adawidth.errors import OptionError
from adawidth.metrics import Measure, evaluate

NAMES = sorted(REGISTRY)
WIDTH = 64  # of the collection's vectors


@pytest.fixture(scope="module", params=NAMES)
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


def test_an_unfitted_method_says_so(name: str, collection: Dataset) -> None:
    with pytest.raises(OptionError, match="has to be fitted"):
        baseline(name).search(collection.documents, collection.split("test"), 32, 10)


def test_an_unknown_method_lists_the_known() -> None:
    with pytest.raises(OptionError, match="there is no method 'magic'; there are truncation"):
        baseline("magic")
