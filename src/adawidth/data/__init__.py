"""What everything else is made of: vectors, documents, labels, datasets. Input is validated here and nowhere else.

Ids are strings, or row numbers where plain arrays are given. Inside the package everything works on rows.
"""

from .dataset import Dataset
from .documents import ChainedDocuments, Document, Documents
from .labels import Judged, Qrels
from .learning import Learning, Queries, check_seed, held_out
from .vectors import BLOCK, Vectors, as_matrix, as_queries, unit

__all__ = [
    "BLOCK",
    "ChainedDocuments",
    "Dataset",
    "Document",
    "Documents",
    "Judged",
    "Learning",
    "Qrels",
    "Queries",
    "Vectors",
    "as_matrix",
    "as_queries",
    "check_seed",
    "held_out",
    "unit",
]
