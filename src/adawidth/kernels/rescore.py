"""One query from its candidates to its answer in one compiled call, cached on disk: read, thin out or route, rank.

A query's candidates are kept in parallel arrays, the living ones first, so that every step is a loop over plain arrays that the
compiler vectorises.

The two entries, `taper` and `route`, take plain tuples, which numba dispatches quickly, and name their parts once inside.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64
from .options import ENTRY, INNER, NONE, PART
from .ranking import clear, kth, rank, write
from .rows import TINY, Asked, Table, locate, read, rotate, score, square_of
from .trees import DEPTH, query_features, walk

ZERO, ONE = np.float32(0.0), np.float32(1.0)
UNREAD = -2  # instead of the highest row: a candidate lies in a block that must be checked before it is read


class Found(NamedTuple):
    """Answers, filled in by a kernel."""

    rows: I64  # (Q, k), -1 where there are fewer
    scores: F32  # (Q, k)
    coordinates: I64  # (Q,) read, over all candidates
    widths: F64  # (Q,) per candidate
    counts: I64  # (Q,) candidates


@njit(**INNER)
def _tail(square: np.float32, whole: np.float32) -> np.float32:
    """Share of a length that lies beyond a prefix; both as squares."""
    share = ONE - square / (whole if whole > TINY else TINY)
    return np.float32(math.sqrt(share if share > ZERO else ZERO))


@njit(**INNER)
def _bounds(
    band: np.float32, square: np.float32, count: int, sums: F32, squares: F32, wholes: F32, scores: F32, lower: F32, upper: F32
) -> None:
    """Prefix cosines of `count` candidates, and what each may be at the last width: less and more by `band` times the candidate's tail."""
    length = math.sqrt(square if square > TINY else TINY)
    for i in range(count):
        score = sums[i] / (math.sqrt(squares[i] if squares[i] > TINY else TINY) * length)
        reach = band * _tail(squares[i], wholes[i])
        scores[i] = score
        lower[i] = score - reach
        upper[i] = score + reach


@njit(**PART)
def _taper(
    table: Table, lengths: F32, asked: Asked, q: int, candidates: I64, ladder: I64, bands: F64, k: int, known: np.float32,
    found_rows: I64, found_scores: F32,
) -> tuple[int, int, int]:  # fmt: skip
    """The taper's answer for one query into `found_*`, whose length is how many are asked for; coordinates read, rows, the highest row.

    `lengths` (N,) are the documents' up to the ladder's last width; `bands` are z σ / (√2 β) for each width but the last, where
    infinite all survive; `known` is the query's squared length at the last width, below 0 where only rotating tells.
    """
    query, last, most = asked.values[q], len(ladder) - 1, len(candidates)
    rows, addresses, leaving = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    room = np.empty((7, most), np.float32)
    n, highest, sound = locate(table, candidates, rows, addresses)
    if not sound:
        return NONE, n, UNREAD + NONE
    sums, squares, wholes, scores, lower, upper, heap = room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    for i in range(n):
        sums[i], squares[i], wholes[i] = ZERO, ZERO, lengths[rows[i]] ** 2
    if known < ZERO:
        rotate(asked, q, ladder[last])
        known = square_of(query, NONE, ladder[last])
    alive = np.empty(last + 1, np.int64)  # when a width was read; none where it was passed over
    for step in range(last + 1):
        alive[step] = 0
    square, coordinates, begin, left, step = ZERO, NONE, NONE, n, NONE
    while step <= last:
        if step and left <= k:  # nothing is dropped any more
            step = last
        end = ladder[step]
        rotate(asked, q, end)
        read(addresses, left, query, begin, end, sums, squares)
        square += square_of(query, begin, end)
        coordinates += left * (end - begin)
        alive[step] = left
        if step < last and bands[step] < np.inf and left > k:
            band = np.float32(bands[step]) * _tail(square, known)
            _bounds(band, square, left, sums, squares, wholes, scores, lower, upper)
            least = kth(lower, left, k, heap)
            gone = NONE
            for i in range(left):  # first note which to drop, without a branch, since that can't be predicted
                leaving[gone] = i
                gone += upper[i] < least
            for j in range(gone - 1, -1, -1):  # then move them behind the living
                i = leaving[j]
                left -= 1
                rows[i], rows[left] = rows[left], rows[i]
                scores[i], scores[left] = scores[left], scores[i]
                addresses[i], sums[i], squares[i], wholes[i] = addresses[left], sums[left], squares[left], wholes[left]
        begin = end
        step += 1
    score(square, left, sums, squares, scores)
    front = NONE
    for step in range(last, -1, -1):  # those read furthest first
        count = alive[step] - front
        if count > 0 and front < len(found_rows):
            for i in range(count):
                leaving[i] = front + i
            rank(leaving, count, len(found_rows) - front, scores, rows, table.ties)
            write(leaving, count, rows, scores, front, found_rows, found_scores)
            front += count
    clear(front, found_rows, found_scores)
    return coordinates, n, highest


