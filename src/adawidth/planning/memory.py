"""Bytes that a document takes in an index folder: in memory while it is searched, and on disk. From the formats; texts not counted."""

from __future__ import annotations

from dataclasses import dataclass

from ..index.codes.graph import held_by_graph
from ..index.codes.ivf import NUMBERED
from ..index.codes.packed import even
from ..kernels.graph import NEIGHBOURS
from ..policies.base import LADDER

STORAGES = ("flat", "int8", "pq4", "ivf", "graph")
ID = 8  # characters of an id, on average
# of each document, in memory: its place in the tie-break order (int64), its length at the target width (float32), whether it is there
KEPT = 8 + 4 + 1
SUMS = 2  # the checksums of its block of rows, as text and as numbers (benchmarks/results/resident.json)
# of each document, on disk beside its row and its codes: number, end of its id and place (segment), and the manifest's entry
ENTRY = 8 + 8 + 4 + 50


@dataclass(frozen=True)
class Shape:
    """One way to store documents."""

    storage: str  # flat, int8, pq4, ivf or graph
    encoder_width: int
    keep: int  # coordinates stored per document
    start: int  # width that codes find candidates for
    target: int  # width that searches read to
    size: int | None = None  # bytes of 4-bit codes, as asked for

    @property
    def codes(self) -> float:
        """Bytes of codes per document, as the codes themselves say (`Codes.bytes_per_document`)."""
        match self.storage:
            case "flat":
                return 4.0 * self.start
            case "int8":
                return float(self.start)
            case "pq4":
                return float(self.packed)
            case "graph":
                return float(held_by_graph(self.packed))
            case _:
                return float(self.packed + NUMBERED)

    @property
    def coded(self) -> int:
        """Coordinates that the codes cover: twice the start width at two bits each, where searches read that far.

        Bytes that are asked for may be filled in other ways, which only the documents tell: two bits each is the usual one.
        """
        if self.storage in ("flat", "int8"):
            return self.start
        if self.size:
            return min(4 * self.size, self.keep)
        return 2 * self.start if min(self.target, self.keep) >= 2 * self.start else self.start

    @property
    def packed(self) -> int:
        """Bytes of 4-bit codes: as many as are asked for, if documents are wide enough, else one per two coordinates."""
        return min(self.size, -(-self.keep // 2)) if self.size else -(-self.start // 2)

    @property
    def memory(self) -> float:
        """Bytes per document that a searching process holds. Rows stay in their file: the system keeps what was read in its cache."""
        return self.codes + KEPT + SUMS

    @property
    def disk(self) -> float:
        """Bytes per document of an index folder without titles, texts and metadata."""
        norms = 1 + sum(width < self.keep for width in LADDER)
        stored = self.codes - (4 if self.storage == "ivf" else 0)  # row numbers are not stored
        stored -= NEIGHBOURS * even(self.packed) if self.storage == "graph" else 0  # nor are the codes of neighbours
        return 2.0 * self.keep + 4.0 * norms + stored + ENTRY + ID
