"""Where compiled code is kept: beside the package or in the user's cache folder, as numba does; where neither can be written (a
read-only install without a home), in a folder of the user's own among the temporary files.

Compiled code has the functions that it calls within it. So it is loaded only as long as none of the files here has changed; numba alone
would look at one file, the function's own.
"""

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from numba import config
from numba.core import dispatcher
from numba.core.caching import CacheImpl, FunctionCache, InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator
from numba.core.event import register

from ..errors import ArtifactError
from .ahead import HERE, Ahead, sources
from .options import Undisturbed


class Together:
    """For numba's locators: the code of functions in this folder is as old as the newest of its files."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The locator of a function; none of others' functions."""
        return super().from_function(py_func, py_file) if Path(py_file).parent == HERE else None  # type: ignore[misc]

    def get_source_stamp(self) -> bytes:
        """What must not have changed since the code was compiled."""
        return sources()


class Provided(Together, UserProvidedCacheLocator):
    """Keeps code in NUMBA_CACHE_DIR."""


class Beside(Together, InTreeCacheLocator):
    """Keeps code in `__pycache__`."""


class AtHome(Together, UserWideCacheLocator):
    """Keeps code in the user's cache folder."""


def prepare() -> None:
    """Finds a folder for compiled code, before numba looks for one. Code of a folder that others can write is never loaded."""
    register("numba:compile", Undisturbed())  # type: ignore[no-untyped-call]
    CacheImpl._locator_classes[:0] = [Provided, Beside, AtHome]
    dispatcher.FunctionCache = Ahead  # type: ignore[attr-defined]
    if cacheable():
        return
    try:
        config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(own_folder(Path(tempfile.gettempdir())))  # type: ignore[attr-defined]
    except OSError as error:
        raise ArtifactError(f"there is no folder for compiled code ({error}): set NUMBA_CACHE_DIR to one that can be written") from None


def cacheable() -> bool:
    """Whether numba finds a folder that it can write."""
    try:
        FunctionCache(prepare)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    return True


def own_folder(parent: Path) -> Path:
    """A folder that this user alone can read and write: the same each time, or a new one where someone else has made that."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = parent / f"adawidth-numba-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="adawidth-numba-", dir=parent))
