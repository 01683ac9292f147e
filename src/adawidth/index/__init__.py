"""Places to search in: an index holds rotated documents and has the verbs search, open and rescore."""

from .manifest import Document
from .memory import MemoryIndex
from .prefix import PrefixIndex
from .view import View

__all__ = ["Document", "MemoryIndex", "PrefixIndex", "View"]
