"""One query from its candidates to its answer in one compiled call, cached on disk: read, thin out or route, rank.

Rows are float16 and lie in one array per segment, so a kernel gets addresses. What is known of a query's candidates lies in arrays
of the same order, the living ones first, so that every step is a loop over plain arrays that the compiler vectorises.

The two entries, `taper` and `route`, take plain tuples, which numba dispatches quickly, and name their parts once inside.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64
from .float16 import SUMS, fetch, products
from .trees import DEPTH, query_features, walk

ZERO, ONE = np.float32(0.0), np.float32(1.0)
TINY = np.float32(1e-24)  # squared lengths are never smaller
LINE = 64  # bytes that memory gives at once
AHEAD = 32  # candidates whose coordinates are asked for before they are read: rows lie anywhere in memory


class Table(NamedTuple):
    """All rows: N of them in S segments."""

    bases: I64  # (S,) addresses of the segments' first rows
    firsts: I64  # (S + 1,) the rows that segments begin at, and N
    width: int  # coordinates per row
    ties: I64  # (N,) orders rows of equal scores


class Asked(NamedTuple):
    """Queries, rotated as far as they were needed until now."""

    given: F32  # (Q, D) as the encoder gives them
    matrix: F32  # (D, D) of the rotation or the query map
    bias: F32  # (D,) or empty
    values: F32  # (Q, D), rotated up to …
    ready: I64  # (Q,) … these widths


class Found(NamedTuple):
    """Answers, filled in by a kernel."""

    rows: I64  # (Q, k), -1 where there are fewer
    scores: F32  # (Q, k)
    coordinates: I64  # (Q,) read, over all candidates
    widths: F64  # (Q,) per candidate of the shortlist, those left out of it not counted


@njit(cache=True, nogil=True)
def _locate(table: Table, rows: I64, addresses: I64) -> None:
    """The address of every row's first coordinate."""
    for i in range(len(rows)):
        segment = 0
        while rows[i] >= table.firsts[segment + 1]:
            segment += 1
        addresses[i] = table.bases[segment] + (rows[i] - table.firsts[segment]) * table.width * 2


@njit(cache=True, nogil=True, fastmath=True)
def _rotate(asked: Asked, q: int, end: int) -> None:
    """Rotates a query on to the width `end`."""
    given, value = asked.given[q], asked.values[q]
    for j in range(asked.ready[q], end):
        axis = asked.matrix[j]
        total = np.float32(0.0)
        for i in range(len(given)):
            total += axis[i] * given[i]
        value[j] = total + asked.bias[j] if len(asked.bias) else total
    asked.ready[q] = max(asked.ready[q], end)


@njit(cache=True, nogil=True)
def _ask(address: int, begin: int, end: int) -> None:
    """Asks for the lines that coordinates `begin` to `end` of a row lie in, but for the one that the step before has read from."""
    inside = LINE - 1 if begin else 0
    for byte in range(address + 2 * begin + inside & -LINE, address + 2 * end, LINE):
        fetch(byte)  # type: ignore[call-arg]


@njit(cache=True, nogil=True, fastmath=set(SUMS))
def _read(addresses: I64, query: F32, begin: int, end: int, sums: F32, squares: F32) -> None:
    """Adds coordinates `begin` to `end` of the candidates to their inner products and squared lengths."""
    part = query.ctypes.data + 4 * begin
    for i in range(min(AHEAD, len(addresses))):
        _ask(addresses[i], begin, end)
    for i in range(len(addresses)):
        if i + AHEAD < len(addresses):
            _ask(addresses[i + AHEAD], begin, end)
        found: tuple[np.float32, np.float32] = products(addresses[i] + 2 * begin, part, end - begin)  # type: ignore[call-arg]
        sums[i] += found[0]
        squares[i] += found[1]


@njit(cache=True, nogil=True, fastmath=set(SUMS))
def _square(part: F32) -> np.float32:
    """Squared length."""
    square = np.float32(0.0)
    for j in range(len(part)):
        square += part[j] * part[j]
    return square


@njit(cache=True, nogil=True, error_model="numpy")
def _score(square: np.float32, sums: F32, squares: F32, scores: F32) -> None:
    """Prefix cosines; `square` is the squared length of the query's prefix."""
    length = np.sqrt(max(square, TINY))
    for i in range(len(sums)):
        scores[i] = sums[i] / (np.sqrt(max(squares[i], TINY)) * length)


