"""A small collection on which retrieval works, in memory and on disk, and a small index on disk, for every test that needs one."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth.data import Dataset, Qrels, Vectors
from adawidth.formats import write_qrels, write_vectors
from adawidth.types import Id
from small_index import empty, fill

CLUSTERS, MEMBERS, WIDTH = 60, 8, 64
QUERIES = {"train": 120, "dev": 40, "test": 60}


@pytest.fixture(scope="session")
def collection() -> Dataset:
    """480 documents in 60 clusters, 220 queries. A query lies near its document (grade 2) and that one's neighbour (grade 1).

    The signal falls from axis to axis, the noise of the queries does not, and the axes are turned at random: a rotation pays.
    """
    rng = np.random.default_rng(7)
    spectrum = np.exp(-np.arange(WIDTH) / 12)
    turn = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]

    def drawn(count: int) -> np.ndarray:
        return rng.standard_normal((count, WIDTH)) * spectrum

    near = np.repeat(drawn(CLUSTERS), MEMBERS, axis=0) + 0.6 * drawn(CLUSTERS * MEMBERS)
    count = sum(QUERIES.values())
    source = rng.integers(len(near), size=count)
    asked = near[source] + 0.25 * rng.standard_normal((count, WIDTH))
    documents, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) @ turn for x in (near, asked))
    neighbour = source ^ 1  # in the same cluster, as clusters have an even number of members
    splits = np.repeat(list(QUERIES), list(QUERIES.values()))
    grades: dict[str, dict[Id, dict[Id, float]]] = {split: {} for split in QUERIES}
    for i, split in enumerate(splits.tolist()):
        grades[split][f"q{i}"] = {f"d{source[i]}": 2.0, f"d{neighbour[i]}": 1.0}
    return Dataset(
        Vectors.of(documents.astype(np.float32), [f"d{i}" for i in range(len(documents))], name="documents"),
        Vectors.of(queries.astype(np.float32), [f"q{i}" for i in range(count)], name="queries"),
        {split: Qrels(part, split) for split, part in grades.items()},
        name="collection",
        encoder="tiny",
    )


@pytest.fixture
def dataset_folder(collection: Dataset, tmp_path: Path) -> Path:
    """The same as a dataset folder, with an encoder called tiny; a test may change it."""
    folder = tmp_path / "collection"
    vectors = folder / "embeddings" / collection.encoder
    vectors.mkdir(parents=True)
    (folder / "qrels").mkdir()
    write_vectors(vectors / "corpus.npy", collection.documents)
    write_vectors(vectors / "queries.npy", collection.queries)
    for split, qrels in collection.qrels.items():
        write_qrels(folder / "qrels" / f"{split}.tsv", qrels)
    return folder


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


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipes as they are, with a few steps: examples are to run, not to learn."""
    from adawidth.training import choose, refit

    for name in ("LABELLED", "UNLABELLED"):
        monkeypatch.setattr(choose, name, tuple(replace(recipe, steps=10) for recipe in getattr(choose, name)))
    monkeypatch.setattr(refit, "RECIPES", tuple(replace(recipe, steps=10) for recipe in refit.RECIPES))
