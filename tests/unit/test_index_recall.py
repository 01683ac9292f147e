"""What an index on disk finds of the exact ranking, on real vectors and every storage: with filters, and after documents were replaced."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth import AdaWidth, Index, bundled, load_dataset
from adawidth.index.codes import graph
from adawidth.types import Mask

pytestmark = pytest.mark.slow

K, SHORTLIST, QUERIES = 10, 60, 200  # a shortlist of 2 % of the documents, so that what codes find matters
TOLERATED = 0.005
HARDER = 0.02  # documents that lie together are harder to tell apart, also by exact scores at the start width
STORAGES: tuple[Any, ...] = ("flat", "int8", "pq4", "ivf", "graph")
DATA = load_dataset(bundled.path())
VECTORS, ASKED = DATA.documents.all(), DATA.queries_of("test").all()[:QUERIES]
NAMES = [f"d{i}" for i in range(len(VECTORS))]
SCORES = ASKED @ VECTORS.T  # cosines
ALONG = VECTORS @ np.linalg.svd(VECTORS - VECTORS.mean(axis=0), full_matrices=False)[2][0]  # what differs most


def known(row: int) -> dict[str, Any]:
    """Of a document: a number that has nothing to do with its vector, and one that has."""
    return {"drawn": row * 7919 % 1000, "along": float(ALONG[row])}


@pytest.fixture(scope="module")
def model() -> AdaWidth:
    return AdaWidth.fit(DATA.documents, recipe="pca")


@pytest.fixture(autouse=True, scope="module")
def _walking() -> Iterator[None]:
    """A graph is walked, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "SCANNED", 0)
        yield


@pytest.fixture(scope="module", params=STORAGES)
def index(request: pytest.FixtureRequest, model: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> Index:
    rows = [known(row) for row in range(len(VECTORS))]
    return model.index(VECTORS, tmp_path_factory.mktemp("recall") / "i", ids=NAMES, metadata=rows, storage=request.param)


def recall(index: Index, allowed: Mask | None = None, where: str | None = None) -> float:
    """The share of the exact top 10, among the documents allowed, that a search finds."""
    scores = SCORES if allowed is None else np.where(allowed, SCORES, -np.inf)
    best = np.argsort(-scores, axis=1)[:, :K]
    found = index.search(ASKED, K, width="full", shortlist=SHORTLIST, where=where).ids
    return float(np.mean([len({NAMES[row] for row in rows} & set(ids)) / K for rows, ids in zip(best, found, strict=True)]))


@pytest.fixture(scope="module")
def plain(index: Index) -> float:
    """Without a filter."""
    return recall(index)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("field", ["drawn", "along"])
def test_a_filter_costs_no_recall(index: Index, plain: float, field: str, share: float) -> None:
    """Selective and unselective ones, of documents drawn at random and of those that lie together, near queries or far from them."""
    values = np.array([known(row)[field] for row in range(len(VECTORS))])
    low, high = np.quantile(values, [share, 1 - share]).tolist()
    for where, allowed in ((f"{field} <= {low!r}", values <= low), (f"{field} > {high!r}", values > high)):
        assert allowed.mean() == pytest.approx(share, abs=0.01)
        assert recall(index, allowed, where) >= plain - (HARDER if field == "along" else TOLERATED), where


def test_replacing_half_of_the_documents_costs_no_recall(index: Index, plain: float, model: AdaWidth, tmp_path: Path) -> None:
    """In many commits, so that there are several segments; and after they were merged."""
    rng = np.random.default_rng(0)
    half = rng.permutation(len(VECTORS))[: len(VECTORS) // 2]
    former = VECTORS.copy()
    former[half] = VECTORS[rng.permutation(half)]  # another's vector each
    changed = model.index(former, tmp_path / "i", ids=NAMES, storage=index.store.facts()["storage"])
    assert recall(changed) < 0.8
    for part in np.array_split(half, 12):
        changed.update(VECTORS[part], [NAMES[row] for row in part])
    assert len(changed.store.facts()["segments"]) > 1
    assert recall(changed) >= plain - TOLERATED
    changed.compact()
    assert recall(changed) >= plain - TOLERATED
