"""The backend on disk: an index folder, what one search sees of it, ids, repair, and rescoring in compiled code.
store/ and codes/ have what is stored. Its layout is a contract: it changes only with a new version number."""

from ..threads import settle
from .folder import IndexFolder
from .view import View

__all__ = ["IndexFolder", "View"]

settle()  # codes load faiss
