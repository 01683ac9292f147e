"""Places to search in: an index holds rotated documents and has the verbs search, open and rescore."""

from .memory import MemoryIndex

__all__ = ["MemoryIndex"]
