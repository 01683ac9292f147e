"""What a user holds: AdaWidth, a fitted model; Index, documents under it. The rest of the package is behind these two."""

from .adawidth import AdaWidth, open_index
from .collections import connect
from .index import Index

__all__ = ["AdaWidth", "Index", "connect", "open_index"]
