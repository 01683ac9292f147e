"""Every example runs, and what it prints is what it promises: scripts run here, notebooks in a kernel of their own.

Those that need an engine or an integration are with its tests, under its marker.
"""

import re
from collections.abc import Callable
from pathlib import Path
from runpy import run_path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
Run = Callable[..., str]
pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a script in a folder of its own, and gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def printed(name: str, *arguments: str) -> str:
        run_path(str(EXAMPLES / name))["main"](*arguments)
        return capsys.readouterr().out

    return printed


def numbers(pattern: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text)]


def test_own_vectors(run: Run) -> None:
    printed = run("own_vectors.py")
    assert "3,037 documents of 384 coordinates" in printed
    answers = re.findall(r"^(\[.*\]) full width: (\[.*\])$", printed, re.MULTILINE)
    assert len(answers) == 5
    assert sum(ours == exact for ours, exact in answers) >= 4
    assert numbers(r"read (\d+) of 384", printed)[0] < 192


def test_text_to_search(run: Run) -> None:
    printed = run("text_to_search.py")
    assert "against the rain -> [('Umbrella'" in printed
    assert "cup of tea -> [('Kettle'" in printed
    assert "in the hall, under 20: ['Umbrella']" in printed
    assert "after adding one: Raincoat" in printed


def test_without_labels(run: Run) -> None:
    kept = numbers(r"(\d\.\d+) of the top 10", printed := run("without_labels.py"))
    fixed, budget, quality, high = kept
    assert fixed < min(budget, quality)
    assert quality <= high
    assert max(numbers(r"([\d.]+) of 384", printed)) < 192


@pytest.mark.usefixtures("short_runs")
def test_new_labels(run: Run) -> None:
    printed = run("new_labels.py")
    assert "the index is untouched: True" in printed
    assert len(numbers(r"nDCG@10 (\d\.\d+)", printed)) == 2


def test_in_front_of_faiss(run: Run) -> None:
    alone, behind = numbers(r"recall@10 (\d\.\d+)", run("in_front_of_faiss.py"))
    assert alone < behind
    assert behind > 0.9


def test_plan_width(run: Run) -> None:
    lines = run("plan_width.py").splitlines()
    assert len(lines) == 6
    assert re.search(r"3,000 documents: \d+ coordinates", lines[0])
    assert "coordinates," not in lines[2], "a hundred million documents are too far away for an answer"


def test_there_are_eight_scripts_and_two_notebooks() -> None:
    tested = "".join(file.read_text() for file in Path(__file__).parent.rglob("test_*.py"))
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert len(scripts) >= 8
    assert len(NOTEBOOKS) == 2
    assert [script.name for script in scripts if f'"{script.name}"' not in tested] == []


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_runs(file: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_is_kept_without_output(file: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
