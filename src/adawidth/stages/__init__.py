"""Stages of a search: what holds rotated documents, the state that policies see, and the loop over both."""

from .backend import Backend
from .memory import MemoryBackend
from .state import Decision, Stage

__all__ = ["Backend", "Decision", "MemoryBackend", "Stage"]
