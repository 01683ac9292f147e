"""Kernels that were compiled ahead are taken where they fit: this CPU, these sources, this package's functions."""

import subprocess
import sys
from pathlib import Path

import pytest
from numba import config, njit
from numba.core import dispatcher

from adawidth.kernels import ahead

ADD = "from numba import njit\n\n@njit(cache=True)\ndef add(x):\n    return x + 1\n"
LOADED = "from added import add; print(add(1), sum(add.stats.cache_hits.values()))"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ahead.levels.cache_clear()


def having(patch: pytest.MonkeyPatch, features: str, folder: Path) -> tuple[str, ...]:
    """The levels of a CPU that has these features."""
    for level in ("x86-64-v3", "x86-64-v4"):
        (folder / level).mkdir(exist_ok=True)
    patch.setattr(ahead, "COMPILED", folder)
    patch.setattr(ahead, "LEVELS", {"x86-64-v4": ahead.FOURTH, "x86-64-v3": ahead.THIRD})
    patch.setattr(ahead.llvm, "get_host_cpu_features", lambda: dict.fromkeys(features.replace("+", "").split(","), True) | {"sse4a": False})
    ahead.levels.cache_clear()
    return ahead.levels()


def test_a_cpu_has_the_levels_whose_features_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert having(monkeypatch, ahead.FOURTH + ",+gfni", tmp_path) == ("x86-64-v4", "x86-64-v3")
    assert having(monkeypatch, ahead.FOURTH.replace("+avx512bw,", ""), tmp_path) == ("x86-64-v3",)
    assert having(monkeypatch, ahead.THIRD.replace("+f16c,", ""), tmp_path) == ()


def test_who_names_a_cpu_gets_code_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    assert having(monkeypatch, ahead.FOURTH, tmp_path) == ()


def test_without_compiled_code_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert having(monkeypatch, ahead.FOURTH, tmp_path) != ()
    monkeypatch.setattr(ahead, "COMPILED", tmp_path / "nowhere")
    ahead.levels.cache_clear()
    assert ahead.levels() == ()


def test_others_functions_are_compiled_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dispatcher.FunctionCache is ahead.Ahead  # type: ignore[attr-defined]
    monkeypatch.setattr(ahead, "levels", lambda: pytest.fail("compiled code was looked for"))
    assert njit(cache=True)(_negative)(3) == -3


def _negative(x: int) -> int:
    return -x


@pytest.mark.skipif(not ahead.LEVELS, reason="there are levels of x86-64 alone")
def test_code_of_other_sources_is_not_loaded(tmp_path: Path) -> None:
    """A function of a folder that stands for this package's: compiled ahead, loaded, and compiled anew once a source has changed."""
    (tmp_path / "added.py").write_text(ADD)
    program = f"""
import sys
from pathlib import Path
import adawidth.kernels
from adawidth.kernels import ahead, cache
sys.path.insert(0, {str(tmp_path)!r})
ahead.HERE = cache.HERE = Path({str(tmp_path)!r})
ahead.COMPILED = ahead.HERE / "compiled"
ahead.sources.cache_clear()
"""
    level = "x86-64-v3"
    if not _has(level):
        pytest.skip("this CPU lacks AVX2: no code is compiled for it ahead")

    def run(cache: Path, **environment: str) -> list[str]:
        variables = {
            "PATH": "/usr/bin:/bin",
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": ":".join(sys.path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", program + LOADED], env=variables | environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run(tmp_path / "made", NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES=ahead.LEVELS[level]) == ["2", "0"]
    (tmp_path / "compiled").mkdir()
    (made,) = (tmp_path / "made").rglob("*.nbc")
    made.parent.rename(tmp_path / "compiled" / level)
    assert run(tmp_path / "new") == ["2", "1"]
    assert not list((tmp_path / "new").rglob("*.nbc"))
    (tmp_path / "other.py").write_text("")  # a source more
    assert run(tmp_path / "new") == ["2", "0"]


def _has(level: str) -> bool:
    here = {f"+{name}" for name, has in ahead.llvm.get_host_cpu_features().items() if has}
    return here.issuperset(ahead.LEVELS[level].split(","))
