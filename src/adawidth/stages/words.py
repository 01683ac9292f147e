"""The words of documents, ranked by BM25, and how such a ranking is fused with another: the lexical side of hybrid search.

Words are kept as plain arrays, in memory and in the segments of an index folder alike: for every word, the rows of the documents that have
it, and how often. Frequencies over the whole index are taken when a query comes, so segments can be merged, and documents removed,
without touching the others. A query is only ever split into words: there is no syntax that could go wrong in it.

    text, ends    (T,) the words in UTF-8, ascending, and where each ends
    starts        (T + 1,) where the postings of each word begin
    rows, counts  (P,) postings: rows ascend within a word
    lengths       (N,) how many words each document has
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ..data import Document
from ..kernels.topk import top_k
from ..types import F32, I32, I64, Array, Mask, Rows

SCRIPTS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # written without spaces: every character is a word
WORD = re.compile(rf"[{SCRIPTS}]|[^\W_{SCRIPTS}]+")
LONGEST = 64  # characters of a word
K1, B = 1.2, 0.75  # as in Lucene
RANK = 60  # of reciprocal-rank fusion (Cormack et al., 2009)
MOST = 2**16 - 1  # times that a word counts in a document
LAYOUT = {"text": "|u1", "ends": "<i8", "starts": "<i8", "rows": "<i4", "counts": "<u2", "lengths": "<i4"}


def words_of(text: str) -> list[str]:
    """The words of a text: lower case, without accents and English plurals."""
    folded = text.casefold()
    if not folded.isascii():
        folded = "".join(letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter))
    return [_stem(word) for word in WORD.findall(folded)]


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    """Without the s of a plural (Harman, 1991)."""
    word = word[:LONGEST]
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word if word[-4] in "ae" else f"{word[:-3]}y"
    if word.endswith("es"):
        return word if word[-3] in "aeo" else word[:-1]
    return word if word[-2] in "us" else word[:-1]


class Words:
    """The words of some documents, by row."""

    def __init__(self, arrays: Mapping[str, Array], documents: int) -> None:
        """Arrays as `WordsWriter` gives them. They may come from anywhere: a ValueError if no writer can have made them."""
        kinds = {name: array.dtype.newbyteorder("<").str for name, array in arrays.items() if array.ndim == 1}
        if kinds != LAYOUT:
            raise ValueError(f"the words are {kinds}, expected {LAYOUT}")
        self._text, self._ends, self._starts = arrays["text"], arrays["ends"], arrays["starts"]
        self.rows, self.counts = arrays["rows"], arrays["counts"]
        self.lengths: I32 = arrays["lengths"]
        sizes = len(self.lengths) == documents and len(self._starts) == len(self._ends) + 1 and len(self.rows) == len(self.counts)
        if not sizes or not _ascends(self._ends, len(self._text)) or not _ascends(self._starts, len(self.rows)) or self._starts[0]:
            raise ValueError("the sizes of words and postings do not fit together")
        if self.rows.min(initial=0) < 0 or self.rows.max(initial=-1) >= documents or self.lengths.min(initial=0) < 0:
            raise ValueError(f"words are of rows that are none of the {documents}")

    def __len__(self) -> int:
        return len(self._ends)

    def word(self, place: int) -> bytes:
        """One of the words."""
        return self._text[self._ends[place - 1] if place else 0 : self._ends[place]].tobytes()

    def postings(self, word: str) -> tuple[I32, Array]:
        """The rows of the documents that have a word, and how often each has it."""
        wanted = word.encode(errors="replace")
        place = bisect_left(range(len(self)), wanted, key=self.word)
        there = place < len(self) and self.word(place) == wanted
        part = slice(self._starts[place], self._starts[place + 1]) if there else slice(0)
        return self.rows[part], self.counts[part]

    def owners(self) -> I64:
        """The place of each posting's word. (P,)"""
        return np.repeat(np.arange(len(self)), np.diff(self._starts))


