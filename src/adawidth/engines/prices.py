"""What a search pays in each engine, by which it is decided whether candidates are brought here to be dropped, or all scored over there.

Microseconds of processor time, the client's and the engine's together, both on one machine, with queries in batches: `prices` of
benchmarks/results/engines.json, which `python benchmarks/engines.py` measures, rounded. A network makes trips dearer, so that a taper
pays later still.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prices:
    """Of one query's share in a batch."""

    trip: float  # one more request
    candidate: float  # the way of a candidate's id, score and norms to the client, and back as one to be scored
    coordinate: float  # one coordinate of one candidate, read and scored

    def dropping_pays(self, candidates: int, more: int) -> bool:
        """Whether asking again, for those that are left, can cost less than scoring `more` coordinates of all candidates at once."""
        return candidates * more * self.coordinate > self.trip + candidates * self.candidate


PRICES = {
    "pgvector": Prices(trip=150, candidate=9, coordinate=0.01),
    "qdrant": Prices(trip=500, candidate=15, coordinate=0.001),
    "qdrant-edge": Prices(trip=100, candidate=8, coordinate=0.001),
    "lancedb": Prices(trip=2_000, candidate=10, coordinate=0.02),
    "milvus": Prices(trip=1_000, candidate=20, coordinate=0.01),
}  # by the engine's name
