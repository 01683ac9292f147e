"""One contract over memory, disk and every engine: the same verbs, the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth import AdaWidth, AdaWidthError, Index
from adawidth.data import Vectors
from adawidth.errors import ArtifactError, DataError, OptionError
from adawidth.filters import parse
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, push
from adawidth.types import F32
from engine_places import START, WIDTH, Corpus, Place

pytestmark = pytest.mark.engines
RECALL = 0.98  # of approximate stage 1, after rescoring
FILTERS: list[Any] = [
    "lang = 'en'",
    "year >= 2010 AND lang IN ('de', 'fr')",
    "NOT draft = true",
    "inner.score < 20.5 OR year = 2003",
    "lang IS NULL",
    "lang != 'en'",
    {"year": [2001, 2002], "draft": False},
]


def brute_force(corpus: Corpus, width: int, k: int, allowed: F32 | None = None) -> tuple[list[list[str]], F32]:
    """Every document ranked by the cosine of its prefix, in float64."""
    rotated = corpus.model.rotate(corpus.documents, width).astype(np.float64)
    queries = corpus.model.rotate_queries(corpus.queries, width).astype(np.float64)
    scores = queries @ rotated.T
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [[corpus.ids[row] for row in ranked] for ranked in order.tolist()], np.take_along_axis(scores, order, axis=1)


def recall(found: list[list[Any]], wanted: list[list[str]]) -> float:
    return float(np.mean([len(set(one) & set(other)) / max(len(other), 1) for one, other in zip(found, wanted, strict=True)]))


@pytest.mark.parametrize("width", [START, WIDTH])
def test_fixed_widths_answer_as_brute_force(standing: Index, corpus: Corpus, width: int) -> None:
    hits = standing.search(corpus.queries, k=10, width=width, start=START)
    wanted, scores = brute_force(corpus, width, 10)
    assert recall(hits.ids, wanted) >= RECALL
    same = np.array([one == other for one, other in zip(hits.ids, wanted, strict=True)])
    np.testing.assert_allclose(hits.scores[same], scores[same], atol=2e-3 if width == START else 1e-3)


def test_the_default_policy_keeps_nearly_all_of_the_full_width_answer(standing: Index, corpus: Corpus) -> None:
    hits = standing.search(corpus.queries, k=10, start=START, quality=0.99)
    assert recall(hits.ids, brute_force(corpus, WIDTH, 10)[0]) >= 0.95
    assert START <= hits.mean_width <= WIDTH


@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_filters_find_what_meets_them_and_nothing_else(standing: Index, corpus: Corpus, condition: Any) -> None:
    allowed = np.array([parse(condition).matches(metadata) for metadata in corpus.metadata])
    assert 0 < allowed.sum() < len(allowed)
    hits = standing.search(corpus.queries, k=10, where=condition, width=WIDTH, start=START)
    assert recall(hits.ids, brute_force(corpus, WIDTH, 10, allowed)[0]) >= RECALL
    met = {name for name, meets in zip(corpus.ids, allowed, strict=True) if meets}
    assert all(name in met for answer in hits.ids for name in answer)


def test_a_filter_that_nothing_meets_finds_nothing(standing: Index, corpus: Corpus) -> None:
    hits = standing.search(corpus.queries, k=5, where="year > 3000")
    assert hits.ids == [[] for _ in corpus.queries]


def test_hits_carry_what_is_known(standing: Index, corpus: Corpus) -> None:
    hit = standing.search(corpus.documents[17], k=1)[0][0]
    assert (hit.id, hit.title, hit.text) == ("doc-17", "Title 17", corpus.texts[17])
    assert hit.metadata == corpus.metadata[17]


def test_documents_are_added_updated_and_removed(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 100))
    new = corpus.documents[100:103]
    assert index.add(new, ["a", "b", "ü'\"%"], texts=["one", "two", "three"], metadata=[{"n": 1}, {"n": 2}, {}]).added == 3
    assert len(index) == 103
    assert "ü'\"%" in index
    assert "c" not in index
    assert index.search(new[2], k=1).ids == [["ü'\"%"]]
    assert index.update(corpus.documents[200:201], ["a"], texts=["other"]).replaced == 1
    assert index.get("a").text == "other"
    assert len(index) == 103
    assert index.search(corpus.documents[200], k=1).ids == [["a"]]
    np.testing.assert_allclose(index.vectors(["a"])[0], corpus.model.rotate(corpus.documents[200:201])[0], atol=2e-3)
    assert index.remove(["a", "ü'\"%"]) == 2
    assert len(index) == 101
    assert "a" not in index
    assert "a" not in index.search(corpus.documents[200], k=101).ids[0]
    again = place.again()
    assert sorted(map(str, again)) == sorted([*corpus.ids[:100], "b"])
    assert again.get("b").metadata == {"n": 2}


def test_ids_that_are_there_are_refused_and_nothing_is_written(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 40))
    with pytest.raises(DataError, match="doc-3"):
        index.add(corpus.documents[:2], ["new", "doc-3"])
    assert len(place.again()) == 40
    assert "new" not in index


def test_unknown_ids_are_named_and_nothing_is_removed(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 40))
    for verb in (index.get, index.remove):
        with pytest.raises(DataError, match="nowhere"):
            verb("nowhere")
    with pytest.raises(DataError, match="1 of 2 ids"):
        index.remove(["doc-1", "nowhere"])
    assert len(place.again()) == 40


def test_wrong_widths_are_refused_with_both_numbers(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 40))
    for attempt in (lambda: index.search(np.ones(WIDTH - 1)), lambda: index.add(np.ones((1, WIDTH + 1)), ["z"])):
        with pytest.raises(AdaWidthError, match=rf"{WIDTH}"):
            attempt()


def test_more_answers_than_documents_are_all_of_them(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 7))
    assert sorted(index.search(corpus.queries[0], k=20).ids[0]) == sorted(corpus.ids[:7])


def test_many_queries_are_answered_as_each_alone(standing: Index, corpus: Corpus) -> None:
    together = standing.search(corpus.queries, k=5, quality=0.95, threads=2)
    alone = [standing.search(query, k=5, quality=0.95).ids[0] for query in corpus.queries]
    assert together.ids == alone


def test_pages_follow_one_another(standing: Index, corpus: Corpus) -> None:
    whole = standing.search(corpus.queries[0], k=10, width=WIDTH, start=START).ids[0]
    pages = [standing.search(corpus.queries[0], k=5, offset=offset, width=WIDTH, start=START).ids[0] for offset in (0, 5)]
    assert pages[0] + pages[1] == whole


class TestEngines:
    """What only an engine has."""

    def test_a_second_client_needs_the_address_alone(self, engine_place: Place, corpus: Corpus) -> None:
        first = engine_place.made(corpus)
        second = engine_place.again()
        assert second.model.rotation.fingerprint == corpus.model.rotation.fingerprint
        assert second.search(corpus.queries, k=5).ids == first.search(corpus.queries, k=5).ids

    def test_a_model_of_another_rotation_is_refused(self, engine_place: Place, corpus: Corpus, other: AdaWidth) -> None:
        engine_place.made(corpus, slice(0, 30))
        assert engine_place.url is not None
        with pytest.raises(AdaWidthError, match="rotation"):
            connect(engine_place.url, engine_place.collection, other)
        with pytest.raises(OptionError, match="--force"):
            push(other, of_vectors(Vectors.of(corpus.documents[:3], ["a", "b", "c"])), engine_place.url, engine_place.collection)

    def test_pushing_again_doubles_nothing(self, engine_place: Place, corpus: Corpus) -> None:
        engine_place.made(corpus, slice(0, 60))
        index = engine_place.made(corpus, slice(30, 90))
        assert len(index) == 90
        assert len(list(index)) == 90

    def test_a_collection_that_is_not_there(self, engine_place: Place) -> None:
        assert engine_place.url is not None
        with pytest.raises(ArtifactError, match="adawidth push"):
            connect(engine_place.url, "nothing_here")

    def test_two_clients_write(self, engine_place: Place, corpus: Corpus) -> None:
        first = engine_place.made(corpus, slice(0, 20))
        second = engine_place.again()
        first.add(corpus.documents[20:25], corpus.ids[20:25])
        second.add(corpus.documents[25:30], corpus.ids[25:30])
        with pytest.raises(DataError, match="doc-22"):
            second.add(corpus.documents[22:23], corpus.ids[22:23])
        first.refresh()
        assert len(first) == 30 == len(engine_place.again())
        assert second.search(corpus.documents[21], k=1).ids == [["doc-21"]]

    def test_widths_between_those_pushed_are_scored_or_refused(self, engine_place: Place, corpus: Corpus) -> None:
        index: Index = engine_place.made(corpus)
        if not index.store.engine.any_width:  # type: ignore[attr-defined]
            with pytest.raises(OptionError, match="width 50 is not kept in the engine; there are 32, 64, 96"):
                index.search(corpus.queries, width=50)
            return
        hits = index.search(corpus.queries, k=10, width=50, shortlist=600)
        assert recall(hits.ids, brute_force(corpus, 50, 10)[0]) >= RECALL
        with pytest.raises(OptionError, match=f"width {WIDTH + 1} is not a whole number between 1 and"):
            index.search(corpus.queries, width=WIDTH + 1)

    def test_it_says_where_it_is_and_has_no_folder_to_copy(self, engine_place: Place, corpus: Corpus, tmp_path: Path) -> None:
        index = engine_place.made(corpus, slice(0, 20))
        assert f"20 documents in {index.store.place}, " in repr(index)
        assert engine_place.collection in index.store.place
        with pytest.raises(OptionError, match="the engine's own backup"):
            index.snapshot(tmp_path / "copy")

    def test_few_trips(self, engine_place: Place, corpus: Corpus) -> None:
        index: Index = engine_place.made(corpus)
        engine = index.store.engine  # type: ignore[attr-defined]
        before = engine.trips
        index.search(corpus.queries[0], k=5)
        assert engine.trips - before <= 1 + len(engine.layout.widths)

    def test_a_policy_that_it_can_not_follow_is_named(self, engine_place: Place, corpus: Corpus) -> None:
        with pytest.raises(OptionError, match="certify"):
            engine_place.made(corpus, slice(0, 20)).search(corpus.queries[0], policy="certify")
