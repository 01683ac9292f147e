"""Vectors of any number and width that behave as encoders' do: made in the axes of their own PCA, so that no rotation is needed.

What was matched by hand, to three collections of minilm vectors (5,183 to 16,407 documents, width 384):
- a share MEAN of the squared length is the mean vector, common to all;
- of the rest, axis j has a share in proportion to j^-POWER exp(-j / REACH): the first 32, 64, 128, 256 of 384 axes have .50 to .55,
  .66 to .71, .84 to .87, .98 of it. How a wider encoder's spectrum falls these collections do not tell:
  `stretch` draws it out, and what a search has to read hangs on it; 1 is the kinder case.
- documents share a topic (one in TOPIC) and a subtopic (one in SUBTOPIC): the cosines of a query with its nearest, 10th, 100th and
  500th of 16,000 documents are .72, .58, .44, .36 at width 384 (measured: .62 to .78, .45 to .59, .33 to .46, .24 to .39).
Queries are fresh members of random subtopics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MEAN, POWER, REACH = 0.18, 0.57, 138.0
TOPIC, SUBTOPIC = 100, 5
SHARES = (0.35, 0.25, 0.40)  # of variance: topic, subtopic, a vector's own
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
    scale = np.sqrt((1 - MEAN) * spectrum / spectrum.sum()).astype(np.float32)
    rows = np.empty((documents, width), np.float16)
    place = rng.permutation(documents)
    asked = np.sort(rng.choice(documents, queries + OTHERS, replace=False))
    made = []
    for start in range(0, documents, STEP):
        count = min(STEP, documents - start)
        topics = np.repeat(_parts(rng, -(-count // TOPIC), scale, SHARES[0]), TOPIC, axis=0)[:count]
        shared = topics + np.repeat(_parts(rng, -(-count // SUBTOPIC), scale, SHARES[1]), SUBTOPIC, axis=0)[:count]
        rows[place[start : start + count]] = _whole(shared + _parts(rng, count, scale, SHARES[2]))
        here = asked[(asked >= start) & (asked < start + count)] - start
        made.append(_whole(shared[here] + _parts(rng, len(here), scale, SHARES[2])))
    both = rng.permutation(np.concatenate(made))
    return Vectors(rows, both[OTHERS:], both[:OTHERS])


def _parts(rng: np.random.Generator, count: int, scale: np.ndarray, share: float) -> np.ndarray:
    return rng.standard_normal((count, len(scale)), np.float32) * (scale * np.float32(np.sqrt(share)))


def _whole(parts: np.ndarray) -> np.ndarray:
    """With the mean as the first axis, at unit length."""
    rows = np.concatenate([np.full((len(parts), 1), np.sqrt(MEAN), np.float32), parts], axis=1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
