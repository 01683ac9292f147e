"""Builds the package as setuptools does, and compiles the kernels into wheels, so that a first search does not wait for them.

The build backend of pyproject.toml. A small index of each storage is built and searched, which tells the types that kernels are called
with. Then they are compiled for these types and for each level of CPUs (kernels/ahead.py). On other CPUs, other versions of Python or
numba, and in editable installs, kernels are compiled when they are first called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta  # type: ignore[import-untyped]
from setuptools.build_meta import *  # type: ignore[import-untyped]  # noqa: F403  all hooks but those below

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
COMPILED = SOURCE / "adawidth" / "kernels" / "compiled"
KERNELS = """
import importlib, pickle, pkgutil
from numba.core.caching import NullCache
from numba.core.registry import CPUDispatcher
import adawidth.kernels
def kernels():
    for module in pkgutil.iter_modules(adawidth.kernels.__path__):
        for name, found in vars(importlib.import_module(f"adawidth.kernels.{module.name}")).items():
            if isinstance(found, CPUDispatcher) and found.py_func.__module__ == f"adawidth.kernels.{module.name}":
                if not isinstance(found._cache, NullCache):
                    yield f"{module.name}.{name}", found
"""
TYPES = (
    KERNELS
    + """
import numpy as np
from adawidth import AdaWidth, open_index
documents = np.random.default_rng(0).standard_normal((3_000, 160)).astype(np.float32)
model = AdaWidth.fit(documents[:500], recipe="pca")
indexes = [model.index(documents[:300])]
for storage in ("flat", "int8", "pq4", "ivf", "graph"):
    model.index(documents, f"{storage}.index", storage=storage, metadata=[{"n": i} for i in range(len(documents))]).close()
    indexes.append(open_index(f"{storage}.index"))
for index in indexes:
    for queries in (documents[:1], documents[:40]):
        for options in ({}, {"width": "full"}, {"where": "n < 1000"}, {"where": "n < 100"}, {"policy": "certify"}):
            if index is not indexes[0] or "where" not in options:
                index.search(queries, **options)
with open("types", "wb") as file:
    pickle.dump({name: kernel.signatures for name, kernel in kernels()}, file)
"""
)
COMPILE = (
    KERNELS
    + """
with open("types", "rb") as file:
    types = pickle.load(file)
for name, kernel in kernels():
    for signature in types[name]:
        kernel.compile(signature)
"""
)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What the package itself requires, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> Any:
    """A wheel for this version of Python, with compiled kernels; the source folder is left as it was."""
    tag = f"--python-tag=cp{sys.version_info.major}{sys.version_info.minor}"
    settings = {**(config_settings or {}), "--build-option": tag}
    try:
        compiled()
        return build_meta.build_wheel(wheel_directory, settings, metadata_directory)
    finally:
        shutil.rmtree(COMPILED, ignore_errors=True)


def compiled() -> None:
    """Compiles the kernels for each level."""
    sys.path.insert(0, str(SOURCE))
    from adawidth.kernels.ahead import LEVELS

    shutil.rmtree(COMPILED, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if LEVELS:
            _run(TYPES, folder, NUMBA_CACHE_DIR="cache")
        for level, features in LEVELS.items():
            _run(COMPILE, folder, NUMBA_CACHE_DIR=level, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES=features)
            (COMPILED / level).mkdir(parents=True)
            for file in (folder / level).rglob("*.nb[ci]"):
                shutil.copyfile(file, COMPILED / level / file.name)


def _run(program: str, folder: Path, **environment: str) -> None:
    """Runs a program of the package in another process, there."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCE), *sys.path)), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=variables, check=True)


if __name__ == "__main__":
    compiled()
