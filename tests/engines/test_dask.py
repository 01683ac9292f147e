"""Dask calls the same kernel: the example gives what the model does."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset

pytestmark = pytest.mark.engines
pytest.importorskip("dask", reason="needs Dask: make test-engines installs it")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_rotate.py"


def test_the_example_for_dask(collection: Dataset, tmp_path: Path) -> None:
    model, documents = AdaWidth.fit(collection, recipe="pca"), collection.documents
    model.save(tmp_path / "model")
    (tmp_path / "in").mkdir()
    table = pyarrow.table({"id": list(documents.ids), "vector": list(documents.all())})
    for number in range(2):
        parquet.write_table(table.slice(240 * number, 240), tmp_path / "in" / f"{number}.parquet")
    run_path(str(EXAMPLE))["main"](str(tmp_path / "model"), str(tmp_path / "in"), str(tmp_path / "out"), "16")
    made = parquet.read_table(tmp_path / "out").sort_by("id")
    order = np.argsort(np.array(documents.ids))
    assert made["id"].to_pylist() == [documents.ids[row] for row in order]
    assert np.abs(np.array(made["vector"].to_pylist()) - model.rotate(documents, 16)[order]).max() < 1e-6
