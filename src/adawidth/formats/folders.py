"""Folders that appear whole or not at all, and replace nothing but what AdaWidth wrote.

A folder is built under a hidden name beside its own, locked while it is built, and then takes its name in one rename. What a killed
process left under such a name is removed by the next build of the same name: the system has freed its lock.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ..errors import OptionError
from ..types import StrPath
from .files import hidden_name, sync, written

try:
    import fcntl
except ImportError:  # not on Windows: nothing is swept there
    fcntl = None  # type: ignore[assignment]

RENAME_EXCHANGE = 2  # of Linux's renameat2
AT_FDCWD = -100
PROBE = bytes(65_536)


@dataclass(frozen=True)
class Kind:
    """A kind of folder that AdaWidth writes, and how it is known again: by what a JSON file in it says, and by holding nothing else."""

    name: str  # as messages call it
    mark: str  # the JSON file
    field: str  # that this file must have,
    value: str | None = None  # with this value, if it matters
    entries: tuple[str, ...] = ()  # what else it may hold, as patterns
    lock: Callable[[Path], AbstractContextManager[object]] = nullcontext  # held while it is replaced

    def check(self, path: Path) -> None:
        """Refuses to replace what is no such folder, or holds something that AdaWidth did not write."""
        refused = f"{path}: not replaced, as it is not {self.name} that AdaWidth wrote: choose another path (--out), or move it away"
        if path.is_symlink() or not path.is_dir():
            raise OptionError(refused)
        found = sorted(entry.name for entry in path.iterdir())
        if found and not self._says(path / self.mark):
            raise OptionError(refused)
        foreign = [name for name in found if not any(fnmatch(name, known) for known in (self.mark.split("/")[0], *self.entries))]
        if foreign:
            raise OptionError(
                f"{path}: not replaced, as it holds {foreign[0]}, which AdaWidth did not write ({len(foreign)} of {len(found)} entries): "
                "move that away, or choose another path (--out)"
            )

    def _says(self, file: Path) -> bool:
        try:
            content = json.loads(file.read_bytes()) if file.is_file() else None
        except (OSError, ValueError):
            return False
        return isinstance(content, dict) and self.field in content and self.value in (None, content[self.field])


def refuse_out(path: StrPath, kind: Kind, *, force: bool = False, inputs: Collection[StrPath | None] = ()) -> None:
    """Refuses, before any work is done, a folder that can't be written, or that would replace an input or what AdaWidth did not write."""
    path = Path(path)
    _sweep(path)
    _check(path, kind, force, inputs)
    with written(path), _building(path) as building:
        (building / "probe").write_bytes(PROBE)


@contextmanager
def atomic_folder(path: StrPath, kind: Kind, *, force: bool = False, inputs: Collection[StrPath | None] = ()) -> Iterator[Path]:
    """An empty folder to fill. It becomes `path` only if the block succeeds.

    A `path` that exists is refused without `force`. With it, a folder of the same kind is replaced, unless it is an input or holds
    one; whatever fails, either the old or the new one is there.
    """
    path = Path(path)
    _sweep(path)
    _check(path, kind, force, inputs)
    with ExitStack() as stack:
        if path.exists():
            stack.enter_context(kind.lock(path))
        stack.enter_context(written(path))
        building = stack.enter_context(_building(path))
        yield building
        for folder, _, files in os.walk(building):
            for name in files:
                sync(Path(folder, name))
            sync(Path(folder))
        _check(path, kind, force, inputs)  # others may have written it meanwhile
        _swap(building, path)
        sync(building.parent)


def _check(path: Path, kind: Kind, force: bool, inputs: Collection[StrPath | None]) -> None:
    if not os.path.lexists(path):
        return
    if not force:
        raise OptionError(f"{path} exists: choose another path (--out), or replace it with force (--force)")
    for given in inputs:
        if given is not None and Path(given).resolve().is_relative_to(path.resolve()):
            raise OptionError(f"{path}: not replaced, as {given} is read from it: choose another path (--out)")
    kind.check(path)


@contextmanager
def kept_if_used(folder: Path) -> Iterator[None]:
    """Makes a folder and its missing parents; at the end, removes those that are still empty."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        with suppress(OSError):  # the first that is not empty
            for each in made:
                each.rmdir()


@contextmanager
def _building(path: Path) -> Iterator[Path]:
    """A hidden folder beside `path`, locked; gone at the end if it has not become `path`."""
    building = hidden_name(path)
    unlocked = building.with_suffix(".new")  # a name that no one sweeps
    with kept_if_used(building.parent):
        try:
            unlocked.mkdir()
            with _locked(unlocked):
                os.rename(unlocked, building)
                yield building
        finally:
            for folder in (building, unlocked):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Locks a folder until the block, or the process, ends; whether that was possible."""
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _swap(building: Path, path: Path) -> None:
    """Renames `building` to `path`. What was there is removed, or gets the name of `building`."""
    if not os.path.lexists(path):
        os.rename(building, path)
    elif not _exchanged(building, path):
        former = building.with_suffix(".old")
        with _locked(path):
            os.rename(path, former)
            try:
                os.rename(building, path)
            except BaseException:
                os.rename(former, path)
                raise
            shutil.rmtree(former)


def _exchanged(one: Path, other: Path) -> bool:
    """Swaps two names in one step; False where the system or the disk can't."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def _sweep(path: Path) -> None:
    """Removes what killed builds of this name left behind, and puts back what one had moved away, if the name is free."""
    place = Path(os.path.abspath(path))
    left = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{32}}\.(tmp|old)")
    with suppress(OSError):
        for entry in sorted(place.parent.iterdir()):
            if left.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
                with _locked(entry) as dead:
                    if dead and entry.suffix == ".old" and not os.path.lexists(place):
                        os.rename(entry, place)
                    elif dead:
                        shutil.rmtree(entry, ignore_errors=True)