@njit(**ENTRY)
def taper(table, asked, candidates, steps, found):  # type: ignore[no-untyped-def]
    """The taper's answers for queries with candidates (Q, C); the highest row among these, or `UNREAD`.

    `table` is (*Table, lengths), `asked` and `found` are those tuples, `steps` is (ladder, bands, k, known).
    """
    bases, firsts, width, ties, unread, sizes, lengths = table
    rows_of = Table(bases, firsts, width, ties, unread, sizes)
    queries = Asked(*asked)
    found_rows, found_scores, coordinates, widths, counts = found
    ladder, bands, k, known = steps
    highest = -1
    for q in range(len(candidates)):
        coordinates[q], n, last = _taper(
            rows_of, lengths, queries, q, candidates[q], ladder, bands, k, known, found_rows[q], found_scores[q]
        )
        if last == UNREAD:
            return last
        widths[q], counts[q] = coordinates[q] / n if n else 0.0, n
        highest = last if last > highest else highest
    return highest


@njit(**INNER)
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


@njit(**INNER)
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


@njit(**PART)
def _route(
    table: Table, asked: Asked, q: int, candidates: I64, start: int, widths: I64, knots: F64, curves: F64, price: float,
    feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32, found_rows: I64, found_scores: F32,
) -> tuple[int, int, int]:  # fmt: skip
    """The router's answer for one query from the paper's features and trees into `found_*`; coordinates read, rows, the highest row."""
    query, most = asked.values[q], len(candidates)
    rows, addresses, order = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    room = np.empty((3, most), np.float32)
    n, highest, sound = locate(table, candidates, rows, addresses)
    if not sound:
        return NONE, n, UNREAD + NONE
    sums, squares, scores = room[0], room[1], room[2]
    for i in range(n):
        sums[i], squares[i], order[i] = ZERO, ZERO, i
    rotate(asked, q, start)
    read(addresses, n, query, NONE, start, sums, squares)
    score(square_of(query, NONE, start), n, sums, squares, scores)
    coordinates = n * start
    rank(order, n, np.int64(DEPTH), scores, rows, table.ties)
    features = np.empty(18, np.float64)
    query_features(scores[order[: n if n < DEPTH else DEPTH]], features)
    chosen = _allotted(walk(features, feature, threshold, children, value, roots, depths), widths, knots, curves, price)
    if chosen > start:
        rotate(asked, q, chosen)
        read(addresses, n, query, start, chosen, sums, squares)
        score(square_of(query, NONE, chosen), n, sums, squares, scores)
        coordinates += n * (chosen - start)
    rank(order, n, len(found_rows), scores, rows, table.ties)
    write(order, n, rows, scores, NONE, found_rows, found_scores)
    clear(n, found_rows, found_scores)
    return coordinates, n, highest


@njit(**ENTRY)
def route(table, asked, candidates, routes, trees, found):  # type: ignore[no-untyped-def]
    """The router's answers for queries with candidates (Q, C); the highest row among these, or `UNREAD`.

    `table`, `asked` and `found` are those tuples, `routes` is (start, widths, knots, curves, price), `trees` as in policies.router.
    """
    rows_of = Table(*table)
    queries = Asked(*asked)
    found_rows, found_scores, coordinates, mean_widths, counts = found
    start, widths, knots, curves, price = routes
    feature, threshold, children, value, roots, depths = trees
    highest = -1
    for q in range(len(candidates)):
        coordinates[q], n, last = _route(
            rows_of, queries, q, candidates[q], start, widths, knots, curves, price,
            feature, threshold, children, value, roots, depths, found_rows[q], found_scores[q],
        )  # fmt: skip
        if last == UNREAD:
            return last
        mean_widths[q], counts[q] = coordinates[q] / n if n else 0.0, n
        highest = last if last > highest else highest
    return highest


@njit(**ENTRY)
def turn(asked, end):  # type: ignore[no-untyped-def]
    """Rotates queries, given as the tuple `asked`, on to the width `end`."""
    queries = Asked(*asked)
    for q in range(len(queries.ready)):
        rotate(queries, q, end)
