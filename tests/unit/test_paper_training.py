"""The paper's training: candidates drawn once, and the same losses whatever map is learned."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from adawidth import Dataset
from adawidth.baselines.dense import PaperDense
from adawidth.baselines.paper import paper_task
from adawidth.data import unit
from adawidth.training.householder import materialise, paired_start, rotate
from adawidth.training.recipes import PAPER
from adawidth.training.rotation import Turn, private_losses
from adawidth.training.task import Task

D = 64  # of the collection


@pytest.fixture(scope="module")
def task(collection: Dataset) -> Task:
    return paper_task(collection.learning())


def losses(task: Task, turn: Turn, count: int) -> list[float]:
    recipe = replace(PAPER, batch=len(task.candidates.usable()))
    found = private_losses(recipe, task, torch.from_numpy(task.queries), torch.from_numpy(task.documents), turn, np.random.default_rng(0))
    return [float(loss) for loss in islice(found, count)]


def test_the_candidates_of_a_query_are_drawn_once(task: Task) -> None:
    first, second, third = losses(task, lambda x, m: x[:, :m], 3)  # of all queries, in other orders
    assert first == pytest.approx(second, rel=1e-5) == pytest.approx(third, rel=1e-5)


def test_a_matrix_has_the_losses_of_the_rotation_that_it_is(task: Task) -> None:
    u = paired_start(8, D, 0) + 0.5 * torch.randn(8, D, generator=torch.Generator().manual_seed(0))
    u = torch.nn.functional.normalize(u, dim=1)
    matrix = materialise(u).to(torch.float32)
    as_rotation = losses(task, lambda x, m: rotate(x, u, m), 1)
    assert losses(task, lambda x, m: x @ matrix[:m].T, 1) == pytest.approx(as_rotation, rel=1e-5)
    assert losses(task, lambda x, m: x[:, :m], 1) != pytest.approx(as_rotation, rel=1e-5)


@pytest.mark.slow
def test_the_free_matrix_learns_and_is_no_rotation(collection: Dataset) -> None:
    method = PaperDense().fit(collection.learning())
    assert method.map is not None
    gram = method.map.matrix @ method.map.matrix.T
    assert np.abs(gram - np.eye(D)).max() > 0.01
    assert method.parameters == D * D
    documents = collection.documents.all()[:20]
    mapped = method.encode(documents, "document", 16)
    np.testing.assert_allclose(mapped, unit(documents @ method.map.matrix[:16].T), atol=1e-5)
