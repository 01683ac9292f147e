"""Readers that may not write to the folder, readers that stay, and readers that are forked."""

import gc
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from adawidth.errors import AdaWidthError, ArtifactError
from adawidth.index import IndexFolder
from small_index import DOCUMENTS, vectors

NOBODY = 65_534
LOG = "manifest.sqlite-wal"


@pytest.fixture
def shared(filled: Path) -> Iterator[Path]:
    """An index that anyone may read and only its owner may change."""
    if os.getuid():
        pytest.skip("only root can become another user")
    folder = Path(tempfile.mkdtemp(prefix="adawidth-test-"))
    folder.chmod(0o755)
    shutil.move(filled, folder / "shared.index")
    yield folder / "shared.index"
    shutil.rmtree(folder)


class Other:
    """A process of another user that has the index open; it does what it is told."""

    def __init__(self, path: Path) -> None:
        (mine, self._say), (self._hear, his) = os.pipe(), os.pipe()
        self.process = os.fork()
        if not self.process:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                index: list[IndexFolder] = []
                while (verb := os.read(mine, 1)) != b"q":
                    os.write(his, self._done(path, index, verb).encode()[:4_000])
            finally:
                os._exit(0)
        os.close(mine)
        os.close(his)

    def _done(self, path: Path, index: list[IndexFolder], verb: bytes) -> str:
        try:
            if verb == b"o":
                index[:] = [IndexFolder(path)]
            elif verb == b"r":
                index[0].refresh()
            elif verb == b"w":
                index[0].remove(["d1"])
            index[0].view.manifest.check()
            every = index[0].view.documents.describe(np.flatnonzero(index[0].view.alive).tolist())
            return f"{len(index[0])} {len(every)}"
        except AdaWidthError as error:
            return str(error)
        except BaseException as error:
            return repr(error)

    def asks(self, verb: str) -> str:
        os.write(self._say, verb.encode())
        return os.read(self._hear, 4_096).decode()

    def ends(self) -> None:
        os.write(self._say, b"q")
        os.waitpid(self.process, 0)


@pytest.mark.parametrize("state", ["clean", "owner has it open", "owner was killed", "log without shared memory"])
def test_a_reader_without_the_right_to_write_sees_one_commit_until_it_refreshes(shared: Path, state: str) -> None:
    owner = IndexFolder(shared)
    if state == "clean":
        owner.close()
    elif state != "owner has it open":
        owner.close()
        script = f"""
import os, sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from small_index import vectors
from adawidth.index import IndexFolder
reader, index = IndexFolder({str(shared)!r}), IndexFolder({str(shared)!r})
index.add(vectors(10, seed=4), [f"k{{i}}" for i in range(10)])
os._exit(0)
"""
        subprocess.run([sys.executable, "-c", script], check=True)
        assert (shared / LOG).stat().st_size
        if state != "owner was killed":
            (shared / "manifest.sqlite-shm").unlink()
    count = DOCUMENTS + (10 if state in ("owner was killed", "log without shared memory") else 0)
    other = Other(shared)
    try:
        assert other.asks("o") == f"{count} {count}"
        with IndexFolder(shared) as writer:
            writer.remove([f"d{i}" for i in range(50)])
            writer.compact()
            writer.add(vectors(20, seed=3), [f"n{i}" for i in range(20)])
            assert other.asks("c") == f"{count} {count}"
            assert other.asks("r") == f"{count - 30} {count - 30}"
            writer.remove(["n1"])
        assert other.asks("c") == f"{count - 30} {count - 30}"
        assert other.asks("r") == f"{count - 31} {count - 31}"
        assert "can't be written to" in other.asks("w")
    finally:
        other.ends()
    owner.close()
    with IndexFolder(shared) as index:
        assert len(index) == count - 31


