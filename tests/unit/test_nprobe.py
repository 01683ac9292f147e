"""`nprobe`: how many lists of an index folder a search scans, instead of as many as the query needs."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Index
from adawidth.data import unit
from adawidth.errors import OptionError
from adawidth.index import view as views
from adawidth.index.codes.ivf import MET, Lists
from adawidth.index.view import View

N, D, K, SHORTLIST = 6_000, 64, 10, 12


def rows(count: int, seed: int) -> np.ndarray:
    """In clusters, as encoders' are."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((60, D))
    return unit((centres[rng.integers(60, size=count)] + 2 * rng.standard_normal((count, D))).astype(np.float32))


DOCUMENTS, QUERIES = rows(N, 0), rows(50, 1)


@pytest.fixture(scope="module")
def model() -> AdaWidth:
    return AdaWidth.fit(DOCUMENTS[:1_000], recipe="pca")


@pytest.fixture(scope="module")
def index(model: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> Index:
    known = [{"even": i % 2 == 0} for i in range(N)]
    return model.index(DOCUMENTS, tmp_path_factory.mktemp("nprobe") / "i", storage="ivf", metadata=known)


def lists_of(index: Index) -> list[Lists]:
    assert isinstance(index.store.view, View)
    found = [segment.codes for segment in index.store.view.segments]
    return [codes for codes in found if isinstance(codes, Lists)]


def test_few_lists_are_the_nearest_and_all_lists_give_the_exact_answer(index: Index) -> None:
    codes = lists_of(index)[0]
    stored = codes.arrays()
    turned = index.model.rotate(QUERIES, width=codes.width) @ stored["turn"].T
    centres = stored["centres"] / np.linalg.norm(stored["centres"], axis=1, keepdims=True)
    nearest = np.argsort(-turned @ centres.T, axis=1)
    size = np.bincount(stored["list_of"]).mean()
    most = int(np.ceil(max(8 * size, MET * SHORTLIST) / size))
    found = index.search(QUERIES, K, nprobe=8, shortlist=SHORTLIST, width="full").rows
    for query, own in enumerate(found):
        assert set(stored["list_of"][own]) <= set(nearest[query, :most])
    exact = np.argsort(-QUERIES @ DOCUMENTS.T, axis=1)[:, :K]
    whole = index.search(QUERIES, K, nprobe=codes.lists, shortlist=N, width="full").rows
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact, whole, strict=True)]) > 0.999  # rows are rounded to float16


def test_more_lists_find_more_and_cost_more(index: Index) -> None:
    exact = np.argsort(-QUERIES @ DOCUMENTS.T, axis=1)[:, :K]
    recalls, costs = [], []
    for nprobe in (1, 4, 16, 10**12):
        hits = index.search(QUERIES, K, nprobe=nprobe, shortlist=100, width="full")
        recalls.append(np.mean([np.isin(a, b).mean() for a, b in zip(exact, hits.rows, strict=True)]))
        costs.append(int(hits.read.bytes[0]))
    assert all(low <= high for low, high in pairwise(recalls))
    assert recalls[0] < recalls[-1]
    assert all(low < high for low, high in pairwise(costs))


def test_info_tells_how_many_are_typical(index: Index) -> None:
    codes = lists_of(index)[0]
    typical = int(codes.arrays()["probes"][0])
    assert 1 <= typical < codes.lists
    assert [(one["lists"], one["nprobe"]) for one in index.facts()["segments"]] == [(codes.lists, typical)]


def test_without_it_hard_queries_scan_more_lists() -> None:
    """Half of the documents are in tight clusters, whose members are easy queries; those of the other half are nowhere near any other."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((60, D))
    tight, loose = centres[rng.integers(60, size=N // 2)] + 0.3 * rng.standard_normal((N // 2, D)), rng.standard_normal((N // 2, D))
    codes = Lists.build(unit(np.concatenate([tight, loose]).astype(np.float32)), 0)
    easy, hard = unit(tight[:50].astype(np.float32)), unit(rng.standard_normal((50, D)).astype(np.float32))
    few, many = (codes._scan(queries, 50, codes.lists, codes._round)[1] for queries in (easy, hard))
    assert 2 * few < many


def test_segments_are_scanned_in_proportion(model: AdaWidth, tmp_path: Path) -> None:
    index = model.index(DOCUMENTS[:4_000], tmp_path / "i", storage="ivf")
    index.add(DOCUMENTS[4_000:5_000])
    index.add(DOCUMENTS[5_000:5_010])  # too few for lists of their own
    large, small, least = (codes.lists for codes in lists_of(index))
    assert large > small > least == 1
    view = index.store.view.probing(large // 2)
    assert isinstance(view, View)
    shares = [codes.share_scanned for codes, _, _ in view._codes if isinstance(codes, Lists)]
    assert shares == [large // 2 / large] * 3
    whole = index.search(QUERIES, K, nprobe=large, shortlist=5_010, width="full")
    exact = np.argsort(-QUERIES @ DOCUMENTS[:5_010].T, axis=1)[:, :K]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact, np.array(whole.ids), strict=True)]) > 0.999


def test_it_goes_with_filters_and_threads(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    count = lists_of(index)[0].lists
    assert all(one % 2 == 0 for ids in index.search(QUERIES, K, nprobe=3, where="even = true").ids for one in ids)
    one = index.search(QUERIES[:1], K, nprobe=count)
    monkeypatch.setattr(views, "SHARED", 1)
    monkeypatch.setattr(views, "cpus", lambda: 2)
    assert index.search(QUERIES[:1], K, nprobe=count, threads=2).ids == one.ids


@pytest.mark.parametrize("storage", [None, "pq4"])
def test_it_is_refused_where_there_are_no_lists(model: AdaWidth, tmp_path: Path, storage: str | None) -> None:
    index = model.index(DOCUMENTS[:200], tmp_path / "i", storage=storage) if storage else model.index(DOCUMENTS[:200])
    with pytest.raises(OptionError, match=r"nprobe 8 .* \(storage ivf\)"):
        index.search(QUERIES, nprobe=8)


@pytest.mark.parametrize("nprobe", [0, -1, 2.5, True, "8"])
def test_it_is_a_whole_number(index: Index, nprobe: object) -> None:
    with pytest.raises(OptionError, match="nprobe"):
        index.search(QUERIES, nprobe=nprobe)  # type: ignore[arg-type]
