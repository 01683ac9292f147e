"""What can go wrong, as few kinds as a caller can tell apart.

Every message is one line that names the place, both numbers that disagree and the way out.
"""

from importlib.util import find_spec

EXTRAS = {
    "torch": "train",
    "lightgbm": "train",
    "matplotlib": "report",
    "pyarrow": "parquet",
    "sentence_transformers": "encode",
    "wordllama": "encode",
}  # package -> the extra that brings it


class AdaWidthError(Exception):
    """Base of all errors that AdaWidth raises on purpose; the command prints its text and exits with 1."""


class DataError(AdaWidthError):
    """Vectors, ids, labels or files that can't be used as they are."""


class OptionError(AdaWidthError, ValueError):
    """An option or argument out of its range."""


class ArtifactError(AdaWidthError):
    """A model or index folder that is missing, damaged, newer than this version, or does not fit."""


class UnknownOutcomeError(AdaWidthError):
    """Whether a change to an index was written is not known: the disk failed while it took it."""


class LeakError(AdaWidthError):
    """Test queries were about to be fitted on."""


class OptionalDependencyError(AdaWidthError, ImportError):
    """A package that only some users need is not installed; the message carries the pip line that mends it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}, which is not installed: pip install 'adawidth[{extra}]'")


def need(*packages: str) -> None:
    """Refuses, before any work is done, to go on without these packages."""
    for package in packages:
        if find_spec(package) is None:
            raise OptionalDependencyError(package, EXTRAS[package])
