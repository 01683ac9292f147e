"""One width for all queries in one request, where the engine can; and start widths beyond those that a fit calibrates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from adawidth import Index
from adawidth.data import Vectors
from adawidth.engines.store import EngineStore
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push
from engine_places import START, WIDTH, Corpus, Place
from engines.conftest import ENGINES, place_of

pytestmark = pytest.mark.engines
ROWS = slice(0, 300)


@pytest.fixture(scope="module", params=list(ENGINES))
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Iterator[Index]:
    """Of some of the documents, in an engine; tests only read it."""
    with place_of(request, tmp_path_factory.mktemp("widths")).made(corpus, ROWS) as made:
        yield made


@pytest.mark.parametrize("where", [None, {"lang": "de"}, {"lang": "xx"}])
def test_one_width_for_all_is_one_request_and_the_same_answer(
    index: Index, corpus: Corpus, where: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(index.store, EngineStore)
    engine = index.store.engine
    index.search(corpus.queries[:1], width="full")  # some engines look once at how large the collection is
    before = engine.trips
    found = index.search(corpus.queries, k=5, width="full", shortlist=40, where=where)
    trips = engine.trips - before
    assert trips == 1 or not engine.one_request
    monkeypatch.setattr(engine, "one_request", False)
    steps = index.search(corpus.queries, k=5, width="full", shortlist=40, where=where)
    assert found.ids == steps.ids
    assert np.allclose(found.scores, steps.scores, atol=2e-4)
    assert found.mean_width == pytest.approx(WIDTH if where != {"lang": "xx"} else found.mean_width)
    if where is None:
        assert [answer[0].title for answer in found[:3]] == [answer[0].title for answer in steps[:3]] != ["", "", ""]


def test_a_batch_with_shared_and_own_candidates(index: Index, corpus: Corpus) -> None:
    twice = np.concatenate([corpus.queries[:3], corpus.queries[:3]])
    found = index.search(twice, k=5, width=64, shortlist=20)
    assert found.ids[:3] == found.ids[3:]
    alone = [index.search(query, k=5, width=64, shortlist=20).ids[0] for query in corpus.queries[:3]]
    assert found.ids[:3] == alone


def test_a_start_width_that_no_fit_calibrates(engine_place: Place, corpus: Corpus) -> None:
    """Each ladder width has thresholds of its own, so a taper may begin at any of them; the layout's shortlist is the default."""
    assert engine_place.url is not None
    layout = layout_of(corpus.model, widths=(80,), shortlist=30)
    vectors = Vectors.of(corpus.documents[ROWS], corpus.ids[ROWS])
    push(corpus.model, of_vectors(vectors), engine_place.url, engine_place.collection, layout=layout)
    with connect(engine_place.url, engine_place.collection) as index:
        assert isinstance(index.store, EngineStore)
        assert (layout.start, index.store.engine.layout.shortlist) == (80, 30)
        hits = index.search(corpus.queries, k=10)
        assert hits.read is not None
        assert set(hits.read.candidates.tolist()) == {30}
        exact = (corpus.queries / np.linalg.norm(corpus.queries, axis=1, keepdims=True)) @ (
            corpus.documents[ROWS] / np.linalg.norm(corpus.documents[ROWS], axis=1, keepdims=True)
        ).T
        best = [{corpus.ids[row] for row in rows} for rows in np.argsort(-exact, axis=1)[:, :10]]
        kept = np.mean([len(set(names) & wanted) / 10 for names, wanted in zip(hits.ids, best, strict=True)])
        assert kept >= 0.95
        assert START not in layout.widths


def test_a_budget_is_kept_though_reading_more_at_once_may_be_cheaper(index: Index, corpus: Corpus) -> None:
    for budget in (START + 2, START + 8, 64):
        bounded = index.search(corpus.queries, k=5, shortlist=100, budget=budget)
        assert START <= bounded.mean_width <= budget
        assert all(len(answer) == 5 for answer in bounded)
