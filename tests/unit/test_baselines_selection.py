"""The methods that select coordinates: masks on queries, and SMEC's choice of coordinates."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adawidth.baselines import baseline
from adawidth.baselines.descent import Batch
from adawidth.baselines.dime import OracleDIME, SoftDIME, agreement, correlation
from adawidth.baselines.eclipse import Setting, eclipsed
from adawidth.baselines.learning_to_select import LearningToSelect, RenormalisedLearningToSelect, target
from adawidth.baselines.masked import Asked, largest
from adawidth.baselines.rdime import RDIME, thresholds
from adawidth.baselines.smec import MEMORY, SAME, SMEC, Memory, NestedSMEC, Step, choice, permutation, step_widths
from adawidth.data import Dataset, Judged, Queries, Vectors, unit
from adawidth.errors import OptionError
from adawidth.metrics import Measure, evaluate
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import exhaustive

WIDTH = 64  # of the collection's vectors
MASKED = ["dime", "dime:magnitude", "dime:soft", "dime:oracle", "eclipse", "learning-to-select:oracle"]  # each fit takes a moment


def asked(documents: list[list[float]], queries: list[list[float]], judged: Judged | None = None) -> Asked:
    rows, own = np.array(documents, np.float32), np.full(len(queries), -1)
    return Asked.of(Vectors(rows, range(len(rows))), Queries(Vectors(np.array(queries, np.float32), range(len(queries))), judged, own))


def whole(collection: Dataset, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    index = MemoryBackend(collection.documents, Rotation.identity(WIDTH))
    hits = exhaustive(index, queries.vectors.all(), WIDTH, 10, queries.own)
    return hits.rows, hits.scores


def test_a_mask_keeps_exactly_the_largest_by_sign_and_the_first_among_equals() -> None:
    importance = np.array([[-5.0, 1.0, 0.5, 2.0], [1.0, 1.0, 1.0, 1.0]], np.float32)
    np.testing.assert_array_equal(largest(importance, 2), [[0, 1, 0, 1], [1, 1, 0, 0]])
    rng = np.random.default_rng(0)
    for m in (1, 17, 40):
        assert (largest(rng.standard_normal((5, 40)).astype(np.float32), m).sum(axis=1) == m).all()


@pytest.mark.parametrize("name", MASKED)
def test_all_coordinates_give_the_whole_ranking_and_its_scores(name: str, collection: Dataset) -> None:
    queries = collection.split("test")
    hits = baseline(name).fit(collection.learning()).search(collection.documents, queries, WIDTH, 10)
    rows, scores = whole(collection, queries)
    np.testing.assert_array_equal(hits.rows, rows)
    np.testing.assert_array_equal(hits.scores, scores)
    assert hits.mean_width == WIDTH


@pytest.mark.parametrize("name", ["dime", "dime:magnitude", "rdime"])
def test_a_query_that_is_a_document_never_finds_itself(name: str, collection: Dataset) -> None:
    queries = collection.split("test")
    first = baseline("dime:magnitude").fit(collection.learning()).search(collection.documents, queries, 32, 1).rows[:, 0]
    hits = baseline(name).fit(collection.learning()).search(collection.documents, replace(queries, own=first), 32, 480)
    assert not (hits.rows == first[:, None]).any()
    assert ((hits.rows >= 0).sum(axis=1) == 479).all()


def test_equal_documents_stand_in_the_order_of_their_ids() -> None:
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.standard_normal((3, 40)), 4, axis=0).astype(np.float32)
    documents = Vectors(rows, [f"d{i:02}" for i in range(12)])
    queries = Queries(Vectors(rng.standard_normal((2, 40)).astype(np.float32), range(2)), None, np.full(2, -1))
    method = RenormalisedLearningToSelect()
    method.width, method.layer = 40, (np.eye(40, dtype=np.float32), np.zeros(40, np.float32))
    found = method.search(documents, queries, 20, 12).rows
    np.testing.assert_array_equal(found % 4, np.tile([3, 2, 1, 0], (2, 3)))


def test_what_a_mask_costs(collection: Dataset) -> None:
    queries = collection.split("test")
    costs = {}
    for name in ("dime:magnitude", "dime", "eclipse", "dime:soft"):
        method = baseline(name).fit(collection.learning(labels=False))
        costs[name] = method.multiply_adds(16, method.search(collection.documents, queries, 16, 10))
        assert method.stored_floats(16) == WIDTH
    scan, first_pass = 480 * 16, 480 * WIDTH
    assert costs == {
        "dime:magnitude": scan,
        "dime": scan + first_pass + (2 + 1) * WIDTH,
        "eclipse": scan + first_pass + (5 + 50 + 2) * WIDTH,
        "dime:soft": scan + first_pass + (10 + 1) * WIDTH,
    }


def test_feedback_on_a_worked_example() -> None:
    given = asked([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [0, -1, 0]], [[0.8, 0.6, 0]])
    np.testing.assert_array_equal(given.answers, [[1, 0, 2, 3]])
    np.testing.assert_allclose(agreement(given, 1), [[0.48, 0.48, 0]], atol=1e-6)
    np.testing.assert_allclose(agreement(given, 2), [[0.64, 0.24, 0]], atol=1e-6)
    np.testing.assert_allclose(eclipsed(given, Setting(beta=0.5, first=2, last=1)), [[0.64, 0.24 + 0.3, 0]], atol=1e-6)
    np.testing.assert_allclose(eclipsed(given, Setting(beta=1.0, first=1, last=2)), [[0.48, 0.48 + 0.3, 0]], atol=1e-6)
    weights = np.exp(np.array([0.96, 0.8, 0, -0.6]) / SoftDIME.TAU)
    weights /= weights.sum()
    soft = np.array([0.8, 0.6, 0]) * (weights @ np.array([[0.6, 0.8, 0], [1, 0, 0], [0, 0, 1], [0, -1, 0]]))
    np.testing.assert_allclose(SoftDIME().importance(given), [soft], atol=1e-6)


def test_the_threshold_on_a_worked_example() -> None:
    query, centroid = np.array([0.8, 0.6, 0, 0]), np.array([0.5, 0.1, 0.3, 0])
    importance = (query * centroid)[None].astype(np.float32)  # .4, .06, 0, 0
    threshold = np.mean(query**2 - importance[0])  # (1 − .46) / 4 = .135
    np.testing.assert_allclose(thresholds(importance), [[threshold]], atol=1e-7)
    method = RDIME()
    method.factors = np.array([9.0, 4.0, 0.4, 1.0, 1.0])
    np.testing.assert_array_equal(method.kept(importance, 4), [[1, 0, 0, 0]])
    np.testing.assert_array_equal(method.kept(importance, 2), [[1, 1, 0, 0]])  # above .054
    np.testing.assert_array_equal(method.kept(importance, 1), [[1, 0, 0, 0]])  # none is above .54, one is kept


def test_rdime_spends_its_width_on_dev_and_never_more_than_its_threshold_set(collection: Dataset) -> None:
    learning, queries = collection.learning(), collection.split("test")
    method = RDIME().fit(learning)
    own = method.search(collection.documents, queries, WIDTH, 10).mean_width
    assert own < 0.9 * WIDTH
    for m in (8, 16):
        assert method.search(collection.documents, learning.dev, m, 10).mean_width == pytest.approx(m, abs=0.5)
    assert len(set(method.search(collection.documents, queries, 16, 10).widths.tolist())) > 1


def test_oracles_are_at_least_as_good_as_feedback_and_need_labels(collection: Dataset) -> None:
    learning, queries, measure = collection.learning(), collection.split("test"), Measure("nDCG", 10)
    assert queries.judged is not None
    worth = {}
    for name in ("dime", "dime:oracle", "learning-to-select:oracle"):
        hits = baseline(name).fit(learning).search(collection.documents, queries, 24, 10)
        worth[name] = evaluate([measure], hits.rows, queries.judged)[str(measure)].mean()
    assert worth["dime"] < worth["dime:oracle"]
    assert worth["dime"] < worth["learning-to-select:oracle"]
    for name in ("dime:oracle", "learning-to-select:oracle"):
        with pytest.raises(OptionError, match="these have none"):
            baseline(name).fit(learning).search(collection.documents, replace(queries, judged=None), 24, 10)


def test_an_oracle_correlates_grades_where_documents_are_judged_not_relevant() -> None:
    rng = np.random.default_rng(3)
    given = asked(rng.standard_normal((5, 4)).tolist(), rng.standard_normal((1, 4)).tolist(), Judged.of([{0: 2.0, 1: 0.0, 2: 1.0}]))
    products = given.vectors[0] * given.index.rows[[0, 1, 2]]
    expected = [np.corrcoef([2, 0, 1], products[:, j])[0, 1] for j in range(4)]
    np.testing.assert_allclose(correlation(np.array([2.0, 0, 1]), products), expected, atol=1e-5)
    np.testing.assert_allclose(OracleDIME().importance(given), [expected], atol=1e-5)
    constant = np.ones((3, 1), np.float32)
    np.testing.assert_array_equal(correlation(np.array([2.0, 0, 1]), constant), [0])


def test_the_target_on_a_worked_example() -> None:
    queries = torch.tensor([[0.8, 0.6, 0.0]])
    documents = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [0.6, 0.0, 0.8]])
    batch = Batch(queries, documents, torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
    worth = np.array([0.8, 0.6, 0]) * (np.array([0.8, 0, 0.4]) - np.array([0, 0.8, 0.4]))  # all others are among the nearest 16
    standard = (worth - worth.mean()) / worth.std(ddof=1)
    for tau in (0.5, 2.0):
        np.testing.assert_allclose(target(batch, tau)[0], np.exp(standard / tau) / np.exp(standard / tau).sum(), atol=1e-5)


@pytest.mark.slow
def test_what_is_learned_to_select_is_better_than_the_leading_coordinates(collection: Dataset) -> None:
    learning, queries, measure = collection.learning(), collection.split("test"), Measure("nDCG", 10)
    assert queries.judged is not None
    method = LearningToSelect().fit(learning)
    assert method.parameters == WIDTH * (WIDTH + 1)
    hits = method.search(collection.documents, queries, 32, 10)
    first = Asked.of(collection.documents, queries)
    cut = method.ranked(first, largest(np.zeros_like(first.vectors), 32), 10)
    learned, plain = (evaluate([measure], rows, queries.judged)[str(measure)].mean() for rows in (hits.rows, cut.rows))
    assert learned > plain
    assert method.multiply_adds(32, hits) == WIDTH**2 + 480 * 32


def test_renormalised_scores_are_cosines_on_what_is_kept(collection: Dataset) -> None:
    queries = collection.split("test")
    given, rng = Asked.of(collection.documents, queries), np.random.default_rng(0)
    mask = largest(rng.standard_normal(given.vectors.shape).astype(np.float32), 20)
    hits = RenormalisedLearningToSelect().ranked(given, mask, 10)
    for query in range(5):
        q, d = unit(given.vectors[query, mask[query]]), unit(given.index.rows[:, mask[query]])
        np.testing.assert_allclose(hits.scores[query], np.sort(d @ q)[::-1][:10], atol=1e-5)


def test_steps_halve_down_to_the_widths_that_are_learned_at() -> None:
    assert step_widths(384) == (384, 256, 128, 64, 32)
    assert step_widths(768) == (768, 384, 256, 128, 64, 32)
    assert step_widths(1024) == (1024, 512, 256, 128, 64, 32)
    assert step_widths(64) == (64, 32)
    assert step_widths(32) == (32,)


def test_the_choice_is_hard_and_its_gradient_flows() -> None:
    logits = torch.tensor([0.1, 2.0, -1.0, 0.5], requires_grad=True)
    mask = choice(logits, torch.zeros(4), 2, tau=0.5)
    np.testing.assert_allclose(mask.detach(), [0, 1, 0, 1], atol=1e-6)
    (mask * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    soft = torch.sigmoid((torch.tensor([0.1, 2.0, -1.0, 0.5]) - 0.5) / 0.5)
    np.testing.assert_allclose(logits.grad, torch.tensor([1.0, 2.0, 3.0, 4.0]) * soft * (1 - soft) / 0.5, rtol=1e-5)
    noisy = choice(logits, torch.tensor([5.0, 0, 0, 0]), 1, tau=0.5)
    assert noisy.argmax() == 0


def test_a_step_orders_what_goes_on_by_its_logits() -> None:
    step = Step(np.eye(4, dtype=np.float32), np.zeros(4, np.float32), np.array([2, 0, 3, 1]), 2)
    np.testing.assert_allclose(step.apply(np.array([[3.0, 1.0, 4.0, 2.0]])), [[0.8, 0.6]], atol=1e-6)


def test_steps_that_only_choose_make_one_permutation() -> None:
    eye, zero = np.eye(4, dtype=np.float32), np.zeros(4, np.float32)
    first = Step(eye, zero, np.array([2, 0, 3, 1]), 3)
    second = Step(eye[:3, :3], zero[:3], np.array([1, 2, 0]), 1)
    np.testing.assert_array_equal(permutation([first, second], 4), [0, 3, 2, 1])
    np.testing.assert_array_equal(permutation([], 4), range(4))


def test_the_memory_forgets_the_oldest_and_leaves_a_row_itself_out() -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(unit(rng.standard_normal((MEMORY + 10, 8))))
    memory = Memory(8)
    memory.add(rows[:MEMORY])
    memory.add(rows[MEMORY:])
    np.testing.assert_array_equal(memory.rows[:10], rows[MEMORY:])
    near, cosines = memory.neighbours(rows[20:23])
    assert near.shape == (3, 10, 8)
    assert cosines.max() <= SAME
    np.testing.assert_allclose((near * rows[20:23, None]).sum(dim=-1), cosines, atol=1e-5)


@pytest.mark.slow
def test_nested_steps_are_a_permutation_of_the_coordinates(collection: Dataset) -> None:
    method = NestedSMEC().fit(collection.learning())
    assert method.rotation is not None
    matrix = method.rotation.matrix
    assert set(np.unique(matrix)) == {0.0, 1.0}
    assert (matrix.sum(axis=0) == 1).all()
    assert (matrix.sum(axis=1) == 1).all()
    assert method.parameters == WIDTH


@pytest.mark.slow
def test_steps_give_their_widths_and_leave_whole_vectors_alone(collection: Dataset) -> None:
    method, x = SMEC().fit(collection.learning()), collection.documents.all()[:5]
    assert method.steps is not None
    assert [step.width for step in method.steps] == [32]
    assert method.parameters == WIDTH * (WIDTH + 2)
    np.testing.assert_allclose(method.encode(x, "document", 32), method.steps[0].apply(x), atol=1e-6)
    np.testing.assert_allclose(method.encode(x, "document", 20), unit(method.steps[0].apply(x)[:, :20]), atol=1e-6)
    np.testing.assert_allclose(method.encode(x, "query", WIDTH), x, atol=1e-6)
    assert method.query_cost(20) == 32 * WIDTH
    assert method.query_cost(WIDTH) == 0
