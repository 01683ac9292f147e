"""What every method of the registry promises."""

import numpy as np
import pytest

from adawidth.baselines import REGISTRY, Baseline, Searching, baseline
from adawidth.data import Dataset, unit
from adawidth.errors import OptionError

LEARNED = ("adawidth", "adawidth-query")  # by gradient: a fit takes a while


@pytest.fixture(scope="module", params=sorted(REGISTRY))
def fitted(request: pytest.FixtureRequest, collection: Dataset) -> Baseline:
    return baseline(request.param).fit(collection.learning(), seed=0)


def test_fit_returns_the_method_itself(collection: Dataset) -> None:
    method = baseline("pca")
    assert method.fit(collection.learning()) is method


@pytest.mark.parametrize("width", [1, 32, 64])
@pytest.mark.parametrize("role", ["query", "document"])
def test_encodes_as_wide_as_asked(fitted: Baseline, collection: Dataset, width: int, role: str) -> None:
    encoded = fitted.encode(collection.documents.all()[:7], role, width)  # type: ignore[arg-type]
    assert encoded.shape == (7, width)
    assert encoded.dtype == np.float32
    assert np.isfinite(encoded).all()
    assert 1 <= fitted.stored_floats(width) <= 64


def test_full_width_keeps_every_cosine(fitted: Baseline, collection: Dataset) -> None:
    if isinstance(fitted, Searching):
        pytest.skip("moves the queries")
    queries, documents = collection.queries.all()[:5], collection.documents.all()
    encoded = unit(fitted.encode(queries, "query", 64)) @ unit(fitted.encode(documents, "document", 64)).T
    np.testing.assert_allclose(encoded, queries @ documents.T, atol=1e-4)


def test_parameters_are_counted(fitted: Baseline) -> None:
    assert fitted.parameters in (0, 64 * 63 // 2, 64 * 63 // 2 + 64 * 65)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LEARNED else ()) for name in sorted(REGISTRY)])
def test_the_same_seed_gives_the_same_method(name: str, collection: Dataset) -> None:
    rows = collection.documents.all()[:3]
    first, again = (baseline(name).fit(collection.learning(), seed=1).encode(rows, "document", 32) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LEARNED else ()) for name in sorted(REGISTRY)])
def test_learns_without_labels(name: str, collection: Dataset) -> None:
    assert baseline(name).fit(collection.learning(labels=False)).encode(collection.documents.all()[:1], "document", 32).shape == (1, 32)


def test_an_unfitted_method_says_so(collection: Dataset) -> None:
    with pytest.raises(OptionError, match="has to be fitted"):
        baseline("pca").encode(collection.documents.all(), "document", 32)


def test_an_unknown_method_lists_the_known() -> None:
    with pytest.raises(OptionError, match="there is no method 'magic'; there are truncation"):
        baseline("magic")


def test_a_method_that_spends_unevenly_keeps_to_its_budget(fitted: Baseline, collection: Dataset) -> None:
    if not isinstance(fitted, Searching):
        pytest.skip("spends evenly")
    queries = collection.split("test")
    for budget in (16, 40, 64):
        hits = fitted.search(collection.documents, queries, budget, 10)
        assert hits.rows.shape == (60, 10)
        assert hits.mean_width <= budget * 1.1  # set on dev
    wide = unit(fitted.encode(queries.vectors.all(), "query", 16)) @ unit(fitted.encode(collection.documents.all(), "document", 16)).T
    assert (fitted.search(collection.documents, queries, 16, 1).rows[:, 0] == wide.argmax(axis=1)).mean() > 0.98
