"""AdaWidth: dense retrieval that evaluates only as many embedding coordinates as each query needs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data import Dataset, Document, Qrels, Vectors
    from .errors import AdaWidthError, UnknownOutcomeError
    from .evaluation.check import check
    from .evaluation.compare import compare
    from .evaluation.evaluate import evaluate
    from .formats import load_dataset
    from .hits import Answer, Hit, Hits
    from .model import AdaWidth, Index, connect, open_index
    from .planning import plan
    from .rotation import Rotation
    from .serve.async_client import AsyncClient
    from .serve.client import Client
    from .sufficiency import WidthLaw

__version__ = "0.2.0"
__all__ = [
    "AdaWidth",
    "AdaWidthError",
    "Answer",
    "AsyncClient",
    "Client",
    "Dataset",
    "Document",
    "Hit",
    "Hits",
    "Index",
    "Qrels",
    "Rotation",
    "UnknownOutcomeError",
    "Vectors",
    "WidthLaw",
    "__version__",
    "check",
    "compare",
    "connect",
    "evaluate",
    "load_dataset",
    "open_index",
    "plan",
]

_HOME = {
    "AdaWidth": "model",
    "AdaWidthError": "errors",
    "Answer": "hits",
    "AsyncClient": "serve.async_client",
    "Client": "serve.client",
    "Dataset": "data",
    "Document": "data",
    "Hit": "hits",
    "Hits": "hits",
    "Index": "model",
    "Qrels": "data",
    "Rotation": "rotation",
    "UnknownOutcomeError": "errors",
    "Vectors": "data",
    "WidthLaw": "sufficiency",
    "check": "evaluation",
    "compare": "evaluation",
    "connect": "model",
    "evaluate": "evaluation",
    "load_dataset": "formats",
    "open_index": "model",
    "plan": "planning",
}  # public name -> module, imported on first use


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
