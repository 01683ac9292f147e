"""A folder appears whole or not at all, and takes the place of nothing but what AdaWidth wrote."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adawidth.errors import DataError, OptionError
from adawidth.formats import Kind, atomic_folder, folders, refuse_out

KIND = Kind("a thing", "thing.json", "format", "thing", ("deep", "*.part"))


def fill(folder: Path, text: str) -> None:
    (folder / "thing.json").write_text(json.dumps({"format": "thing"}))
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text(text)


def content(folder: Path) -> str:
    return (folder / "deep" / "file").read_text()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder that AdaWidth wrote."""
    with atomic_folder(tmp_path / "thing", KIND) as folder:
        fill(folder, "old")
    return tmp_path / "thing"


def test_it_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "some" / "thing"
    with atomic_folder(target, KIND) as folder:
        fill(folder, "new")
        assert not target.exists()
        assert folder.parent == target.parent  # the same disk
    assert content(target) == "new"
    assert list(target.parent.iterdir()) == [target]


def test_it_is_replaced_only_by_force(old: Path) -> None:
    with pytest.raises(OptionError, match=r"thing exists: choose another path \(--out\), or replace it"), atomic_folder(old, KIND):
        pytest.fail("the block must not run")
    with atomic_folder(old, KIND, force=True) as folder:
        assert not list(folder.iterdir())
        fill(folder, "new")
        assert content(old) == "old"
    assert content(old) == "new"
    assert list(old.parent.iterdir()) == [old]


def file(path: Path) -> None:
    path.write_text("precious")


def foreign(path: Path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("precious")


def other_kind(path: Path) -> None:
    path.mkdir()
    (path / "thing.json").write_text(json.dumps({"format": "another"}))


def no_json(path: Path) -> None:
    path.mkdir()
    (path / "thing.json").write_text("precious")


def with_more(path: Path) -> None:
    with atomic_folder(path, KIND) as folder:
        fill(folder, "old")
    (path / "notes.txt").write_text("precious")


def link(path: Path) -> None:
    with_more(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("there", [file, foreign, other_kind, no_json, with_more, link])
def test_what_is_not_ours_is_never_replaced(there: Callable[[Path], None], tmp_path: Path) -> None:
    target = tmp_path / "target"
    there(target)
    before = state(tmp_path)
    with pytest.raises(OptionError, match="target: not replaced, as it"):
        refuse_out(target, KIND, force=True)
    with pytest.raises(OptionError, match="target: not replaced, as it"), atomic_folder(target, KIND, force=True):
        pytest.fail("the block must not run")
    assert state(tmp_path) == before


def test_an_empty_folder_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "thing").mkdir()
    with atomic_folder(tmp_path / "thing", KIND, force=True) as folder:
        fill(folder, "new")
    assert content(tmp_path / "thing") == "new"


@pytest.mark.parametrize("read", ["thing", "thing/deep/file", "way/../thing"])
def test_an_input_is_never_replaced(read: str, old: Path) -> None:
    (old.parent / "way").mkdir()
    given = old.parent / read
    with pytest.raises(OptionError, match=r"thing: not replaced, as .* is read from it"):
        refuse_out(old, KIND, force=True, inputs=[None, given])
    with pytest.raises(OptionError, match="is read from it"), atomic_folder(old, KIND, force=True, inputs=[given]):
        pytest.fail("the block must not run")
    assert content(old) == "old"


def test_beside_and_within_an_input_is_fine(old: Path) -> None:
    refuse_out(old, KIND, force=True, inputs=[old.parent, old.parent / "thing2"])


def test_an_out_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path / "file")
    with pytest.raises(DataError, match=r"thing: not written, .*file is a file: choose another path"):
        refuse_out(tmp_path / "file" / "thing", KIND)
    refuse_out(tmp_path / "some" / "where" / "thing", KIND)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]  # it leaves nothing
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match=r"thing: not written, the disk is full"):
        refuse_out(tmp_path / "thing", KIND)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fail_after(error: type[BaseException], _: object) -> None:
    raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_one_that_fails_keeps_the_old(error: type[BaseException], old: Path) -> None:
    with pytest.raises(error), atomic_folder(old, KIND, force=True) as folder:
        fail_after(error, fill(folder, "half"))
    assert content(old) == "old"
    assert list(old.parent.iterdir()) == [old]


