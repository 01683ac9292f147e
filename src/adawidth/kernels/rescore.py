"""One query from its candidates to its answer in one compiled call, cached on disk: read, thin out or route, rank.

Rows are float16 and lie in one array a segment, so a kernel gets addresses: `bases` (S,) of the segments' first rows, `firsts`
(S + 1,) the rows they begin at, with the number of all rows at the end. What is known of a query's candidates lies in arrays of
the same order, the living ones first, so that every step is a loop over plain arrays that the compiler makes vector code of.
"""


import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64
from .float16 import SUMS, fetch, products
from .trees import DEPTH, query_features, walk

ZERO, ONE = np.float32(0.0), np.float32(1.0)
TINY = np.float32(1e-24)  # squared lengths are never smaller
LINE = 64  # bytes that memory gives at once
AHEAD = 32  # candidates whose coordinates are asked for before they are read: rows lie anywhere in memory


@njit(cache=True, nogil=True)
def _locate(bases: I64, firsts: I64, width: int, rows: I64, addresses: I64) -> None:
    """The address of every row's first coordinate."""
    for i in range(len(rows)):
        segment = 0
        while rows[i] >= firsts[segment + 1]:
            segment += 1
        addresses[i] = bases[segment] + (rows[i] - firsts[segment]) * width * 2


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
def _taper(
    bases: I64, firsts: I64, width: int, lengths: F32, ties: I64, query: F32, rows: I64,
    ladder: I64, bands: F64, k: int, found_rows: I64, found_scores: F32,
) -> int:  # fmt: skip
    """The taper's answer for one query into `found_*`, whose length is how many are asked for; the coordinates read.

    `lengths` (N,) are the documents' up to the ladder's last width; `bands` are z σ / (√2 β) for each width but the last, where
    infinite all survive.
    """
    n, last = len(rows), len(ladder) - 1
    addresses = np.empty(n, np.int64)
    _locate(bases, firsts, width, rows, addresses)
    room = np.empty((6, n), np.float32)
    sums, squares, wholes, scores, lower, upper = room[0], room[1], room[2], room[3], room[4], room[5]
    sums[:], squares[:] = ZERO, ZERO
    for i in range(n):
        wholes[i] = lengths[rows[i]] ** 2
    heap, leaving = np.empty(min(k, n), np.float32), np.empty(n, np.int64)
    square, whole = ZERO, _square(query[: ladder[last]])
    alive = np.zeros(last + 1, np.int64)  # when a width was read; none where it was passed over
    coordinates, begin, left, step = 0, 0, n, 0
    while step <= last:
        if step and left <= k:  # no one is left out any more
            step = last
        end = ladder[step]
        _read(addresses[:left], query, begin, end, sums, squares)
        square += _square(query[begin:end])
        coordinates += left * (end - begin)
        alive[step] = left
        if step < last and bands[step] < np.inf and left > k:
            band = np.float32(bands[step]) * _tail(square, whole)
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
            _rank(group, len(found_rows) - front, scores, rows, ties)
            _write(group, rows, scores, front, found_rows, found_scores)
            front = alive[step]
    return coordinates


@njit(cache=True, nogil=True)
def taper(
    bases: I64, firsts: I64, width: int, lengths: F32, ties: I64, queries: F32, candidates: I64,
    ladder: I64, bands: F64, k: int, found_rows: I64, found_scores: F32, coordinates: I64, mean_widths: F64,
) -> int:  # fmt: skip
    """The taper's answers for queries (Q, D) with candidates (Q, C); the highest row among these."""
    found_rows[:], found_scores[:] = -1, -np.inf
    for q in range(len(queries)):
        rows = _present(candidates[q], firsts[-1])
        coordinates[q] = _taper(
            bases, firsts, width, lengths, ties, queries[q], rows, ladder, bands, k, found_rows[q], found_scores[q]
        )
        mean_widths[q] = coordinates[q] / max(len(rows), 1)
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
    bases: I64, firsts: I64, width: int, ties: I64, query: F32, rows: I64, start: int, widths: I64, knots: F64, curves: F64,
    price: float, feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32, found_rows: I64, found_scores: F32,
) -> int:  # fmt: skip
    """The router's answer for one query, from the paper's features and trees, into `found_*`; the coordinates read."""
    n = len(rows)
    addresses = np.empty(n, np.int64)
    _locate(bases, firsts, width, rows, addresses)
    order = np.arange(n)
    sums, squares, scores = np.zeros(n, np.float32), np.zeros(n, np.float32), np.empty(n, np.float32)
    _read(addresses, query, 0, start, sums, squares)
    _score(_square(query[:start]), sums, squares, scores)
    _rank(order, DEPTH, scores, rows, ties)
    features = np.empty(18, np.float64)
    query_features(scores[order[:DEPTH]], features)
    chosen = _allotted(walk(features, feature, threshold, children, value, roots, depths), widths, knots, curves, price)
    if chosen > start:
        _read(addresses, query, start, chosen, sums, squares)
        _score(_square(query[:chosen]), sums, squares, scores)
    _rank(order, len(found_rows), scores, rows, ties)
    _write(order, rows, scores, 0, found_rows, found_scores)
    return n * max(start, chosen)


@njit(cache=True, nogil=True)
def route(
    bases: I64, firsts: I64, width: int, ties: I64, queries: F32, candidates: I64, start: int, widths: I64, knots: F64, curves: F64,
    price: float, feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32,
    found_rows: I64, found_scores: F32, coordinates: I64, mean_widths: F64,
) -> int:  # fmt: skip
    """The router's answers for queries (Q, D) with candidates (Q, C); the highest row among these."""
    found_rows[:], found_scores[:] = -1, -np.inf
    for q in range(len(queries)):
        rows = _present(candidates[q], firsts[-1])
        coordinates[q] = _route(
            bases, firsts, width, ties, queries[q], rows, start, widths, knots, curves, price,
            feature, threshold, children, value, roots, depths, found_rows[q], found_scores[q],
        )  # fmt: skip
        mean_widths[q] = coordinates[q] / max(len(rows), 1)
    return _highest(candidates)