@njit(cache=True, nogil=True, error_model="numpy")
def _tail(square: np.float32, whole: np.float32) -> np.float32:
    """Share of a length that lies beyond a prefix; both as squares."""
    return np.sqrt(max(ONE - square / max(whole, TINY), ZERO))


@njit(cache=True, nogil=True, error_model="numpy")
def _bounds(band: np.float32, square: np.float32, sums: F32, squares: F32, wholes: F32, scores: F32, lower: F32, upper: F32) -> None:
    """Prefix cosines, and what each may be at the last width: less and more by `band` times the candidate's tail."""
    length = np.sqrt(max(square, TINY))
    for i in range(len(sums)):
        held = max(squares[i], TINY)
        score = sums[i] / (np.sqrt(held) * length)
        reach = band * _tail(squares[i], wholes[i])
        scores[i] = score
        lower[i] = score - reach
        upper[i] = score + reach


@njit(cache=True, nogil=True)
def _sink(heap: F32, root: int) -> None:
    """Restores a heap whose root is the smallest number."""
    number = heap[root]
    while True:
        child = 2 * root + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= number:
            break
        heap[root] = heap[child]
        root = child
    heap[root] = number


@njit(cache=True, nogil=True)
def _kth(numbers: F32, heap: F32) -> np.float32:
    """The k-th largest of at least k numbers; `heap` (k,) is room for the k largest so far."""
    k = len(heap)
    heap[:] = numbers[:k]
    for root in range(k // 2 - 1, -1, -1):
        _sink(heap, root)
    for i in range(k, len(numbers)):
        if numbers[i] > heap[0]:
            heap[0] = numbers[i]
            _sink(heap, 0)
    return heap[0]


@njit(cache=True, nogil=True)
def _before(a: int, b: int, scores: F32, rows: I64, ties: I64) -> bool:
    """Whether candidate a is ranked before b: by score, then as trec_eval orders equal ones."""
    if scores[a] != scores[b]:
        return scores[a] > scores[b]
    return ties[rows[a]] < ties[rows[b]]


@njit(cache=True, nogil=True)
def _sift_down(heap: I64, root: int, size: int, scores: F32, rows: I64, ties: I64) -> None:
    """Restores a heap whose root is the candidate ranked last."""
    entry = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child], heap[child + 1], scores, rows, ties):
            child += 1
        if not _before(entry, heap[child], scores, rows, ties):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = entry


