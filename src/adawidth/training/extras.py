"""What only the `train` extra installs: PyTorch for learned rotations and query maps, LightGBM for the router."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from ..errors import OptionalDependencyError

log = logging.getLogger("adawidth")


def installed(package: str) -> bool:
    """Whether a package can be imported; it is not loaded."""
    return find_spec(package) is not None


def require(package: str) -> None:
    """Raises where a package is missing: called before any work begins."""
    if not installed(package):
        raise OptionalDependencyError(package, "train")


def router_possible() -> bool:
    """Whether LightGBM is there; warns if not, since the model then has no router."""
    if not installed("lightgbm"):
        log.warning("lightgbm is not installed: no router is fitted (the default policy needs none); pip install 'adawidth[train]'")
        return False
    return True
