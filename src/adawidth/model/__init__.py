"""AdaWidth, the facade, and what it makes: searchers over an index, of vectors or of text."""

from .adawidth import AdaWidth, open_index
from .index import Searcher
from .text import TextSearcher

__all__ = ["AdaWidth", "Searcher", "TextSearcher", "open_index"]
