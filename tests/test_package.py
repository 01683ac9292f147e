"""What is published: a wheel that works in a clean environment without any extra, and an sdist that makes the same wheel."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from adawidth import __version__
from adawidth.kernels.ahead import LEVELS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("package")]  # one worker builds, once

ROOT = Path(__file__).parents[1]
COMPAT = ROOT / "tests" / "compat" / "0.1.0"
SEARCH = f"""
import sys
from pathlib import Path
import adawidth, numpy as np
from numba import config
from numba.core.event import RecordingListener, install_listener
from adawidth.kernels.ahead import levels
config.CACHE_DIR = str(Path("cache").absolute())
assert adawidth.__version__ == {__version__!r}
assert "site-packages" in adawidth.__file__, adawidth.__file__
queries = np.load("queries-64.npy")
assert adawidth.AdaWidth.load("models/pca").width == 64
compiling = RecordingListener()
with install_listener("numba:compile", compiling):
    hits = adawidth.open_index("indexes/pq4").search(queries, k=5)
if levels():  # else this CPU has none that the wheel was compiled for
    assert not compiling.buffer, [event.data["dispatcher"] for _, event in compiling.buffer]
    assert not list(Path("cache").rglob("*.nbc"))
assert len(hits.ids) == len(queries) and all(len(row) == 5 for row in hits.ids)
print(*(name for name in ("torch", "lightgbm", "sklearn", "matplotlib", "pyarrow") if name in sys.modules))
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it must succeed, and sees no package but its environment's."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from it, as a release would have them."""
    source, out = tmp_path_factory.mktemp("source") / "adawidth", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=source)
    return out


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it requires, and nothing else."""
    environment = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", environment)
    (wheel,) = dist.glob("*.whl")
    constraints = ROOT / "constraints.txt"
    run(environment / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--constraint", constraints, wheel)
    return environment / "bin"


def test_the_wheel_holds_the_package_and_its_licence(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"adawidth-{__version__}.dist-info/METADATA").decode()
    assert names >= {"adawidth/py.typed", "adawidth/cli/__init__.py", "adawidth/bundled/docstrings/embeddings/minilm/corpus.npy"}
    assert names >= {f"adawidth-{__version__}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")}
    for level in LEVELS:
        assert [name for name in names if name.startswith(f"adawidth/kernels/compiled/{level}/rescore.taper")]
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "tools", "docs"))]
    assert not [line for line in metadata.splitlines() if "](docs/" in line or "](benchmarks/" in line], "links that PyPI can't resolve"
    for line in ("License-Expression: Apache-2.0", "Project-URL: Changelog", "Requires-Dist: torch>=2.6; extra == 'train'"):
        assert line in metadata.replace('"', "'")


def test_every_place_names_the_same_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_sdist_can_be_tested_and_built_again(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in names if "kernels/compiled" in name]
    assert names >= {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "constraints.txt", "Makefile", "pyproject.toml"}
    needed = (path for part in ("tests/**/*.py", "tests/compat/*/**/*", "docs/*.md", "benchmarks/*.py") for path in ROOT.glob(part))
    assert not {str(path.relative_to(ROOT)) for path in needed if path.is_file()} - names
    assert not [name for name in names if name.startswith("benchmarks/results")]


def test_commands_explain_themselves(installed: Path, tmp_path: Path) -> None:
    assert "quickstart" in run(installed / "adawidth", "--help", cwd=tmp_path)
    assert __version__ in run(installed / "python", "-m", "pip", "show", "adawidth", cwd=tmp_path)


def test_a_model_is_loaded_and_an_index_searched_without_extras(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(COMPAT, tmp_path, dirs_exist_ok=True)
    assert run(installed / "python", "-c", SEARCH, cwd=tmp_path).split() == []
    listed = run(installed / "python", "-m", "pip", "list", "--format", "freeze", cwd=tmp_path)
    assert not [line for line in listed.splitlines() if line.startswith(("torch=", "lightgbm=", "scikit-learn="))]
    found = run(installed / "adawidth", "search", "indexes/flat", "--vectors", "queries-64.npy", "--json", cwd=tmp_path)
    assert "near 0" in found
