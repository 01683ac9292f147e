"""Required widths: where a relevant document enters the top k and stays, for every corpus size and depth at once.

A document overtakes a relevant one at a width where its prefix score is at least as high; the relevant one is outside the
top k exactly when k or more documents overtake it. One pass over the documents counts the overtakers of every pair at every
width. Documents are put into random orders, the chains; the corpus of size n is the first n documents of a chain, so sizes
are nested and one pass counts them all. The relevant document of a pair is in each of its corpora; the other documents
relevant to its query are in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import Queries, Vectors, check_seed
from ..errors import DataError, OptionError
from ..kernels.overtakers import count
from ..progress import progress
from ..rotation import Rotation
from ..types import F32, F64, I32, I64, U8, Mask, Rows, Widths

DEPTHS = (1, 3, 5, 10, 20, 50, 100)
SMALLEST = 500  # documents
CHAINS, MOST_CHAINS = 5, 1_000
SIZES = 3  # at least; the largest is held out in a test of the law, and two make a slope
DEEPEST = 5  # a depth is at most the smallest corpus divided by this
TOLERANCE = 1e-6  # a score this close below counts as equal, so that copies of a document overtake it in any order of summation
QUERY_BLOCK, DOCUMENT_BLOCK = 128, 2048  # scores held at a time


@dataclass(frozen=True, eq=False)
class RequiredWidths:
    """The required width of each (query, relevant document) pair: C chains, S corpus sizes, K depths, P pairs, W widths measured."""

    widths: Widths  # (W,) the grid, the encoder width last
    sizes: I64  # (S,) ascending, the whole corpus last
    depths: I64  # (K,) ascending
    values: F32  # (C, S, K, P), infinite (censored) where the pair is outside the top k at the encoder width
    queries: I64  # (P,) the query of each pair, ascending
    overtakers: I32  # (P, W) in the whole corpus

    def __repr__(self) -> str:
        return f"RequiredWidths({len(self):,} pairs, {self.sizes[0]:,} to {self.sizes[-1]:,} documents, depths {self.depths.tolist()})"

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def encoder_width(self) -> int:
        """The widest that was measured."""
        return int(self.widths[-1])

    def quantile(self, quantile: float) -> F64:
        """The smallest width that is enough for this share of the pairs; infinite where no width is. (C, S, K)"""
        place = int(np.ceil(quantile * len(self) - 1e-9)) - 1
        return np.partition(self.values, place, axis=-1)[..., place].astype(np.float64)

    def censored(self) -> F64:
        """Share of the pairs that no width is enough for, averaged over the chains. (S, K)"""
        return np.asarray(np.isinf(self.values).mean(axis=(0, 3)), np.float64)

    def grid(self) -> tuple[F64, F64]:
        """(documents, depth) of every cell, size by size. (S · K,) each"""
        n, k = np.meshgrid(self.sizes.astype(np.float64), self.depths.astype(np.float64), indexing="ij")
        return n.ravel(), k.ravel()

    def flat(self, values: F64, chosen: Mask) -> tuple[F64, F64, F64]:
        """Documents, depths and values of the chosen cells. (S, K), (S, K) -> three of (cells,)"""
        n, k = self.grid()
        return n[chosen.ravel()], k[chosen.ravel()], values[chosen]

    def best(self) -> RequiredWidths:
        """One entry per query: its relevant document with the smallest required width, cell by cell."""
        starts = np.flatnonzero(np.diff(self.queries, prepend=-1))
        values = np.minimum.reduceat(self.values, starts, axis=-1)
        overtakers = np.minimum.reduceat(self.overtakers, starts, axis=0)
        return replace(self, values=values, queries=self.queries[starts], overtakers=overtakers)

    def draw(self, rng: np.random.Generator) -> RequiredWidths:
        """Queries, with all their pairs, and chains drawn again with replacement."""
        starts = np.flatnonzero(np.diff(self.queries, prepend=-1))
        lengths = np.diff(starts, append=len(self))
        picked = rng.integers(len(starts), size=len(starts))
        first = np.repeat(starts[picked] - np.cumsum(lengths[picked]) + lengths[picked], lengths[picked])
        pairs = first + np.arange(len(first))
        chains = rng.integers(len(self.values), size=len(self.values))
        queries = np.repeat(np.arange(len(picked)), lengths[picked])
        return replace(self, values=self.values[chains][..., pairs], queries=queries, overtakers=self.overtakers[pairs])


def required_widths(
    documents: Vectors,
    queries: Queries,
    rotation: Rotation | None = None,
    *,
    depths: Sequence[int] = DEPTHS,
    smallest: int = SMALLEST,
    chains: int = CHAINS,
    seed: int = 0,
) -> RequiredWidths:
    """The required width of every (query, relevant document) pair, exact on the width grid.

    Time grows with queries × documents × encoder width D. In memory, in bytes, with P pairs of Q queries, W widths, C chains and
    S sizes and K depths: 4·P·W·(C·S + 2) for the counts, 4·P·C·S·(K + 2) for the widths, 4·D·(Q + P) for the queries, (C + 16)·N
    for the chains of N documents, and 80,000·(D + 100) for blocks of rows and scores. Documents are read block by block.
    """
    if queries.judged is None:
        raise DataError(f"{queries.vectors.name}: there are no labels: required widths are those of relevant documents; add qrels")
    grid, sizes = width_grid(documents.width), corpus_sizes(len(documents), smallest, documents.name)
    looked_at = _depths(depths, int(sizes[0]))
    check_seed(seed)
    if not isinstance(chains, int | np.integer) or not 2 <= chains <= MOST_CHAINS:
        raise OptionError(
            f"chains is {chains}, at least 2 and at most {MOST_CHAINS} are needed to tell the law from the luck of a subsample"
        )
    per_query = [queries.judged.positives(i) for i in range(len(queries))]
    pair_queries = np.repeat(np.arange(len(queries)), [len(rows) for rows in per_query])
    pair_documents = np.concatenate([*per_query, np.empty(0, np.int64)])
    if not len(pair_queries):
        raise DataError(f"{queries.vectors.name}: none of the {len(queries)} queries has a relevant document (grade above 0)")
    rotated = _rotated(queries.vectors.all(), rotation)
    thresholds = _thresholds(rotated[pair_queries], documents, pair_documents, rotation, grid)
    counts = np.zeros((len(grid), len(pair_queries), chains, len(sizes)), np.int32)
    excluded = [rows if own < 0 else np.append(rows, own) for rows, own in zip(per_query, queries.own.tolist(), strict=True)]
    offsets = np.searchsorted(pair_queries, np.arange(len(queries) + 1))
    bins = _bins(len(documents), sizes, chains, seed)
    blocks = ((first, _rotated(block, rotation)) for first, block in documents.blocks(DOCUMENT_BLOCK))
    _count(blocks, rotated, excluded, thresholds, offsets, grid, bins, counts)
    np.cumsum(counts, axis=3, out=counts)
    return RequiredWidths(grid, sizes, looked_at, _required(counts, grid, looked_at), pair_queries, counts[:, :, 0, -1].T.copy())


def width_grid(encoder_width: int) -> Widths:
    """8, 16, … in steps of 8, from 512 on of 16, and the encoder width."""
    return np.unique([*range(8, min(encoder_width, 512) + 1, 8), *range(528, encoder_width + 1, 16), encoder_width]).astype(np.int64)


def corpus_sizes(documents: int, smallest: int = SMALLEST, name: str = "documents") -> I64:
    """The whole corpus, its half, its quarter, … down to `smallest`; ascending, at least three."""
    if not isinstance(smallest, int | np.integer) or smallest < DEEPEST:
        raise OptionError(f"the smallest corpus is {smallest} documents, at least {DEEPEST} are needed")
    sizes = [documents]
    while sizes[-1] // 2 >= smallest:
        sizes.append(sizes[-1] // 2)
    if len(sizes) < SIZES:
        raise DataError(
            f"{name}: {documents} documents make {len(sizes) if documents >= smallest else 0} of the {SIZES} corpus sizes that are needed, "
            f"each half of the next and none below {smallest}: have {smallest << (SIZES - 1)} documents, or lower smallest (--smallest)"
        )
    return np.array(sizes[::-1], np.int64)


def _depths(depths: Sequence[int], smallest: int) -> I64:
    """Those that leave a corpus of the smallest size something to rank; at least two."""
    if min(depths, default=1) < 1:
        raise OptionError(f"depth {min(depths)}: depths are 1 or more")
    kept = sorted({k for k in depths if k * DEEPEST <= smallest})
    if len(kept) < 2:
        given = ", ".join(map(str, depths)) or "none"
        raise OptionError(
            f"the law needs at least 2 depths k of at most {smallest // DEEPEST} (a fifth of the smallest corpus, {smallest} documents), "
            f"found {len(kept)} among {given}: give more depths or a larger smallest corpus"
        )
    return np.array(kept, np.int64)


def _rotated(x: F32, rotation: Rotation | None) -> F32:
    return x if rotation is None else rotation.apply(x)


def _prefix_sums(x: F64, grid: Widths) -> F64:
    """Sums over the leading coordinates of every row, up to each width of the grid. (n, D) -> (n, W)"""
    return np.add.reduceat(x, np.concatenate([[0], grid[:-1]]), axis=1).cumsum(axis=1)


def _thresholds(pair_queries: F32, documents: Vectors, pair_documents: Rows, rotation: Rotation | None, grid: Widths) -> F32:
    """The prefix score of each pair's relevant document, times the length of the query's prefix, less the tolerance. (W, P)"""
    out = np.empty((len(grid), len(pair_documents)), np.float32)
    for start in range(0, len(pair_documents), DOCUMENT_BLOCK):
        part = slice(start, start + DOCUMENT_BLOCK)
        q = pair_queries[part].astype(np.float64)
        d = _rotated(documents.read(pair_documents[part]), rotation).astype(np.float64)
        lengths = np.maximum(np.sqrt(_prefix_sums(d * d, grid)), 1e-12)
        out[:, part] = (_prefix_sums(q * d, grid) / lengths - TOLERANCE * np.sqrt(_prefix_sums(q * q, grid))).T
    return out


def _bins(documents: int, sizes: I64, chains: int, seed: int) -> U8:
    """For each document and chain the number of the smallest size that holds the document. (N, C)"""
    bins = np.empty((documents, chains), np.uint8)
    for chain in range(chains):
        order = np.random.default_rng((seed, chain)).permutation(documents)
        bins[order, chain] = np.repeat(np.arange(len(sizes)), np.diff(sizes, prepend=0))
    return bins


def _count(
    blocks: Iterable[tuple[int, F32]],
    queries: F32,
    excluded: Sequence[Rows],
    thresholds: F32,
    offsets: I64,
    grid: Widths,
    bins: U8,
    counts: I32,
) -> None:
    """Counts the overtakers of each pair among blocks of rotated documents, at each width, by chain and by the smallest size.

    In place: (W, P, C, S).
    """
    steps = list(zip([0, *grid[:-1].tolist()], grid.tolist(), strict=True))
    barred = np.repeat(np.arange(len(queries)), [len(rows) for rows in excluded]), np.concatenate(excluded)
    with progress("counting overtakers", -(-len(bins) // DOCUMENT_BLOCK)) as advance:
        for first, rows in blocks:
            lengths = np.sqrt(_prefix_sums(rows.astype(np.float64) ** 2, grid)).T  # (W, n)
            inverse = np.reciprocal(np.maximum(lengths, 1e-12)).astype(np.float32)
            columns = np.ascontiguousarray(rows.T)  # (D, n)
            here = bins[first : first + len(rows)]
            inside = (barred[1] >= first) & (barred[1] < first + len(rows))
            for start in range(0, len(queries), QUERY_BLOCK):
                part = queries[start : start + QUERY_BLOCK]
                sums = np.zeros((len(part), len(rows)), np.float32)
                mine = inside & (barred[0] >= start) & (barred[0] < start + len(part))
                sums[barred[0][mine] - start, barred[1][mine] - first] = -np.inf
                products = np.empty_like(sums)
                spans = offsets[start : start + len(part) + 1]
                for step, (begin, end) in enumerate(steps):
                    np.matmul(part[:, begin:end], columns[begin:end], out=products)
                    count(products, sums, inverse[step], thresholds[step], spans, here, counts[step])
            advance()


def _required(counts: I32, grid: Widths, depths: I64) -> F32:
    """The width behind the last one at which k or more documents overtake; infinite where that is the last of all. -> (C, S, K, P)"""
    following = np.append(grid[1:], np.inf).astype(np.float32)
    out = np.empty((*counts.shape[2:], len(depths), counts.shape[1]), np.float32)
    for place, k in enumerate(depths.tolist()):
        values = np.full(counts.shape[1:], grid[0], np.float32)
        for at, behind in zip(counts, following, strict=True):
            values[at >= k] = behind
        out[:, :, place] = np.moveaxis(values, 0, -1)
    return out