class WordsWriter:
    """Gathers the words of documents, row by row."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}
        self._lengths: list[I32] = []
        self._documents = 0
        self._postings: list[tuple[I32, I32, Array]] = []  # rows, words, counts

    def add(self, documents: Iterable[Document]) -> None:
        """Some more documents: the words of their titles and texts."""
        rows, words, counts, lengths = list[int](), list[int](), list[int](), list[int]()
        for document in documents:
            found = Counter(words_of(f"{document.title} {document.text}"))
            rows.extend([self._documents + len(lengths)] * len(found))
            words.extend(self._number.setdefault(word.encode(errors="replace"), len(self._number)) for word in found)
            counts.extend(found.values())
            lengths.append(found.total())
        self._append(np.array(rows, np.int32), np.array(words, np.int32), np.minimum(counts, MOST).astype(np.uint16), lengths)

    def copy(self, other: Words, kept: Rows) -> None:
        """Some more documents: these rows of others, ascending."""
        numbers = [self._number.setdefault(other.word(place), len(self._number)) for place in range(len(other))]
        target = np.full(len(other.lengths), -1, np.int32)
        target[kept] = np.arange(self._documents, self._documents + len(kept))
        rows = target[other.rows]
        words = np.array(numbers, np.int32)[other.owners()] if numbers else np.empty(0, np.int32)
        self._append(rows[rows >= 0], words[rows >= 0], other.counts[rows >= 0], other.lengths[kept])

    def arrays(self) -> dict[str, Array]:
        """All of it."""
        rows, numbers, counts = (np.concatenate(parts) for parts in zip(*self._postings, strict=True)) if self._postings else EMPTY
        names = list(self._number)
        order = sorted(np.unique(numbers).tolist(), key=names.__getitem__)  # words whose documents are gone are left out
        place = np.zeros(max(len(names), 1), np.int64)
        place[order] = np.arange(len(order))
        by_word = np.lexsort((rows, place[numbers]))
        known = [names[number] for number in order]
        having = np.bincount(place[numbers], minlength=len(order))[: len(order)]  # documents with each word
        return {
            "text": np.frombuffer(b"".join(known), np.uint8),
            "ends": np.cumsum([len(word) for word in known], dtype=np.int64),
            "starts": np.concatenate([[0], np.cumsum(having)]).astype(np.int64),
            "rows": rows[by_word],
            "counts": counts[by_word],
            "lengths": np.concatenate([np.empty(0, np.int32), *self._lengths]).astype(np.int32),
        }

    def _append(self, rows: I32, words: I32, counts: Array, lengths: Array | Sequence[int]) -> None:
        self._postings.append((rows, words, counts))
        self._lengths.append(np.asarray(lengths, np.int32))
        self._documents += len(lengths)


EMPTY = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint16))


class Lexicon:
    """The words of all documents, of one part after the other. `alive` says which rows are not removed, `ties` orders equal scores."""

    def __init__(self, parts: Sequence[Words], alive: Mask, ties: I64) -> None:
        self._parts, self._alive, self._ties = parts, alive, ties
        self._firsts = np.cumsum([0, *(len(part.lengths) for part in parts)]).tolist()
        lengths = np.concatenate([np.empty(0, np.int32), *(part.lengths for part in parts)])
        self._count = int(alive.sum())
        self.length = int(lengths[alive].sum(dtype=np.int64))  # words of all documents
        mean = max(1.0, self.length / max(1, self._count))
        self._norms = np.asarray(K1 * (1 - B + B * lengths / mean), np.float32)  # (N,)

    def search(self, texts: Sequence[str], k: int, allowed: Mask | None = None) -> Rows:
        """The k best rows for each text by BM25, of those allowed; -1 where there are fewer with any of its words. (Q, k)"""
        found = np.full((len(texts), min(k, len(self._alive))), -1, np.int64)
        for place, text in enumerate(texts):
            scores = self._scores(text)
            scores[~(self._alive if allowed is None else self._alive & allowed)] = 0.0
            best = top_k(scores[None], self._ties, found.shape[1])[0]
            found[place] = np.where(scores[best] > 0, best, -1)
        return found

    def _scores(self, text: str) -> F32:
        """BM25 of all documents. (N,)"""
        scores = np.zeros(len(self._alive), np.float32)
        for word, times in sorted(Counter(words_of(text)).items()):
            postings = [part.postings(word) for part in self._parts]
            rows = np.concatenate([np.empty(0, np.int64), *(own + first for (own, _), first in zip(postings, self._firsts, strict=False))])
            having = int(self._alive[rows].sum())
            if not having:
                continue
            counts = np.concatenate([own for _, own in postings]).astype(np.float32)
            rarity = np.float32(times * np.log1p((self._count - having + 0.5) / (having + 0.5)))
            scores[rows] += rarity * counts * np.float32(K1 + 1) / (counts + self._norms[rows])
        return scores


def fused(rankings: Sequence[Rows], k: int, ties: I64) -> tuple[Rows, F32]:
    """Reciprocal-rank fusion: a document scores the sum of 1 / (60 + rank) over the rankings that have it. (Q, n) each -> (Q, k), (Q, k)"""
    queries = len(rankings[0])
    rows, scores = np.full((queries, k), -1, np.int64), np.full((queries, k), -np.inf, np.float32)
    for query in range(queries):
        lists = [ranking[query] for ranking in rankings]
        ranks = np.concatenate([RANK + 1.0 + np.arange(len(one)) for one in lists])
        every = np.concatenate(lists)
        names, place = np.unique(every[every >= 0], return_inverse=True)
        total = np.bincount(place, 1 / ranks[every >= 0], len(names))
        order = np.lexsort((ties[names], -total))[:k]
        rows[query, : len(order)], scores[query, : len(order)] = names[order], total[order]
    return rows, scores


def _ascends(ends: I64, last: int) -> bool:
    """Whether these are the ends of parts that fill `last` places."""
    return bool((np.diff(ends) >= 0).all()) and (int(ends[-1]) == last and int(ends[0]) >= 0 if len(ends) else last == 0)