@njit(cache=True, nogil=True)
def _rank(order: I64, k: int, scores: F32, rows: I64, ties: I64) -> None:
    """Brings the k best to the front, best first; the others stay in any order."""
    k = min(k, len(order))
    for root in range(k // 2 - 1, -1, -1):
        _sift_down(order, root, k, scores, rows, ties)
    for i in range(k, len(order)):
        if _before(order[i], order[0], scores, rows, ties):
            order[0], order[i] = order[i], order[0]
            _sift_down(order, 0, k, scores, rows, ties)
    for size in range(k - 1, 0, -1):
        order[0], order[size] = order[size], order[0]
        _sift_down(order, 0, size, scores, rows, ties)


@njit(cache=True, nogil=True)
def _present(candidates: I64, count: int) -> I64:
    """The candidates that are among `count` rows; others are padding."""
    rows = np.empty(len(candidates), np.int64)
    n = 0
    for row in candidates:
        if 0 <= row < count:
            rows[n] = row
            n += 1
    return rows[:n]


@njit(cache=True, nogil=True)
def _highest(candidates: I64) -> int:
    highest = -1
    for q in range(len(candidates)):
        for row in candidates[q]:
            highest = max(highest, row)
    return highest


@njit(cache=True, nogil=True)
def _write(order: I64, rows: I64, scores: F32, begin: int, found_rows: I64, found_scores: F32) -> None:
    """Ranked candidates into an answer, from its place `begin` on, as many as fit."""
    for i in range(min(len(order), len(found_rows) - begin)):
        found_rows[begin + i] = rows[order[i]]
        found_scores[begin + i] = scores[order[i]]


@njit(cache=True, nogil=True)
def _shorten(size: int, scores: F32, rows: I64, ties: I64, addresses: I64, sums: F32, squares: F32) -> int:
    """Keeps the `size` best of the candidates; how many are left. Candidates of several segments are more than the shortlist."""
    n = len(rows)
    if n <= size:
        return n
    order = np.arange(n)
    _rank(order, size, scores, rows, ties)
    best = np.sort(order[:size])
    for i in range(size):
        j = best[i]
        rows[i], addresses[i], sums[i], squares[i], scores[i] = rows[j], addresses[j], sums[j], squares[j], scores[j]
    return size


@njit(cache=True, nogil=True)
def _taper(
    table: Table, lengths: F32, asked: Asked, q: int, rows: I64, ladder: I64, bands: F64, k: int, shortlist: int, known: np.float32,
    found_rows: I64, found_scores: F32,
) -> tuple[int, int]:  # fmt: skip
    """The taper's answer for one query into `found_*`, whose length is how many are asked for; coordinates read, and candidates.

    `lengths` (N,) are the documents' up to the ladder's last width; `bands` are z σ / (√2 β) for each width but the last, where
    infinite all survive; `known` is the query's squared length at the last width, below 0 where only rotating tells.
    """
    query, n, last = asked.values[q], len(rows), len(ladder) - 1
    addresses = np.empty(n, np.int64)
    _locate(table, rows, addresses)
    room = np.empty((6, n), np.float32)
    sums, squares, wholes, scores, lower, upper = room[0], room[1], room[2], room[3], room[4], room[5]
    sums[:], squares[:] = ZERO, ZERO
    if known < ZERO:
        _rotate(asked, q, ladder[last])
        known = _square(query[: ladder[last]])
    alive = np.zeros(last + 1, np.int64)  # when a width was read; none where it was passed over
    square, coordinates, begin, left, step = ZERO, 0, 0, n, 0
    heap, leaving = np.empty(min(k, n), np.float32), np.empty(n, np.int64)
    while step <= last:
        if step and left <= k:  # no one is left out any more
            step = last
        end = ladder[step]
        _rotate(asked, q, end)
        _read(addresses[:left], query, begin, end, sums, squares)
        square += _square(query[begin:end])
        coordinates += left * (end - begin)
        if step == 0:
            if left > shortlist:
                _score(square, sums[:left], squares[:left], scores[:left])
                left = _shorten(shortlist, scores, rows, table.ties, addresses, sums, squares)
                n = left
            for i in range(left):
                wholes[i] = lengths[rows[i]] ** 2
        alive[step] = left
        if step < last and bands[step] < np.inf and left > k:
            band = np.float32(bands[step]) * _tail(square, known)
            _bounds(band, square, sums[:left], squares[:left], wholes[:left], scores[:left], lower[:left], upper[:left])
            kth = _kth(lower[:left], heap)
            gone = 0
            for i in range(left):  # first whom, without a branch, as no one can tell who is next
                leaving[gone] = i
                gone += int(upper[i] < kth)
            for j in range(gone - 1, -1, -1):  # then they go behind the living
                i = leaving[j]
                left -= 1
                rows[i], rows[left] = rows[left], rows[i]
                scores[i], scores[left] = scores[left], scores[i]
                addresses[i], sums[i], squares[i], wholes[i] = addresses[left], sums[left], squares[left], wholes[left]
        begin = end
        step += 1
    _score(square, sums[:left], squares[:left], scores[:left])
    front = 0
    for step in range(last, -1, -1):  # those read furthest first
        if front < min(alive[step], len(found_rows)):
            group = np.arange(front, alive[step])
            _rank(group, len(found_rows) - front, scores, rows, table.ties)
            _write(group, rows, scores, front, found_rows, found_scores)
            front = alive[step]
    return coordinates, n


@njit(cache=True, nogil=True)
def taper(table, asked, candidates, steps, shortlist, found):  # type: ignore[no-untyped-def]
    """The taper's answers for queries with candidates (Q, C), the best `shortlist` of which count; the highest row among these.

    `table` is (*Table, lengths), `asked` and `found` are those tuples, `steps` is (ladder, bands, k, known).
    """
    bases, firsts, width, ties, lengths = table
    rows_of = Table(bases, firsts, width, ties)
    given, matrix, bias, values, ready = asked
    queries = Asked(given, matrix, bias, values, ready)
    found_rows, found_scores, coordinates, widths = found
    ladder, bands, k, known = steps
    found_rows[:], found_scores[:] = -1, -np.inf
    for q in range(len(candidates)):
        rows = _present(candidates[q], firsts[-1])
        coordinates[q], count = _taper(
            rows_of, lengths, queries, q, rows, ladder, bands, k, shortlist, known, found_rows[q], found_scores[q]
        )  # fmt: skip
        widths[q] = (coordinates[q] - (len(rows) - count) * ladder[0]) / max(count, 1)
    return _highest(candidates)


@njit(cache=True, nogil=True)
def _interpolated(x: float, knots: F64, values: F64) -> float:
    """np.interp at one point."""
    last = len(knots) - 1
    if x <= knots[0]:
        return values[0]
    if x >= knots[last]:
        return values[last]
    i = np.searchsorted(knots, x, side="right") - 1
    slope = (values[i + 1] - values[i]) / (knots[i + 1] - knots[i])
    return slope * (x - knots[i]) + values[i]


@njit(cache=True, nogil=True)
def _allotted(score: float, widths: I64, knots: F64, curves: F64, price: float) -> int:
    """policies.budget.allot for one query: the width with the largest gain less its price, the narrowest among equals."""
    if np.isinf(price):
        return widths[0] if price > 0 else widths[-1]
    best, chosen = -np.inf, widths[0]
    for i in range(len(widths)):
        worth = _interpolated(score, knots, curves[:, i]) - price * (widths[i] - widths[0])
        if worth > best:
            best, chosen = worth, widths[i]
    return chosen


@njit(cache=True, nogil=True)
def _route(
    table: Table, asked: Asked, q: int, rows: I64, start: int, widths: I64, knots: F64, curves: F64, price: float, shortlist: int,
    feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32, found_rows: I64, found_scores: F32,
) -> tuple[int, int]:  # fmt: skip
    """The router's answer for one query, from the paper's features and trees, into `found_*`; coordinates read, and candidates."""
    query, n = asked.values[q], len(rows)
    addresses = np.empty(n, np.int64)
    _locate(table, rows, addresses)
    sums, squares, scores = np.zeros(n, np.float32), np.zeros(n, np.float32), np.empty(n, np.float32)
    _rotate(asked, q, start)
    _read(addresses, query, 0, start, sums, squares)
    _score(_square(query[:start]), sums, squares, scores)
    coordinates = n * start
    n = _shorten(shortlist, scores, rows, table.ties, addresses, sums, squares)
    addresses, rows, sums, squares, scores = addresses[:n], rows[:n], sums[:n], squares[:n], scores[:n]
    order = np.arange(n)
    _rank(order, DEPTH, scores, rows, table.ties)
    features = np.empty(18, np.float64)
    query_features(scores[order[:DEPTH]], features)
    chosen = _allotted(walk(features, feature, threshold, children, value, roots, depths), widths, knots, curves, price)
    if chosen > start:
        _rotate(asked, q, chosen)
        _read(addresses, query, start, chosen, sums, squares)
        _score(_square(query[:chosen]), sums, squares, scores)
        coordinates += n * (chosen - start)
    _rank(order, len(found_rows), scores, rows, table.ties)
    _write(order, rows, scores, 0, found_rows, found_scores)
    return coordinates, n


@njit(cache=True, nogil=True)
def route(table, asked, candidates, routes, trees, shortlist, found):  # type: ignore[no-untyped-def]
    """The router's answers for queries with candidates (Q, C), the best `shortlist` of which count; the highest row among these.

    `table`, `asked` and `found` are those tuples, `routes` is (start, widths, knots, curves, price), `trees` as in policies.router.
    """
    bases, firsts, width, ties = table
    rows_of = Table(bases, firsts, width, ties)
    given, matrix, bias, values, ready = asked
    queries = Asked(given, matrix, bias, values, ready)
    found_rows, found_scores, coordinates, mean_widths = found
    start, widths, knots, curves, price = routes
    feature, threshold, children, value, roots, depths = trees
    found_rows[:], found_scores[:] = -1, -np.inf
    for q in range(len(candidates)):
        rows = _present(candidates[q], firsts[-1])
        coordinates[q], count = _route(
            rows_of, queries, q, rows, start, widths, knots, curves, price, shortlist,
            feature, threshold, children, value, roots, depths, found_rows[q], found_scores[q],
        )  # fmt: skip
        mean_widths[q] = (coordinates[q] - (len(rows) - count) * start) / max(count, 1)
    return _highest(candidates)
