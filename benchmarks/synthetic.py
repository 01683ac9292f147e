"""Vectors of any number and width that behave as encoders' do: made in the axes of their own PCA, so that no rotation is needed.

A share MEAN of the squared length is the mean vector, common to all; of the rest, axis j has a share in proportion to
j^-POWER exp(-j / REACH). A document is in one group of each LEVEL, independently, and has with every other member a share of its
variance in common, a smaller one on later axes; what is left is its own. Queries are fresh members of a document's groups.

Set by hand to lie where three collections of minilm vectors lie (5,183 to 16,407 documents, width 384, test queries). At 16,000:

                                                                   here                         measured on the collections
    variance on the first 32, 64, 128, 256 axes                    .51 .68 .85 .97              .49-.54 .66-.71 .84-.86 .98
    cosine with the nearest, 10th, 100th, 500th document           .75 .51 .44 .37              .62-.80 .45-.60 .33-.47 .24-.39
    top 10 found among the best 10, 100, 500 at width 64           .62 .98 .999                 .62-.67 .96-.98 .994-.999
    … at width 32                                                  .41 .86 .97                  .43-.48 .80-.91 .93-.99
    top 10 in the nearest 5, 10, 20, 30, 50 % of √N lists, 64      .77 .85 .92 .95 .98          .73-.81 .82-.89 .89-.96 .93-.98 .98-1
    … of lists at width 256                                        .78 .85 .92 .95 .98          .71-.82 .81-.90 .89-.96 .93-.98 .98-1

How a wider encoder's spectrum falls these collections do not tell: `stretch` draws it out, and what a search has to read hangs on
it; 1 is the kinder case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MEAN, POWER, REACH = 0.18, 0.57, 138.0
LEVELS = ((400, 0.36, 1.5), (40, 0.16, 0.2), (5, 0.34, 0.0))  # members, share on the first axis, its fall in 100 axes (e-fold)
STEP = 20_000  # documents made at a time
OTHERS = 400


@dataclass(frozen=True, eq=False)
class Vectors:
    """Unit-length documents and queries, axes in order of variance."""

    documents: np.ndarray  # (N, D) float16
    queries: np.ndarray  # (Q, D) float32
    others: np.ndarray  # (400, D) float32: queries to choose settings on


def make(documents: int, width: int, queries: int, stretch: float = 1.0, seed: int = 0) -> Vectors:
    """So many of each; neighbours lie at random rows."""
    rng = np.random.default_rng(seed)
    axes = np.arange(1, width)
    spectrum = axes**-POWER * np.exp(-axes / (stretch * REACH))
    spectrum *= (1 - MEAN) / spectrum.sum()
    shares = [share * np.exp(-fall * axes / (100 * stretch)) for _, share, fall in LEVELS]
    *common, own = (np.sqrt(spectrum * share).astype(np.float32) for share in (*shares, 1 - sum(shares)))
    rows = np.empty((documents, width), np.float16)
    place = rng.permutation(documents)
    asked = np.sort(rng.choice(documents, queries + OTHERS, replace=False))
    made = []
    for start in range(0, documents, STEP):
        count = min(STEP, documents - start)
        groups = np.zeros((count, width - 1), np.float32)
        for (members, *_), scale in zip(LEVELS, common, strict=True):
            groups += _drawn(rng, -(-count // members), scale)[rng.permutation(count) // members]
        rows[place[start : start + count]] = _whole(groups + _drawn(rng, count, own))
        here = asked[(asked >= start) & (asked < start + count)] - start
        made.append(_whole(groups[here] + _drawn(rng, len(here), own)))
    both = rng.permutation(np.concatenate(made))
    return Vectors(rows, both[OTHERS:], both[:OTHERS])


def _drawn(rng: np.random.Generator, count: int, scale: np.ndarray) -> np.ndarray:
    return rng.standard_normal((count, len(scale)), np.float32) * scale


def _whole(parts: np.ndarray) -> np.ndarray:
    """With the mean as the first axis, at unit length."""
    rows = np.concatenate([np.full((len(parts), 1), np.sqrt(MEAN), np.float32), parts], axis=1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
