"""System calls that fail when told to: a library built from inject.c, and a way to run cases of harness.py under it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
Run = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def injector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """inject.c, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("faults are injected by a small C library, and there is no C compiler (cc)")
    library = tmp_path_factory.mktemp("inject") / "inject.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "inject.c"), "-ldl"], check=True)
    return library


@pytest.fixture
def tried(injector: Path, tmp_path: Path) -> Run:
    """Runs cases and gives their results."""

    def run(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        command = [sys.executable, str(HERE / "harness.py"), str(tmp_path)]
        environment = {**os.environ, "LD_PRELOAD": str(injector)}
        done = subprocess.run(command, input=json.dumps(list(cases)), capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return list(json.loads(done.stdout))

    return run
