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
    assert loaded_by("from typer.testing import CliRunner\nfrom adawidth.cli.app import app\nCliRunner().invoke(app, ['--help'])") == set()


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


def run_without(code: str, *packages: str) -> str:
    """What a fresh Python prints and logs where these packages can't be imported."""
    block = "".join(f"sys.modules[{name!r}] = None\n" for name in packages)
    done = subprocess.run([sys.executable, "-c", f"import sys\n{block}{code}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


FIT = """
from adawidth import AdaWidth, load_dataset
data = load_dataset({folder!r})
model = AdaWidth.fit(data, recipe={recipe!r})
model.save({out!r})
hits = AdaWidth.load({out!r}).index(data.documents).search(data.queries_of("test"), k=10)
assert len(hits) == 60
print("chosen", AdaWidth.load({out!r}).rotation.kind)
"""


@pytest.mark.parametrize("recipe", ["pca", "kyfan", "identity"])
def test_closed_forms_need_neither_torch_nor_lightgbm(dataset_folder: Path, tmp_path: Path, recipe: str) -> None:
    said = run_without(FIT.format(folder=str(dataset_folder), recipe=recipe, out=str(tmp_path / "m")), "torch", "lightgbm")
    assert f"chosen {recipe}" in said
    assert "torch" not in said.lower()
    assert said.count("lightgbm is not installed: no router is fitted") == 1


def test_auto_without_torch_takes_a_closed_form_and_warns_once(dataset_folder: Path, tmp_path: Path) -> None:
    said = run_without(FIT.format(folder=str(dataset_folder), recipe="auto", out=str(tmp_path / "m")), "torch")
    assert "chosen kyfan" in said
    assert said.count("PyTorch is not installed") == 1
    assert "No learned rotation" not in said


@pytest.mark.parametrize(
    "call",
    [
        "AdaWidth.fit(x, x, recipe='paper')",
        "AdaWidth.fit(x, x, {0: {0: 1}, 1: {1: 1}}, recipe='pca', query_map=True)",
        "AdaWidth.fit(x, recipe='pca').refit(x, x, {0: {0: 1}, 1: {1: 1}})",
        "baseline('dense')",
    ],
)
def test_learning_without_torch_says_what_to_install(call: str) -> None:
    code = f"""
import numpy as np
from adawidth import AdaWidth
from adawidth.baselines import baseline
from adawidth.errors import OptionalDependencyError
x = np.eye(32, dtype=np.float32)
try:
    {call}
except OptionalDependencyError as error:
    print("refused:", error)
"""
    assert "refused: this needs the package torch, which is not installed: pip install 'adawidth[train]'" in run_without(code, "torch")


def test_a_closed_form_loads_no_torch(dataset_folder: Path) -> None:
    code = f"from adawidth import AdaWidth, load_dataset\nAdaWidth.fit(load_dataset({str(dataset_folder)!r}), recipe='kyfan')"
    assert "torch" not in loaded_by(code)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
        ("haystack", "haystack", "haystack"),
        ("mteb", "mteb", "mteb"),
        ("sklearn", "sklearn", "sklearn"),
        ("ir_datasets", "ir_datasets", "ir"),
    ],
)
def test_an_integration_without_its_library_says_what_to_install(module: str, package: str, extra: str) -> None:
    code = f"""
try:
    import adawidth.integrations.{module}
except ImportError as error:
    print("refused:", error)
"""
    assert f"which is not installed: pip install 'adawidth[{extra}]'" in run_without(code, package)