def test_one_that_fails_leaves_no_parents(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "some" / "where" / "thing", KIND) as folder:
        fail_after(RuntimeError, fill(folder, "half"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("exchanges", [True, False])
def test_one_whose_swap_fails_is_put_back(exchanges: bool, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_rename = os.rename

    def fails(one: Path, other: Path) -> None:
        if Path(other) == old and one.suffix == ".tmp":
            full()
        true_rename(one, other)

    monkeypatch.setattr(os, "rename", fails)
    monkeypatch.setattr(folders, "_exchanged", full if exchanges else lambda *_: False)
    with pytest.raises(DataError, match="the disk is full"), atomic_folder(old, KIND, force=True) as folder:
        fill(folder, "new")
    assert content(old) == "old"
    assert list(old.parent.iterdir()) == [old]


def test_a_system_without_exchange(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_exchanged", lambda *_: False)
    with atomic_folder(old, KIND, force=True) as folder:
        fill(folder, "new")
    assert content(old) == "new"
    assert list(old.parent.iterdir()) == [old]


def test_the_lock_is_held_from_the_beginning(old: Path) -> None:
    held = []

    @contextmanager
    def lock(folder: Path) -> Iterator[None]:
        held.append(folder)
        yield
        held.remove(folder)

    kind = Kind("a thing", "thing.json", "format", "thing", ("deep",), lock=lock)
    with atomic_folder(old, kind, force=True) as folder:
        assert held == [old]
        fill(folder, "new")
    assert held == []
    with atomic_folder(old.with_name("further"), kind) as folder:
        assert held == []  # nothing to lock
        fill(folder, "new")


KILLED = """
import os, shutil, sys
from pathlib import Path
from adawidth.formats import atomic_folder, folders
from test_formats_folders import KIND, fill

at, exchanges, target = int(sys.argv[1]), sys.argv[2] == "True", Path(sys.argv[3])
steps = 0

def counted(true):
    def step(*arguments, **options):
        global steps
        steps += 1
        if steps == at:
            os._exit(9)
        return true(*arguments, **options)
    return step

os.rename, shutil.rmtree = counted(os.rename), counted(shutil.rmtree)
folders._exchanged = counted(folders._exchanged) if exchanges else lambda *_: False
with atomic_folder(target, KIND, force=True) as folder:
    fill(folder, "new")
"""


@pytest.mark.parametrize("exchanges", [True, False])
def test_killed_at_any_step(exchanges: bool, tmp_path: Path) -> None:
    """Renames, the exchange and removals are the steps; killed before each of them, then built again."""
    target, at, seen = tmp_path / "thing", 0, set()
    while True:
        at += 1
        with atomic_folder(target, KIND, force=True) as folder:
            fill(folder, "old")
        command = [sys.executable, "-c", KILLED, str(at), str(exchanges), str(target)]
        paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False, capture_output=True, text=True)
        assert done.returncode in (0, 9), done.stderr
        if exchanges:
            assert content(target) in ("old", "new")
        if done.returncode == 0:
            break
        if not target.exists():  # two renames, killed in between: the next build puts it back
            with pytest.raises(OptionError, match="exists"), atomic_folder(target, KIND):
                pytest.fail("the block must not run")
        seen.add(content(target))
        with atomic_folder(target, KIND, force=True) as folder:
            fill(folder, "newer")
        assert content(target) == "newer"
        assert [entry.name for entry in tmp_path.iterdir() if entry.suffix != ".new"] == ["thing"]  # what was left is gone
    assert at > 3
    assert seen == {"old", "new"}


def test_a_build_under_way_is_not_swept(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "thing", KIND) as slow:
        with atomic_folder(tmp_path / "thing", KIND) as quick:
            fill(quick, "quick")
        assert slow.is_dir()
        (tmp_path / "thing").rename(tmp_path / "moved")
        fill(slow, "slow")
    assert content(tmp_path / "thing") == "slow"


def test_what_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "thing"
    with pytest.raises(OptionError, match="thing exists"), atomic_folder(target, KIND):
        write(target, "quick")
    assert content(target) == "quick"
    with pytest.raises(OptionError, match="not replaced"), atomic_folder(target, KIND, force=True):
        (target / "thesis.tex").write_text("precious")
    assert content(target) == "quick"
    assert list(tmp_path.iterdir()) == [target]


def write(target: Path, text: str) -> None:
    with atomic_folder(target, KIND) as folder:
        fill(folder, text)


def test_what_others_hide_is_left(tmp_path: Path) -> None:
    hidden = [tmp_path / name for name in (".thing.tmp", ".thing.1234.tmp", f".another.{'0' * 32}.tmp")]
    for folder in hidden:
        folder.mkdir()
    with atomic_folder(tmp_path / "thing", KIND) as folder:
        fill(folder, "new")
    assert all(folder.is_dir() for folder in hidden)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with atomic_folder("thing", KIND, force=True) as folder:
            fill(folder, "new")
    assert content(tmp_path / "thing") == "new"
