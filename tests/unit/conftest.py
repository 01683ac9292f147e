"""A small index on disk for the tests of index/."""

import shutil
from pathlib import Path

import pytest
from small_index import empty, fill


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexes") / "filled.index"
    with empty(path) as index:
        fill(index)
    return path


@pytest.fixture
def filled(_filled: Path, tmp_path: Path) -> Path:
    """The folder of an index with 300 documents; a test may change it."""
    return Path(shutil.copytree(_filled, tmp_path / "filled.index"))
