"""Stages of a search: what holds rotated documents (Backend), the state that policies see, and the loop over both.
A new place to search in is a new Backend; the loop is written once."""

from .backend import Backend, Store, Written
from .memory import MemoryBackend, MemoryStore
from .state import Decision, Stage

__all__ = ["Backend", "Decision", "MemoryBackend", "MemoryStore", "Stage", "Store", "Written"]
