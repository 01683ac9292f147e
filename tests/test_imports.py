"""What is loaded when: heavy packages only where they are needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from adawidth import AdaWidth
from adawidth.data import Dataset

HEAVY = ("torch", "lightgbm", "sklearn", "matplotlib", "pandas", "transformers", "sentence_transformers", "tokenizers", "pyarrow")


def loaded_by(code: str) -> set[str]:
    """Which heavy packages a fresh Python has loaded after running this."""
    script = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import adawidth") == set()


def test_the_public_names_load_nothing_heavy() -> None:
    assert loaded_by("import adawidth\nfor name in adawidth.__all__: getattr(adawidth, name)") == set()


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by("from typer.testing import CliRunner\nfrom adawidth.cli import app\nCliRunner().invoke(app, ['--help'])") == set()


def test_nothing_but_the_index_on_disk_needs_linux(collection: Dataset, dataset_folder: Path, tmp_path: Path) -> None:
    """Elsewhere there is no fcntl: models load and documents in memory are searched all the same; writing to a folder says why not."""
    pytest.importorskip("torch")
    AdaWidth.fit(collection, recipe="pca").save(tmp_path / "m.model")
    code = f"""
import sys
sys.modules.update(dict.fromkeys(["fcntl", "resource", "pwd", "grp", "termios"]))
import adawidth
from adawidth import AdaWidth, load_dataset
for name in adawidth.__all__: getattr(adawidth, name)
data, model = load_dataset({str(dataset_folder)!r}), AdaWidth.load({str(tmp_path / "m.model")!r})
assert len(model.index(data.documents).search(data.queries_of("test"), k=10)) == 60
try:
    model.index(data.documents, path={str(tmp_path / "x.index")!r})
except adawidth.AdaWidthError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "can't be locked on this system" in done.stdout


def test_the_static_encoder_loads_neither_torch_nor_transformers() -> None:
    pytest.importorskip("wordllama")
    code = "from adawidth.encoders import load_encoder\nassert load_encoder('wordllama').encode(['text'], 'query').shape == (1, 256)"
    assert loaded_by(code) == {"tokenizers"}


def test_searching_with_a_saved_model_loads_nothing_heavy(collection: Dataset, dataset_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    AdaWidth.fit(collection, recipe="pca").save(tmp_path / "m.model")
    code = f"""
from adawidth import AdaWidth, load_dataset
data = load_dataset({str(dataset_folder)!r})
hits = AdaWidth.load({str(tmp_path / "m.model")!r}).index(data.documents).search(data.queries_of("test"), k=10)
assert len(hits) == 60 and hits.mean_width > 0
"""
    assert loaded_by(code) == set()
