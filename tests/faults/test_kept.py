"""Long attacks are taken up where they were left: benchmarks/kept.py."""

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """kept.py, as the scripts beside it import it."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("kept")


def test_parts_outlive_a_run_that_is_killed_in_a_line(script: Any, tmp_path: Path) -> None:
    out, options = tmp_path / "crash.json", {"seed": 1}
    kept = script.Kept(out, options, "crash.py")
    kept.add({"kills": 50})
    kept.add({"kills": 49})
    with kept.path.open("a") as file:
        file.write('{"kills": 4')
    again = script.Kept(out, options, "crash.py")
    assert again.parts == [{"kills": 50}, {"kills": 49}]
    again.add({"kills": 48})
    assert len(script.Kept(out, options, "crash.py").parts) == 3


@pytest.mark.parametrize("other", [({"seed": 2}, "crash.py"), ({"seed": 1}, "faults.py")])
def test_parts_of_other_options_or_other_code_are_dropped(script: Any, tmp_path: Path, other: tuple[dict[str, int], str]) -> None:
    script.Kept(tmp_path / "x.json", {"seed": 1}, "crash.py").add({"kills": 50})
    assert script.Kept(tmp_path / "x.json", *other).parts == []


def test_a_whole_result_is_begun_anew(script: Any, tmp_path: Path) -> None:
    kept = script.Kept(tmp_path / "x.json", {}, "crash.py")
    kept.add(1)
    kept.end()
    assert script.Kept(tmp_path / "x.json", {}, "crash.py").parts == []


def test_counts_and_lists_are_added_up(script: Any) -> None:
    parts = [{"cases": 2, "of": {"add": 1}, "problems": []}, {"cases": 3, "of": {"add": 1, "remove": 4}, "problems": ["x"]}]
    assert script.summed(parts) == {"cases": 5, "of": {"add": 2, "remove": 4}, "problems": ["x"]}
