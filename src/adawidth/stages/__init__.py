"""Stages of a search: what holds rotated documents (Backend), the state that policies see, and the loop over both.
To search somewhere else, write a new Backend; the loop is written once."""

from .backend import Backend, Reader, RowBackend, RowStore, Store, Written
from .memory import MemoryBackend, MemoryStore
from .state import Decision, Stage

__all__ = ["Backend", "Decision", "MemoryBackend", "MemoryStore", "Reader", "RowBackend", "RowStore", "Stage", "Store", "Written"]
