"""milvus-lite 2.5 asks pkg_resources for its own version, which setuptools has not had since 82: it is imported with a stand-in."""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType

from ..errors import OptionError


def prepare() -> None:
    """Imports milvus-lite, so that pymilvus finds it imported."""
    if "milvus_lite" in sys.modules:
        return
    if find_spec("milvus_lite") is None:
        raise OptionError("a file of Milvus needs milvus-lite: pip install 'milvus-lite==2.5.1', or use a server, milvus+http://host:19530")
    if find_spec("pkg_resources") is not None:
        import_module("milvus_lite")
        return
    stand_in = ModuleType("pkg_resources")
    vars(stand_in).update(get_distribution=metadata.distribution, DistributionNotFound=metadata.PackageNotFoundError)
    sys.modules["pkg_resources"] = stand_in
    try:
        import_module("milvus_lite")
    finally:
        del sys.modules["pkg_resources"]
