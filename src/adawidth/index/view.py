"""What one search sees: the documents of an index folder at one commit, restricted by a filter if there is one.

A view never changes, whatever is committed meanwhile, so all steps of a search see the same documents. Rows are those of all segments,
one after the other. Removed documents keep their rows, and are never found.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import proxy

import numpy as np

from ..data import BLOCK
from ..errors import OptionError
from ..filters import Filter, parse
from ..hits import Hits, Read
from ..kernels.extend import inner_products
from ..kernels.topk import top_k
from ..policies import Policy
from ..policies.taper import Taper
from ..rotation import Rotated
from ..stages import Backend, RowBackend, Stage
from ..stages.words import Lexicon
from ..threads import cpus, pool
from ..types import F16, F32, I64, Mask, Rows, Widths
from .candidates import ANY, Part, best_of, continued, without
from .columns import Columns
from .ids import StoredDocuments
from .rescore import Rescorer, fusible
from .store.manifest import Manifest
from .store.segment import Segment
from .store.segment_writer import inverse_norms

if TYPE_CHECKING:
    from .codes.base import Codes

SCORES = 16_000_000  # at most this many scores are held at a time while scanning
MORE = 16  # candidates beyond those wanted: codes and rows are rounded differently, and a query's own document is left out
FILTERED = 2  # times the candidates wanted, with a filter: codes made for all documents tell fewer of those that lie together apart
SHARED = 320_000_000  # bytes of codes from which on threads share a scan: fewer are scanned before a second thread has done its part
FILTERS = 32  # answers to filters that are kept
PROBED = 64  # nprobes whose codes are kept
Key = TypeVar("Key")
Made = TypeVar("Made")


class View(RowBackend):
    """An index folder at one commit. Safe for concurrent searches."""

    _whole: View | None = None  # what a restricted one is part of
    _nprobe: int | None = None  # lists to scan, if not as many as a query needs
    _parts: tuple[Part, ...] = ()  # of the codes, that threads search side by side; none where one thread searches all

    def __init__(self, manifest: Manifest, segments: Sequence[Segment]) -> None:
        self.manifest = manifest
        self.start = manifest.head.settings.start
        self.segments = tuple(segments)
        for segment in segments:
            segment.check_widths(self.width, len(manifest.head.settings.ladder))
        self.firsts = [0, *np.cumsum([len(segment) for segment in segments]).tolist()]
        self.alive = np.concatenate([np.empty(0, np.bool_), *(segment.without(manifest.removed) for segment in segments)])
        self.documents_by_row = StoredDocuments(manifest, self.segments, self.firsts)
        self.checked = 0  # documents with numbers below this have been read and are intact
        self._gaps = [segment.gap for segment in segments]
        self._allowed = self._masks(self.alive)
        self._count = int(self.alive.sum())
        self._filters: OrderedDict[Filter, tuple[list[Mask | None], int]] = OrderedDict()  # least recently used first
        self._columns = Columns(manifest)
        self._norms: dict[int, F32] = {}
        self._blocks: dict[tuple[int, int, bool], F32] = {}
        self._splits: dict[tuple[int, int | None], tuple[Part, ...]] = {}  # by the number of threads, and by nprobe
        self._probed: dict[int, list[tuple[Codes, int, int]]] = {}  # by nprobe

    def __len__(self) -> int:
        return self._count

    def most(self, k: int) -> int:
        """How many of k answers there can be."""
        return min(k, self._count)

    @property
    def documents(self) -> StoredDocuments:
        """The documents by row; rows of removed documents count too."""
        return self.documents_by_row

    @property
    def width(self) -> int:
        """The widest that can be read: the coordinates kept."""
        return self.manifest.head.settings.width

    @property
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""
        return self.manifest.head.settings.fingerprint

    def where(self, condition: str | Mapping[str, Any]) -> View:
        """The same with only the documents whose metadata meet a filter."""
        key = parse(condition)
        if key not in self._filters:
            self.manifest.check_documents(self.checked)
            self.checked = self.manifest.head.following
            self.manifest.check_fields(key.compared())
            numbers, meets = self._columns.matching(key), np.zeros_like(self.alive)
            for segment, first in zip(self.segments, self.firsts, strict=False):
                meets[first + segment.rows_of(numbers)] = True
            self._filters[key] = (self._masks(self.alive & meets), int((self.alive & meets).sum()))
            while len(self._filters) > FILTERS:
                self._filters.popitem(last=False)
        else:
            self._filters.move_to_end(key)
        _ = self._rescorer if self.segments else None  # computed once, for all that is restricted
        restricted = copy(self)
        restricted._allowed, restricted._count = self._filters[key]
        restricted._whole = self  # whose lengths the rescorer reads
        return restricted

    def probing(self, nprobe: int) -> View:
        """The same, scanning so many lists of the segment that has most, and as large a share of every other's."""
        probed = self._probed.get(nprobe)
        if probed is None:
            most = max((codes.lists for codes, _, _ in self._codes), default=1)
            if not most:
                return cast(View, super().probing(nprobe))  # refuses
            probed = [(codes.probing(nprobe / most), width, count) for codes, width, count in self._codes]
            _keep(self._probed, nprobe, probed)
        _ = self._rescorer if self.segments else None  # computed once, for all nprobes
        same = copy(self)
        same._nprobe, same._codes = nprobe, probed
        same.__dict__.pop("_scan_bytes", None)
        return same

    def shared(self, threads: int) -> View:
        """The same, where so many threads, at most one for each CPU, share the scan for a query; itself if that would take longer."""
        threads = min(threads, cpus())
        if self._whole is not None or self._scan_bytes < SHARED or threads < 2:
            return self
        same = copy(self)
        same._parts = self._split(threads)
        return same

    def vectors(self, rows: Rows) -> F32:
        """The documents in these rows as they are kept: rotated, cut, rounded to float16. (n, m)"""
        return self._take(rows, 0, self.width)

    def rows_of(self, numbers: Sequence[int]) -> Rows:
        """The rows of documents by their numbers."""
        every = np.concatenate([np.empty(0, np.int64), *(segment.numbers for segment in self.segments)])  # ascending
        rows = np.searchsorted(every, numbers)
        if (every[np.minimum(rows, len(every) - 1)] != numbers).any():
            raise self.manifest.damaged("it names documents that no segment has")
        return rows

    def answer(self, queries: Rotated, policy: Policy, k: int, shortlist: int) -> Hits:
        """The stage loop's answer, by compiled code if there is a kernel for the policy."""
        coarse = self._coded_width > self.manifest.head.settings.start  # more coordinates, fewer bits for each
        shortlist = max(shortlist, k) * (FILTERED if coarse and self._whole is not None else 1)
        if not fusible(policy) or not self.segments:
            return super().answer(queries, policy, k, shortlist)
        asked = self._rescorer.asked(queries, self._coded_width)
        best = policy.k if type(policy) is Taper and math.isfinite(policy.z) else None  # a budget is of the whole shortlist
        candidates = self._candidates(queries.values, shortlist, None, best)
        found = self._rescorer.answer(queries, candidates, policy, k, asked)
        if best is not None and k > best:
            rest = without(self._candidates(queries.values, shortlist, None), candidates)
            found = continued(found, self._rescorer.answer(queries, rest, policy, k, asked))
        read = Read(found.counts, found.coordinates, self._scan_bytes + 2 * found.coordinates, queries.ready)
        return Hits(found.rows, found.scores, found.widths, self.documents_by_row, read)

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best documents at this width among those that the codes find, for rotated queries; `own` is a row each to leave out."""
        k = min(k, len(self.alive))
        candidates = self._candidates(queries, k + MORE, own)
        return self.best_of(queries, candidates, width, k)

    def scan(self, queries: F32, width: int, k: int) -> Stage:
        """The k best of all documents at this width, by reading all rows: exact and slow."""
        parts = [self._best(segment, queries, width, min(k, len(segment))) for segment in self.segments]
        candidates = np.concatenate([np.empty((len(queries), 0), np.int64), *parts], axis=1)
        return self.best_of(queries, candidates, width, min(k, len(self.alive)))

    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Bytes read by a scan of the codes and by so many coordinates of candidates. (Q,) -> (Q,)"""
        return self._scan_bytes + 2 * coordinates

    @cached_property
    def _scan_bytes(self) -> int:
        return round(sum(codes.scan_bytes for codes, _, _ in self._codes))

    @cached_property
    def _codes(self) -> list[tuple[Codes, int, int]]:
        """What finds candidates in each segment, the width it codes, and its rows."""
        return [(segment.codes, segment.codes.width, len(segment)) for segment in self.segments]

    @cached_property
    def _coded_width(self) -> int:
        """How many coordinates of a query the codes need."""
        return max((width for _, width, _ in self._codes), default=self.manifest.head.settings.start)

    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""
        self._check_width(width)
        if width not in self._norms:
            ladder, lengths, first = self.manifest.head.settings.ladder, np.empty(self.firsts[-1], np.float32), 0
            stored = (segment.inverse[:, ladder.index(width)] for segment in self.segments) if width in ladder else None
            for part in stored or (inverse_norms(rows, (width,))[:, 0] for rows in self._stored()):
                np.reciprocal(part, out=lengths[first : first + len(part)])
                first += len(part)
            self._norms[width] = lengths
        return self._norms[width]

    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""
        self._check_width(end)
        key = (begin, end, centred)
        if key not in self._blocks:
            middle = self.centre[begin:end] if centred else np.zeros(end - begin, np.float32)
            lengths = [np.linalg.norm(part[:, begin:end] - middle, axis=1) for part in self._scan()]
            self._blocks[key] = np.concatenate([np.empty(0, np.float32), *lengths])
        return self._blocks[key]

    @cached_property
    def centre(self) -> F32:
        """Mean of all documents. (m,)"""
        total = sum((segment.total for segment in self.segments), np.zeros(self.width))
        total = total - self._take(np.flatnonzero(~self.alive), 0, self.width).sum(axis=0, dtype=np.float64)
        return np.asarray(total / max(1, int(self.alive.sum())), np.float32)

    def lexical(self, texts: Sequence[str], k: int) -> Rows:
        """The k best documents for each text by the words of titles and texts; -1 where there are fewer. (Q, k)"""
        whole = self._whole or self
        if not self.manifest.head.words:
            folder = self.manifest.path.parent
            raise OptionError(f"{folder}: its words are not indexed: do that once, with `adawidth compact {folder.name} --hybrid`")
        if whole._lexicon.length == 0 and len(whole):
            raise OptionError(f"{self.manifest.path.parent}: no document has a title or text: hybrid search needs words")
        allowed = self.alive.copy()
        for mask, (first, last) in zip(self._allowed, pairwise(self.firsts), strict=True):
            allowed[first:last] = True if mask is None else mask
        return whole._lexicon.search(texts, k, allowed)

    @cached_property
    def _lexicon(self) -> Lexicon:
        words = [segment.words for segment in self.segments]
        if None in words:
            raise self.manifest.damaged("a segment has no words, though the index should have them")
        return Lexicon([one for one in words if one is not None], self.alive, self.documents.tie_rank)

    @cached_property
    def _rescorer(self) -> Rescorer:
        view = proxy(self)  # a reference cycle would keep files open, and SQLite's log in use, until garbage is collected
        unread = [(segment.unread, segment.entry.checked) for segment in self.segments]
        rows, ties = [segment.rows for segment in self.segments], self.documents.tie_rank
        return Rescorer(rows, lambda width: view.norms(width), ties, unread, lambda candidates: view._check(candidates))

    def _masks(self, allowed: Mask) -> list[Mask | None]:
        """Which rows of each segment may be found; None if all may."""
        parts = [allowed[first:last] for first, last in pairwise(self.firsts)]
        for part in parts:
            part.flags.writeable = False  # so that codes can keep what they make of a filter
        return [None if part.all() else part for part in parts]

    def _split(self, threads: int) -> tuple[Part, ...]:
        """The codes of all segments, those of large ones in parts."""
        key = (threads, self._nprobe)
        found = self._splits.get(key)
        if found is None:
            parts = []
            for (codes, _, _), gap, first, allowed in zip(self._codes, self._gaps, self.firsts, self._allowed, strict=False):
                for begin, part in codes.parts(threads if codes.scan_bytes >= SHARED / threads else 1):
                    mask = None if allowed is None else allowed[begin : begin + len(part)]
                    parts.append(Part(part, first + begin, len(part) if mask is None else int(mask.sum()), mask, gap))
            found = tuple(parts)
            _keep(self._splits, key, found)
        return found

    def _candidates_side_by_side(self, queries: F32, k: int, best: int | None) -> Rows:
        """The same, by several threads."""

        def found(part: Part) -> tuple[Rows, F32]:
            wanted = np.ascontiguousarray(queries[:, : part.codes.width])
            rows = part.codes.search(wanted, min(k, part.held), part.allowed, ANY if best is None else (best, part.gap))
            return np.where(rows >= 0, rows + part.first, -1), part.codes.scores(wanted, rows)

        rows, scores = zip(*pool(len(self._parts)).map(found, self._parts), strict=True)
        return best_of(np.concatenate(rows, axis=1), np.concatenate(scores, axis=1), k)

    def _candidates(self, queries: F32, k: int, own: Rows | None, best: int | None = None) -> Rows:
        """The k best documents by the codes, in any order, -1 where there are fewer; `best` leaves out those that can hardly be among so
        many best. (Q, C)"""
        if self._parts and own is None:
            return self._candidates_side_by_side(queries, k, best)
        found, scores, several = [], [], len(self._codes) > 1 and sum(min(k, count) for _, _, count in self._codes) > k
        for (codes, width, count), gap, first, allowed in zip(self._codes, self._gaps, self.firsts, self._allowed, strict=False):
            rows = codes.search(queries[:, :width], min(k, count), allowed, ANY if best is None else (best, gap))
            found.append(np.where(rows >= 0, rows + first, -1) if first else rows)
            if several:
                scores.append(codes.scores(queries[:, :width], rows))
        candidates = found[0] if len(found) == 1 else np.concatenate([np.empty((len(queries), 0), np.int64), *found], axis=1)
        if several:
            candidates = best_of(candidates, np.concatenate(scores, axis=1), k)
        if own is not None:
            candidates[candidates == own[:, None]] = -1
        return candidates

    def _best(self, segment: Segment, queries: F32, width: int, k: int) -> Rows:
        """The k best of a segment by reading all of its rows. (Q, k)"""
        self._check_width(width)
        segment.check()
        place = self.segments.index(segment)
        first, allowed = self.firsts[place], self._allowed[place]
        wanted, ties = np.ascontiguousarray(queries[:, :width]), segment.arrays["places"].astype(np.int64)
        lengths = self.norms(width)[first:][: len(segment)]
        found, scores = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32)
        step = max(1, min(BLOCK, SCORES // max(1, len(queries))))
        for start in range(0, len(segment), step):
            part = slice(start, start + step)
            here = wanted @ segment.rows[part, :width].astype(np.float32).T / lengths[part]  # (Q, rows)
            if allowed is not None:
                here[:, ~allowed[part]] = -np.inf
            best = top_k(here, ties[part], k)
            scores = np.concatenate([scores, np.take_along_axis(here, best, axis=1)], axis=1)
            found = np.concatenate([found, best + start], axis=1)
            order = np.lexsort((ties[found], -scores), axis=1)[:, :k]
            scores, found = np.take_along_axis(scores, order, axis=1), np.take_along_axis(found, order, axis=1)
        return np.where(scores > -np.inf, found + first, -1)

    def _extend(self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32) -> None:
        self._check_width(int(end.max(initial=0)))
        for q in np.flatnonzero(end > begin).tolist():
            columns = np.flatnonzero(keep[q])
            rows = self._take(candidates[q, columns], int(begin[q]), int(end[q]))
            total = sums[q, columns]
            inner_products(rows, queries[q, begin[q] : end[q]], total)
            sums[q, columns] = total

    def _take(self, rows: Rows, begin: int, end: int) -> F32:
        """Coordinates `begin` to `end` of these rows, checked. (n, m)"""
        taken = np.empty((len(rows), end - begin), np.float32)
        for segment, (first, last) in zip(self.segments, pairwise(self.firsts), strict=True):
            here = np.flatnonzero((rows >= first) & (rows < last))
            segment.check(rows[here] - first)
            taken[here] = segment.rows[rows[here] - first, begin:end]
        return taken

    def _check(self, candidates: Rows) -> None:
        """Checks the rows of these candidates that were never read."""
        for segment, (first, last) in zip(self.segments, pairwise(self.firsts), strict=True):
            segment.check(candidates[(candidates >= first) & (candidates < last)] - first)

    def _scan(self) -> Iterator[F32]:
        return (rows.astype(np.float32) for rows in self._stored())

    def _stored(self) -> Iterator[F16]:
        """All rows, checked, some at a time."""
        for segment in self.segments:
            segment.check()
            for start in range(0, len(segment), BLOCK):
                yield segment.rows[start : start + BLOCK]

    def _check_width(self, width: int) -> None:
        if not 0 <= width <= self.width:
            raise OptionError(
                f"width {width} is asked for, but the index keeps {self.width} coordinates: "
                f"ask for at most {self.width}, or index again with a larger --keep"
            )


def _keep(kept: dict[Key, Made], key: Key, made: Made) -> None:
    """Keeps what was made, beside a few others."""
    if len(kept) >= PROBED:
        kept.clear()
    kept[key] = made


def shared(view: Backend, threads: int) -> Backend:
    """What threads that share a single query search."""
    return view.shared(threads) if isinstance(view, View) else view
