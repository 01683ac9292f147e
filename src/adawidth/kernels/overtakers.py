"""The hot loop of the overtaker counts, compiled by numba and cached on disk."""

from numba import njit

from ..types import F32, I32, I64, U8


@njit(cache=True, nogil=True)
def count(products: F32, sums: F32, inverse: F32, thresholds: F32, offsets: I64, bins: U8, counts: I32) -> None:
    """Extends the partial sums and counts, for every pair, the documents whose score reaches its threshold, in place.

    `products` (q, n) is added to `sums` (q, n); a score is a sum times `inverse` (n,), one over the prefix length. The pairs
    of query i are `offsets[i]` to `offsets[i + 1]`, with `thresholds` (pairs,) and `counts` (pairs, chains, sizes); `bins`
    (n, chains) is the smallest size of each chain that holds a document. A sum of -inf never counts.
    """
    queries, documents = sums.shape
    chains = bins.shape[1]
    for i in range(queries):
        row, added = sums[i], products[i]
        for j in range(documents):
            row[j] += added[j]
        for pair in range(offsets[i], offsets[i + 1]):
            threshold = thresholds[pair]
            found = 0
            for j in range(documents):  # without a branch, so that it vectorises; most pairs have few overtakers or none
                found += row[j] * inverse[j] >= threshold
            j = 0
            while found > 0:
                if row[j] * inverse[j] >= threshold:
                    found -= 1
                    for chain in range(chains):
                        counts[pair, chain, bins[j, chain]] += 1
                j += 1
