"""Candidates that their codes put too far below the best are not read: how far that is, and what it changes."""

import math
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Index, open_index
from adawidth.data import unit
from adawidth.errors import ArtifactError
from adawidth.index import codes
from adawidth.index.store.segment import GAP, Segment
from adawidth.index.view import View

N, D = 6_000, 96


def rows_of(seed: int, count: int) -> np.ndarray:
    """Vectors of groups, with a spectrum that falls off: some have many near ones, others few."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(7).standard_normal((40, D)) * np.exp(-np.arange(D) / 25)
    return unit(middles[rng.geometric(0.1, count) % 40] + 0.5 * rng.standard_normal((count, D)) * np.exp(-np.arange(D) / 40))


QUERIES = rows_of(1, 60)


@pytest.fixture(scope="module")
def model() -> AdaWidth:
    return AdaWidth.fit(rows_of(0, N), rows_of(2, 200), recipe="pca")


@pytest.fixture(scope="module", params=["pq4", "ivf"])
def index(request: pytest.FixtureRequest, model: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> Index:
    return model.index(rows_of(0, N), tmp_path_factory.mktemp("gap") / "i", storage=request.param)


def view_of(index: Index) -> View:
    assert isinstance(index.store.view, View)
    return index.store.view


def test_fewer_candidates_are_read_and_the_answers_stay(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    thinned = index.search(QUERIES)
    monkeypatch.setattr(view_of(index), "_gaps", [math.inf])
    whole = index.search(QUERIES)
    assert thinned.read is not None
    assert whole.read is not None
    assert (whole.read.candidates == 500).all()
    assert 20 < thinned.read.candidates.mean() < 400
    assert (thinned.read.coordinates <= whole.read.coordinates).mean() > 0.9
    same = [np.isin(a, b).mean() for a, b in zip(whole.rows, thinned.rows, strict=True)]
    assert np.mean(same) > 0.995


def test_the_gap_is_what_the_documents_tell(index: Index) -> None:
    """The share of nearest documents, of queries that measured nothing, that lie within it."""
    segment = view_of(index).segments[0]
    rotated = index.model.rotation.apply(QUERIES)
    prefixes = unit(rotated[:, : segment.codes.width])
    told = segment.codes.scores(prefixes, np.tile(np.arange(N), (len(QUERIES), 1)))
    near = np.argsort(-(rotated @ segment.rows.astype(np.float32).T), axis=1)[:, :10]
    kth = np.sort(told, axis=1)[:, -10, None]
    assert 0.001 < segment.gap < 0.5
    assert (np.take_along_axis(told, near, axis=1) >= kth - segment.gap).mean() > 0.99
    assert (np.take_along_axis(told, near, axis=1) >= kth - segment.gap / 4).mean() < 0.99


def test_budgets_and_fixed_widths_read_the_whole_shortlist(index: Index) -> None:
    """A budget is a mean width over all of it."""
    for options in ({"budget": 48}, {"width": 64}, {"width": "full"}):
        read = index.search(QUERIES, **options).read  # type: ignore[arg-type]
        assert read is not None
        assert (read.candidates == 500).all(), options


def test_pages_are_parts_of_one_list(index: Index) -> None:
    """Also where a page reaches beyond the candidates that were read for the first."""
    first = index.search(QUERIES)
    assert first.read is not None
    assert first.read.candidates.min() < 400
    pages = [index.search(QUERIES, offset=offset) for offset in range(0, 500, 10)]
    rows = np.concatenate([page.rows for page in pages], axis=1)
    assert (pages[0].rows == first.rows).all()
    assert all(len(set(found)) == 500 for found in rows.tolist())
    assert pages[-1].read is not None
    assert (pages[-1].read.candidates == 500).all()
    long = index.search(QUERIES, k=100)
    assert all(len(set(found)) == 100 for found in long.rows.tolist())


def test_one_query_and_several_segments_do_the_same(model: AdaWidth, tmp_path: Path) -> None:
    index = model.index(rows_of(0, N), tmp_path / "i", storage="pq4")
    index.add(rows_of(3, 2_500))
    assert len(view_of(index).segments) == 2
    together = index.search(QUERIES)
    assert together.read is not None
    assert together.read.candidates.mean() < 450
    for query, rows in zip(QUERIES, together.rows, strict=True):
        assert (index.search(query).rows[0] == rows).mean() > 0.9  # but for what is rounded
    shared = [index.search(query, threads=4) for query in QUERIES[:3]]
    assert all((found.rows[0] == rows).mean() > 0.9 for found, rows in zip(shared, together.rows, strict=False))


def test_codes_that_tell_exactly_and_small_segments_have_no_gap(model: AdaWidth, tmp_path: Path) -> None:
    for name, storage, count in (("flat", "flat", N), ("small", "pq4", 300)):
        index = model.index(rows_of(0, count), tmp_path / name, storage=storage)  # type: ignore[arg-type]
        assert GAP not in view_of(index).segments[0].arrays
        assert view_of(index).segments[0].gap == math.inf


def test_equal_documents_have_a_gap(model: AdaWidth, tmp_path: Path) -> None:
    """All score the same: none may be left out."""
    index = model.index(np.tile(rows_of(0, 1), (3_000, 1)), tmp_path / "i", storage="pq4")
    hits = index.search(QUERIES[:3])
    assert (hits.rows >= 0).all()


@pytest.mark.parametrize("number", [-1.0, np.nan])
def test_a_gap_that_is_none_is_refused(index: Index, monkeypatch: pytest.MonkeyPatch, number: float) -> None:
    segment = view_of(index).segments[0]
    array = Segment._array
    monkeypatch.setattr(Segment, "_array", lambda self, name: np.full(1, number, np.float32) if name == GAP else array(self, name))
    with pytest.raises(ArtifactError, match="gap"):
        Segment(segment.path.parent, segment.entry)


def test_rows_are_left_out_by_their_codes_scores() -> None:
    rows = rows_of(5, 3_000)
    built = codes.build(rows[:, :64].copy() / np.linalg.norm(rows[:, :64], axis=1, keepdims=True), "pq4", 0, 2)
    queries = unit(QUERIES[:, :64])
    every = built.scores(queries, np.tile(np.arange(3_000), (len(queries), 1)))
    kth = np.sort(every, axis=1)[:, -5, None]
    found = built.search(queries, 1_000, near=(5, 0.05))
    for query, rows_found in enumerate(found):
        held = rows_found[rows_found >= 0]
        assert (every[query, held] > kth[query] - 0.07).all()  # tables are rounded
        assert np.isin(np.flatnonzero(every[query] > kth[query] - 0.03), held).all()


def test_an_index_that_was_opened_again_keeps_its_gap(index: Index) -> None:
    assert index.path is not None
    again = open_index(index.path)
    assert view_of(again)._gaps == view_of(index)._gaps
