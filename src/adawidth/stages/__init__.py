"""Stages of a search: what holds rotated documents, the state that policies see, and the loop over both."""

from .memory import MemoryIndex
from .state import Decision, Index, Stage

__all__ = ["Decision", "Index", "MemoryIndex", "Stage"]
