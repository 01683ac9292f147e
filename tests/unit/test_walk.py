"""The walk of a query, as CONTRIBUTING.md shows it: how many files and calls of our own lie between `search` and the kernel."""

import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import adawidth
from adawidth import AdaWidth, Index
from adawidth.data import unit

HOME = Path(adawidth.__file__).parent


def walk(index: Index, query: np.ndarray) -> list[tuple[str, str]]:
    """The file and the name of every function of ours that one search calls."""
    called: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).is_relative_to(HOME):
            called.append((str(Path(code.co_filename).relative_to(HOME)), code.co_qualname))

    sys.setprofile(note)
    try:
        index.search(query)
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize("storage", ["flat", "pq4"])
def test_a_query_takes_few_files_and_few_calls(storage: str, tmp_path: Path) -> None:
    rows = unit(np.random.default_rng(0).standard_normal((4_000, 96)) * np.exp(-np.arange(96) / 30))
    index = AdaWidth.fit(rows[:1_000], rows[1_000:1_100], recipe="pca").index(rows, tmp_path / "i", storage=storage)  # type: ignore[arg-type]
    for row in range(50):
        index.search(rows[row])
    called = walk(index, rows[7])
    assert called[-1] in (("kernels/rescore.py", "taper"), ("index/rescore.py", "Rescorer.answer"))  # 3.13 tells nothing of compiled code
    assert len(called) <= 20, called
    assert len({file for file, _ in called if not file.startswith("kernels/")}) <= 7, called
