"""Nothing half-written ever stands under a final name."""

import errno
import os
from pathlib import Path

import pytest

from adawidth.errors import DataError
from adawidth.formats import atomic_file
from adawidth.formats.files import write_lines


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    with atomic_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def fail_after(error: type[BaseException], _: object) -> None:
    raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_file_that_fails_leaves_the_old_one_and_nothing_else(error: type[BaseException], tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    with pytest.raises(error), atomic_file(target) as file:
        fail_after(error, file.write(b"half"))
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_lines(tmp_path / "ours", ["text"])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"x.txt: not written, the disk is full: free some space, or choose another path"):
        write_lines(tmp_path / "x.txt", ["text"])
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x.txt: not written, No such file or directory"):
        write_lines(tmp_path / "nowhere" / "x.txt", ["text"])


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines("x.txt", ["text"])
    assert (tmp_path / "x.txt").read_text() == "text\n"


def test_gzipped_text_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_lines(tmp_path / name, ["one", "two"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
