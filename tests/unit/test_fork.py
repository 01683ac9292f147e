"""An index and a model in other processes, forked and spawned after the parent has searched, and in many threads at once."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, open_index
from adawidth.data import Dataset

SCRIPT = """
import multiprocessing, pickle, sys
import faiss, numpy as np
from adawidth import AdaWidth, open_index

kind, path, queries = sys.argv[1], sys.argv[2], np.load(sys.argv[3])

def reopened(path):
    return open_index(path).search(queries, k=10).rows

def inherited(_):
    return index.search(queries, k=10, threads=2).rows  # the parent's threads are not the child's

def built(_):
    from adawidth.index.codes import build
    return build(queries, "ivf", 0).search(queries, 1)

def unpickled(model):
    return model.rotation.apply(queries)

if __name__ == "__main__":
    own = faiss.IndexFlatIP(queries.shape[1])  # the user's, on all threads
    own.add(queries)
    faiss.omp_set_num_threads(4)
    own.search(queries, 5)
    index = open_index(path)
    expected, model = index.search(queries, k=10, threads=2).rows, AdaWidth.load(path + "/model")
    with multiprocessing.get_context(kind).Pool(2) as pool:
        def answers(function, argument):
            return pool.map_async(function, [argument] * 4).get(60)
        assert all((rows == expected).all() for rows in answers(reopened, path))
        assert all(np.allclose(rows, model.rotation.apply(queries)) for rows in answers(unpickled, model))
        if kind == "fork":
            assert all((rows == expected).all() for rows in answers(inherited, None))
        assert all((rows == built(None)).all() for rows in answers(built, None))
"""


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    pytest.importorskip("torch")
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture(params=["flat", "pq4"])
def path(request: pytest.FixtureRequest, model: AdaWidth, collection: Dataset, tmp_path: Path) -> Path:
    model.index(collection.documents, path=tmp_path / "an.index", storage=request.param)
    return tmp_path / "an.index"


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_workers_answer_as_the_parent_does(kind: str, path: Path, collection: Dataset, tmp_path: Path) -> None:
    np.save(tmp_path / "queries.npy", collection.queries.all()[:64])
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), kind, str(path), str(tmp_path / "queries.npy")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "4"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_sixteen_threads_give_equal_answers(path: Path, collection: Dataset) -> None:
    index, queries = open_index(path), collection.queries.all()[:64]
    expected = index.search(queries, k=10)
    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(lambda _: index.search(queries, k=10), range(64)):
            np.testing.assert_array_equal(found.rows, expected.rows)
            np.testing.assert_array_equal(found.scores, expected.scores)
    shared = index.search(queries, k=10, threads=16)
    np.testing.assert_array_equal(shared.rows, expected.rows)


def test_a_model_pickles(model: AdaWidth, collection: Dataset) -> None:
    copy = pickle.loads(pickle.dumps(model))
    queries = collection.queries.all()[:64]
    found, expected = (one.index(collection.documents).search(queries, k=10) for one in (copy, model))
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.scores, expected.scores)
