"""What can go wrong: only the kinds that a caller may want to tell apart.

Every message is one line that names the file, row or id, both numbers that disagree, and the way out.
"""

from importlib.util import find_spec

EXTRAS = {
    "torch": "train",
    "lightgbm": "train",
    "matplotlib": "report",
    "pyarrow": "parquet",
    "sentence_transformers": "encode",
    "wordllama": "encode",
    "pypdf": "documents",
    "docx": "documents",
    "yaml": "documents",
    "psycopg": "pgvector",
    "pymilvus": "milvus",
    "qdrant_client": "qdrant",
    "qdrant_edge": "qdrant-edge",
    "lancedb": "lancedb",
    "ray": "ray",
    "lance": "ray",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "ir_datasets": "ir",
    "ranx": "ir",
    "fastapi": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "prometheus_client": "serve",
    "httpx": "serve",
}  # package -> the extra that brings it


class AdaWidthError(Exception):
    """Base of all errors that AdaWidth raises on purpose; a command prints the message and exits with 1.

    >>> from adawidth import load_dataset
    >>> try:
    ...     load_dataset("nowhere")
    ... except AdaWidthError as error:
    ...     print(error)
    nowhere: there is no such folder: give a dataset folder, which holds embeddings/<encoder>/corpus.npy
    """


class DataError(AdaWidthError):
    """Vectors, ids, labels or files that can't be used as they are."""


class OptionError(AdaWidthError, ValueError):
    """An option or argument out of its range."""


class ArtifactError(AdaWidthError):
    """A model or index folder that is missing, damaged, newer than this version, or does not fit."""


class BusyError(ArtifactError):
    """Another process, or another part of this one, is writing to the index: try again."""


class UnknownOutcomeError(AdaWidthError):
    """The disk failed during a commit, and whether it was written can't be found out. Open the index again to see."""


class EngineError(AdaWidthError):
    """An engine that can't be reached, or refuses; the message has its address without the password."""


class LeakError(AdaWidthError):
    """Test queries were about to be fitted on."""


class OptionalDependencyError(AdaWidthError, ImportError):
    """A package that only some users need is not installed; the message has the pip command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}, which is not installed: pip install 'adawidth[{extra}]'")


def need(*packages: str) -> None:
    """Raises, before any work is done, if one of these packages is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise OptionalDependencyError(package, EXTRAS[package])
