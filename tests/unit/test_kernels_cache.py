"""Compiled code finds a folder on a read-only install without a home, and none of others' making."""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.core.event import Event, Listener, install_listener

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


def test_code_is_compiled_again_when_a_file_changes_that_it_imports(tmp_path: Path) -> None:
    kernels = tmp_path / "adawidth" / "kernels"
    kernels.mkdir(parents=True)
    for name in ("__init__.py", "kernels/__init__.py", "kernels/ahead.py", "kernels/cache.py", "kernels/options.py", "errors.py"):
        shutil.copy(Path(adawidth.__file__).parent / name, tmp_path / "adawidth" / name)
    (kernels / "outer.py").write_text(
        "from numba import njit\nfrom .inner import inner\n\n@njit(cache=True)\ndef outer(x):\n    return 10 * inner(x)\n"
    )
    program = "from adawidth.kernels.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}  # Python itself tells files apart by the second
    found = []
    for added in (1, 1, 2, 2):
        (kernels / "inner.py").write_text(f"from numba import njit\n\n@njit\ndef inner(x):\n    return x + {added}\n")
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    assert found == [["20", "0"], ["20", "1"], ["30", "0"], ["30", "1"]]
    assert list((kernels / "__pycache__").glob("outer.*.nbc"))


def test_garbage_is_not_collected_while_a_kernel_is_compiled() -> None:
    found: list[bool] = []

    class Seen(Listener):
        def on_start(self, event: Event) -> None:
            found.append(gc.isenabled())

        def on_end(self, event: Event) -> None:
            pass

    def function(x: Any) -> Any:
        return x + 1

    for module in ("adawidth.kernels.new", "elsewhere"):
        function.__module__ = module
        compiled: Any = njit(function)
        with install_listener("numba:compile", Seen()):
            assert compiled(1) == 2
            with pytest.raises(TypingError):
                compiled("x")
        assert gc.isenabled()
    assert found == [False, False, True, True]
