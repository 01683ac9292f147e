"""AdaWidth, the facade, and what searches the indexes it makes, by vectors or by text.
The public face of the package: its names and arguments are contracts."""

from .adawidth import AdaWidth, open_index
from .index import Searcher
from .text import TextSearcher

__all__ = ["AdaWidth", "Searcher", "TextSearcher", "open_index"]
