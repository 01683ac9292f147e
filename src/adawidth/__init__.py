"""AdaWidth: dense retrieval that evaluates only as many embedding coordinates as each query needs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data import Dataset, Qrels, Vectors
    from .errors import AdaWidthError
    from .evaluation.compare import compare
    from .evaluation.evaluate import evaluate
    from .formats import Document, load_dataset
    from .hits import Hits
    from .model import AdaWidth, open_index
    from .rotation import Rotation
    from .sufficiency import WidthLaw

__version__ = "0.2.0"
__all__ = [
    "AdaWidth",
    "AdaWidthError",
    "Dataset",
    "Document",
    "Hits",
    "Qrels",
    "Rotation",
    "Vectors",
    "WidthLaw",
    "__version__",
    "compare",
    "evaluate",
    "load_dataset",
    "open_index",
]

_HOME = {
    "AdaWidth": "model",
    "AdaWidthError": "errors",
    "Dataset": "data",
    "Document": "formats",
    "Hits": "hits",
    "Qrels": "data",
    "Rotation": "rotation",
    "Vectors": "data",
    "WidthLaw": "sufficiency",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "load_dataset": "formats",
    "open_index": "model",
}  # public name -> module, imported on first use


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
