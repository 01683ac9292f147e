"""AdaWidth, the facade, and what it makes: searchers over an index, of vectors or of text."""

from ..stages.loop import Searcher
from .adawidth import AdaWidth, open_index
from .text import TextSearcher

__all__ = ["AdaWidth", "Searcher", "TextSearcher", "open_index"]
