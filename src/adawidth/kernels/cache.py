"""Where compiled code is kept: beside the package or in the user's cache folder, as numba does; where neither can be written (a
read-only install without a home), in a folder of the user's own among the temporary files."""

import os
import stat
import tempfile
from pathlib import Path

from numba import config
from numba.core.caching import FunctionCache

from ..errors import ArtifactError


def prepare() -> None:
    """Finds a folder for compiled code, before numba looks for one. Code of a folder that others can write is never loaded."""
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
