"""Compiled code finds a folder on a read-only install without a home, and none of others' making."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import adawidth
from adawidth.kernels.cache import own_folder

NOBODY = 65534
CODE = """
import numpy as np
from numba import config
from adawidth.kernels.topk import top_k
print(top_k(np.array([[1.0, 3.0, 2.0]], np.float32), np.arange(3), 2).tolist(), config.CACHE_DIR, sep="\\n")
"""


@pytest.fixture
def anyones() -> Iterator[Path]:
    """A folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
def test_a_read_only_install_without_a_home_compiles(anyones: Path) -> None:
    package, temporary = anyones / "install" / "adawidth", anyones / "temporary"
    shutil.copytree(Path(adawidth.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "bundled"))
    temporary.mkdir()
    as_other: list[str] = []
    if os.getuid() == 0:  # who may write anywhere
        as_other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        os.chown(temporary, NOBODY, NOBODY)
        if not shutil.which("setpriv") or subprocess.run([*as_other, sys.executable, "-c", ""]).returncode:
            pytest.skip("root can't run this Python as someone else here")
    for path in (package.parent, *package.parent.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    environment = {"PATH": os.environ["PATH"], "HOME": str(package), "TMPDIR": str(temporary), "PYTHONPATH": str(package.parent)}
    for _ in range(2):  # compiles, then loads what was compiled
        done = subprocess.run([*as_other, sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found, folder = done.stdout.splitlines()
        assert found == "[[1, 2]]"
        assert Path(folder).parent == temporary
        assert list(Path(folder).rglob("*.nbc"))
    assert len(list(temporary.iterdir())) == 1


def test_the_folder_is_the_users_alone_and_the_same_each_time(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert own_folder(tmp_path) == folder


@pytest.mark.parametrize("harm", ["writable by others", "a link", "someone else's"])
def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, harm: str) -> None:
    folder = own_folder(tmp_path)
    if harm == "writable by others":
        folder.chmod(0o770)
    elif harm == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    else:
        pytest.skip("only root can give a folder away")
    fresh = own_folder(tmp_path)
    assert fresh != folder
    assert fresh.stat().st_mode & 0o777 == 0o700
