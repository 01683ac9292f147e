"""Places to search in: an index holds rotated documents and has the verbs search, open and rescore."""

from .folder import IndexFolder
from .view import View

__all__ = ["IndexFolder", "View"]
