"""What a search pays in each engine, by which it is decided whether candidates are brought here to be dropped, or all scored over there.

Microseconds of processor time, the client's and the engine's together, both on one machine, with queries in batches: `prices` of
benchmarks/results/engines.json, which `python benchmarks/engines.py` measures, rounded; their geometric mean where there are several. A
network makes trips dearer, so that a taper pays later still.
"""

from __future__ import annotations

from dataclasses import dataclass

DROPPED = 0.5  # of the candidates at one width: more than tapers were seen to drop (`mean_width` in the same file)


@dataclass(frozen=True)
class Prices:
    """Of one query's share in a batch."""

    trip: float  # one more request
    candidate: float  # the way of a candidate's id, score and norms to the client, and of every other one back to be scored
    coordinate: float  # one coordinate of one candidate, read and scored

    def dropping_pays(self, candidates: int, more: int) -> bool:
        """Whether asking again, for those that are left, can cost less than scoring `more` coordinates of all candidates at once."""
        return DROPPED * candidates * more * self.coordinate > self.trip + candidates * self.candidate


PRICES = {
    "pgvector": Prices(trip=790, candidate=25, coordinate=0.009),
    "qdrant": Prices(trip=500, candidate=15, coordinate=0.0006),  # not measured: Edge's, and a trip over a network
    "qdrant-edge": Prices(trip=60, candidate=10, coordinate=0.0006),
    "lancedb": Prices(trip=150, candidate=5, coordinate=0.016),
    "milvus": Prices(trip=250, candidate=27, coordinate=0),  # it has no search in one request: a candidate's way is that of its vector
}  # by the engine's name
