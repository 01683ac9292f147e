"""Methods to compare with, one file each, behind one interface and one registry of names."""

from __future__ import annotations

from importlib import import_module

from ..errors import OptionError
from .base import Baseline, Role, Rotated, Searching

REGISTRY = {
    "truncation": "truncation:Truncation",
    "random": "random:Random",
    "pca": "pca:PCA",
    "kyfan": "kyfan:KyFan",
    "adawidth": "adawidth:AdaWidthRotation",
    "adawidth-query": "adawidth_query:AdaWidthQuery",
}  # name -> module:class, imported on first use


def baseline(name: str) -> Baseline:
    """A new, unfitted method by its name."""
    if name not in REGISTRY:
        raise OptionError(f"there is no method {name!r}; there are {', '.join(REGISTRY)}")
    module, _, attribute = REGISTRY[name].partition(":")
    made: Baseline = getattr(import_module(f".{module}", __name__), attribute)()
    return made


__all__ = ["REGISTRY", "Baseline", "Role", "Rotated", "Searching", "baseline"]
