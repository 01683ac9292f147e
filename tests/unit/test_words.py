"""BM25 over words in memory and on disk: against a plain sum, over several segments, removals, filters and hostile queries."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth import AdaWidth, Document, Index, open_index
from adawidth.data import unit
from adawidth.errors import DataError, OptionError
from adawidth.stages.words import K1, B, Lexicon, Words, WordsWriter, fused, words_of

D = 40
VECTORS = unit(np.random.default_rng(0).standard_normal((60, D)).astype(np.float32))
MODEL = AdaWidth.fit(VECTORS, recipe="pca")
TEXTS = st.lists(st.text("abcd AÉß日本'\"*()-:^\0", max_size=20), min_size=1, max_size=12)


def lexicon(texts: list[str], alive: list[bool] | None = None) -> Lexicon:
    """In one part for every third text."""
    parts = []
    for start in range(0, len(texts), 3):
        writer = WordsWriter()
        writer.add(Document(str(row), text=text) for row, text in enumerate(texts[start : start + 3]))
        parts.append(Words(writer.arrays(), len(texts[start : start + 3])))
    return Lexicon(parts, np.array(alive or [True] * len(texts)), np.arange(len(texts)))


def bm25(texts: list[str], query: str) -> list[float]:
    """By the formula."""
    documents = [Counter(words_of(text)) for text in texts]
    mean = max(1.0, sum(document.total() for document in documents) / len(documents))
    scores = [0.0] * len(texts)
    for word in words_of(query):
        having = sum(word in document for document in documents)
        for row, document in enumerate(documents):
            if document[word]:
                rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
                scores[row] += rarity * document[word] * (K1 + 1) / (document[word] + K1 * (1 - B + B * document.total() / mean))
    return scores


def test_words() -> None:
    assert words_of("The Lamps' light: 3 tests, STRASSE Straße naïve_x 日本語") == [
        *("the", "lamp", "light", "3", "test", "strasse", "strasse", "naive", "x", "日", "本", "語")
    ]
    assert words_of("queries buses glass status is has x" + "y" * 100) == ["query", "buse", "glass", "status", "is", "has", "x" + "y" * 63]
    assert words_of(" .,-* \0") == []


@given(TEXTS, st.text("abcd日'\"*()-: NEAROT", max_size=12))
def test_scores_are_bm25(texts: list[str], query: str) -> None:
    found = lexicon(texts).search([query], len(texts))[0]
    expected = bm25(texts, query)
    kept = [row for row in found.tolist() if row >= 0]
    assert len(kept) == sum(score > 0 for score in expected)
    np.testing.assert_allclose([expected[row] for row in kept], sorted((s for s in expected if s > 0), reverse=True), rtol=1e-5)


@given(TEXTS, st.data())
def test_removed_documents_count_for_nothing(texts: list[str], data: st.DataObject) -> None:
    """As if they had never been there; and copying the others gives the same words."""
    alive = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    left = [row for row, lives in enumerate(alive) if lives]
    if not left:
        return
    query = "a b ab cd 日"
    fresh = lexicon([texts[row] for row in left])
    found = lexicon(texts, alive).search([query], len(texts))[0]
    again = fresh.search([query], len(texts))[0]
    assert [row for row in found.tolist() if row >= 0] == [left[row] for row in again.tolist() if row >= 0]
    whole, copied, direct = WordsWriter(), WordsWriter(), WordsWriter()
    whole.add(Document("x", text=text) for text in texts)
    copied.copy(Words(whole.arrays(), len(texts)), np.array(left))
    direct.add(Document("x", text=texts[row]) for row in left)
    for name, array in direct.arrays().items():
        np.testing.assert_array_equal(copied.arrays()[name], array)


def test_fusion_by_reciprocal_rank() -> None:
    rows, scores = fused([np.array([[3, 1, 2]]), np.array([[1, 4, -1]])], 4, np.arange(10))
    assert rows.tolist() == [[1, 3, 4, 2]]
    np.testing.assert_allclose(scores[0], [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], rtol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": np.zeros(5, np.int32)},
        {"rows": np.array([9, 0, 1, 2], np.int32)},
        {"rows": np.array([-1, 0, 1, 2], np.int32)},
        {"starts": np.array([0, 9, 4], np.int64)},
        {"starts": np.array([1, 2, 4], np.int64)},
        {"ends": np.array([9, 1], np.int64)},
        {"counts": np.ones(3, np.uint16)},
        {"text": np.zeros(1, np.float32)},
    ],
)
def test_arrays_that_no_writer_made_are_refused(change: dict[str, np.ndarray]) -> None:
    writer = WordsWriter()
    writer.add([Document("x", text="a"), Document("y", text="a b"), Document("z", text="b")])
    arrays = writer.arrays()
    assert len(Words(arrays, 3)) == 2
    with pytest.raises(ValueError):
        Words({**arrays, **change}, 3)


NAMES = ["lamp", "rain", "bread", "engine"]


def filled(path: Path | None) -> Index:
    """Sixty documents that a vector says nothing of, in two commits; every fourth is about one of the names."""
    texts = [f"about the {NAMES[row % 4]} number {row}" for row in range(60)]
    known = {"texts": texts[:40], "metadata": [{"row": row} for row in range(40)]}
    index = MODEL.index(VECTORS[:40], path, ids=[f"d{row}" for row in range(40)], hybrid=True, **known)
    index.add(VECTORS[40:], [f"d{row}" for row in range(40, 60)], texts=texts[40:], metadata=[{"row": row} for row in range(40, 60)])
    return index


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_hybrid_finds_what_only_words_tell(place: str, tmp_path: Path) -> None:
    with filled(tmp_path / "i" if place == "disk" else None) as index:
        asked = "43"
        hits = index.search(VECTORS[7], 5, text=asked, hybrid=True)
        assert hits.ids[0][0] == "d43"
        assert "d7" in hits.ids[0]
        assert hits[0].query == asked
        full = {"text": asked, "hybrid": True, "width": "full"}
        pages = [index.search(VECTORS[7], 5, offset=offset, **full).ids[0] for offset in (0, 5, 10)]
        assert [name for page in pages for name in page] == index.search(VECTORS[7], 15, **full).ids[0]
        some = index.search(VECTORS[7], 60, text=asked, hybrid=True, where="row > 50").ids[0]
        assert set(some) == {f"d{row}" for row in range(51, 60)}
        index.remove(["d43"])
        assert "d43" not in index.search(VECTORS[7], 60, text=asked, hybrid=True).ids[0]
        for options, words in (
            ({"hybrid": True}, "hybrid search needs the words"),
            ({"hybrid": True, "text": "x", "min_score": 0.1}, "min_score is of cosines"),
        ):
            with pytest.raises(OptionError, match=words):
                index.search(VECTORS[7], **options)
        with pytest.raises(DataError, match="1 vectors but 2 texts"):
            index.search(VECTORS[7], text=["a", "b"], hybrid=True)


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=30))
def test_no_text_breaks_a_search(memory: Index, query: str) -> None:
    """Quotes, operators, NUL, halves of characters: a text is only split into words."""
    for text in (query, f'"{query}*', f"lamp AND NOT ({query}", "lamp:^ NEAR/2 \0 \ud800"):
        assert len(memory.search(VECTORS[7], 5, text=text, hybrid=True)[0]) == 5


@pytest.fixture(scope="module")
def memory() -> Index:
    return filled(None)


def test_an_index_without_words_gains_them(tmp_path: Path) -> None:
    texts = [f"about the {NAMES[row % 4]} number {row}" for row in range(60)]
    with MODEL.index(VECTORS, tmp_path / "i", ids=[f"d{row}" for row in range(60)], texts=texts) as index:
        with pytest.raises(OptionError, match=r"its words are not indexed: do that once, with `adawidth compact i --hybrid`"):
            index.search(VECTORS[7], text="engine", hybrid=True)
        index.remove(["d3"])
        reader = open_index(tmp_path / "i")
        assert index.compact(hybrid=True)
        assert not index.compact(hybrid=True)
        assert index.facts()["hybrid"]
        assert reader.refresh()
        expected = MODEL.index(VECTORS, ids=[f"d{row}" for row in range(60)], texts=texts)
        expected.remove(["d3"])
        for one in (index, reader):
            for asked in ("the engine 43", "bread"):
                found, wanted = (each.search(VECTORS[7], 10, text=asked, hybrid=True) for each in (one, expected))
                assert found.ids == wanted.ids
        reader.close()


def test_documents_without_words_are_said_so(tmp_path: Path) -> None:
    for path in (None, tmp_path / "i"):
        with MODEL.index(VECTORS, path, hybrid=True) as index, pytest.raises(OptionError, match="no document has a title or text"):
            index.search(VECTORS[7], text="x", hybrid=True)
