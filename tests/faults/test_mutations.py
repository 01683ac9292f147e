"""Damaged and crafted index folders, model folders and input files: refused or answered rightly, without a crash, a hang or much memory."""

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from faults import mutations
from faults.crafted import CRAFTED
from faults.watched import Case, watched


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sound folders."""
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("mutations")
    mutations.prepare(path)
    return path


def outcomes(home: Path, cases: Iterable[Case]) -> Counter[str]:
    """How many cases ended how; each in a way that is allowed."""
    found: Counter[str] = Counter()
    for case, said in watched(Path(mutations.__file__), [home], cases):
        word = said.partition(":")[0]
        assert word in ("right", "answered", "refused"), f"{case}: {said}"
        found[word] += 1
    return found


def test_sound_folders_answer_in_every_way(home: Path, tmp_path: Path) -> None:
    for name in {kind.folder for kind in mutations.KINDS.values() if not kind.folder.startswith("readers/")}:
        found = mutations.answers(Path(shutil.copytree(home / name, tmp_path / name)))
        assert len(found) >= len(mutations.OPTIONS)
        assert all(part is not None for part in found), name


@pytest.mark.slow
def test_every_kind_of_file_and_crafted_folders(home: Path) -> None:
    each = [{"kind": kind, "seed": seed} for kind in mutations.KINDS for seed in (1, 2)]
    crafted = [{"crafted": name} for name in random.Random(0).sample(sorted(CRAFTED), 60)]
    found = outcomes(home, [*each, *crafted])
    assert found["refused"] > found.total() / 2
    assert found["right"] > 5
    assert found["answered"] > 5


@pytest.mark.slow
def test_some_of_the_benchmark(home: Path) -> None:
    """benchmarks/mutations.py, in short, from other seeds on."""
    found = outcomes(home, [*mutations.cases(600, seed=1_000_000), *({"crafted": name} for name in sorted(CRAFTED)[::3])])
    assert found["refused"] > found.total() / 2