@pytest.mark.parametrize("changed", [False, True])
def test_forked_readers_read_on_or_say_why_not(filled: Path, changed: bool) -> None:
    """SQLite's locks are not inherited: what a child reads must not depend on its parent's."""
    index = IndexFolder(filled)
    (hear, say), (wait, go) = os.pipe(), os.pipe()
    if not (child := os.fork()):
        said = []
        try:
            os.close(go)
            os.read(wait, 1)
            for call in (index.documents, lambda ids: index.refresh(), lambda ids: index.documents(ids[1::2]), index.remove):
                try:
                    said.append(str(call([f"d{i}" for i in range(DOCUMENTS)])))
                except AdaWidthError as error:
                    said.append(str(error))
        except BaseException as error:
            said.append(repr(error))
        finally:
            with os.fdopen(say, "w") as pipe:
                pipe.write("\n".join(said))
            os._exit(0)
    os.close(wait)
    os.close(say)
    index.close()
    if changed:
        with IndexFolder(filled) as writer:
            writer.remove([f"d{i}" for i in range(0, DOCUMENTS, 2)])
            writer.compact()
    os.close(go)
    with os.fdopen(hear) as pipe:
        first, refreshed, rest, removed = pipe.read().split("\n")
    os.waitpid(child, 0)
    if changed:
        assert "this process was forked at commit 1, it is 3 now: refresh the index" in first
    else:
        assert first.count("Document(") == DOCUMENTS
    assert refreshed == str(changed)
    assert rest.count("Document(") == DOCUMENTS // 2
    assert "this process was forked from one that has the index open" in removed
    with IndexFolder(filled) as again:
        assert len(again) == (DOCUMENTS // 2 if changed else DOCUMENTS)


def test_no_file_stays_open_without_the_garbage_collector(filled: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count(".segment")

    gc.collect()
    gc.disable()
    try:
        before = opened(), mapped()
        for number in range(10):
            with IndexFolder(filled) as index:
                index.update(vectors(3, seed=number), ["a", "b", "c"])
                index.view.where("year > 2000")
                index.documents(["d1"])
            del index
            broken = filled.parent / "broken"
            shutil.copytree(filled, broken)
            next(broken.glob("*.segment")).unlink()
            with pytest.raises(ArtifactError):
                IndexFolder(broken)
            shutil.rmtree(broken)
        assert (opened(), mapped()) == before
    finally:
        gc.enable()


def committed(folder: Path, count: int, between: Callable[[], object] = lambda: None) -> list[int]:
    """The size of the log after each of some small commits."""
    sizes = []
    with IndexFolder(folder) as writer:
        for number in range(count):
            writer.update(vectors(1, seed=number), ["d7"], texts=["x" * 2_000])
            between()
            log = folder / LOG
            sizes.append(log.stat().st_size if log.exists() else 0)
    return sizes


def test_the_log_begins_anew_without_other_readers(filled: Path) -> None:
    assert max(committed(filled, 60)) < 100_000


def test_the_log_is_emptied_once_a_reader_that_stayed_is_gone(filled: Path) -> None:
    with IndexFolder(filled):
        assert committed(filled, 20)[-1] > 500_000
    assert committed(filled, 3)[-1] < 100_000


@pytest.mark.slow
def test_the_log_stays_bounded_under_readers_that_refresh_in_turn(filled: Path) -> None:
    """At every moment some reader needs the log, so that it can restart only when the writer waits for them."""
    stop = threading.Event()

    def refreshing() -> None:
        with IndexFolder(filled) as reader:
            while not stop.wait(0.01):
                reader.refresh()

    threads = [threading.Thread(target=refreshing) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        sizes = committed(filled, 250)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert max(sizes) < 8_000_000


def test_files_are_as_readable_as_the_folder(filled: Path) -> None:
    with IndexFolder(filled) as index:
        index.add(vectors(1, seed=4), ["new"])
        for file in filled.glob("manifest.sqlite*"):
            assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((filled / "manifest.sqlite").stat().st_mode)
