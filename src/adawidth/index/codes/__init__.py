"""Prefix codes find candidates; scores come from the rows themselves. Storages: flat (float32, exact), int8 (one byte per coordinate),
pq4 (four bits per coordinate, or fewer of a wider block, after a random rotation of their own), ivf (an inverted file over such codes of
residuals), graph (near neighbours over such codes). Stored are plain arrays, which are checked before faiss sees them."""

from __future__ import annotations

import faiss
import numpy as np

from ...errors import DataError
from ...threads import cpus, openmp
from .base import Block, Codes, Prefixes, kind
from .flat import Flat
from .int8 import Int8

# behind the others, as messages name the storages in this order
# isort: split
from .fourbit import FourBit
from .ivf import Lists

# isort: split
from .gap import measured_gap
from .graph import Graph, held_by_graph

__all__ = ["Codes", "Flat", "FourBit", "Graph", "Int8", "Lists", "Prefixes", "build", "chosen", "measured_gap"]

SMALL = 20_000  # documents up to which `auto` stays exact
WALKED = 100_000  # documents from which `auto` takes a graph, if it is told of enough memory
LARGE = 200_000  # documents from which `auto` tries an inverted file …
SCANNED = 0.5  # … and keeps it if a typical query scans at most this share of its lists


def chosen(storage: str, count: int) -> type[Codes]:
    """The class of a storage; `auto` chooses by the number of documents."""
    if storage != "auto":
        return kind(storage)
    return Flat if count <= SMALL else FourBit if count < LARGE else Lists


def build(block: Block, storage: str, seed: int, bits: int = 4, memory: int = 0) -> Codes:
    """The codes of a block of unit-length prefixes; `auto` drops an inverted file that saves too little.

    It takes a graph where one pays and all documents fit into so many bytes of memory.
    """
    if isinstance(block, np.ndarray) and (block.ndim != 2 or block.dtype != np.float32):
        raise DataError(f"a block to code is float32 in two dimensions, found {block.dtype} in {block.ndim}")
    if storage == "auto" and len(block) >= WALKED and len(block) * held_by_graph(-(-block.shape[1] * bits // 8)) <= memory:
        storage = Graph.storage
    with openmp(faiss, cpus()):
        built = chosen(storage, len(block)).build(block, seed, bits)
        if storage == "auto" and isinstance(built, Lists) and built.share_scanned > SCANNED:
            return FourBit.build(block, seed, bits)
    return built
