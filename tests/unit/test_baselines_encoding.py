"""Methods that make other vectors: their formulas on arrays small enough to work out otherwise."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from adawidth.baselines import baseline
from adawidth.baselines.conae import prefix_decoded
from adawidth.baselines.dense import Dense
from adawidth.baselines.descent import STEPS, Course, Ground, steps_for
from adawidth.baselines.matryoshka_adaptor import MatryoshkaAdaptor, UnsupervisedMatryoshkaAdaptor, pair_loss, topk_loss
from adawidth.baselines.pca import PCA, CentredPCA, PooledPCA
from adawidth.baselines.random_subset import RandomSubset
from adawidth.baselines.residual import Network, prefix_scores, rank_loss
from adawidth.baselines.search_adaptor import SearchAdaptor
from adawidth.baselines.spectral_tempering import SpectralTempering, knee, tempering
from adawidth.baselines.whitening import Spectrum, Whitening
from adawidth.data import Dataset, Learning, unit
from adawidth.training.descent import Descent, descend

WIDTH = 64


@pytest.fixture(scope="module")
def learning(collection: Dataset) -> Learning:
    return collection.learning()


def rows(count: int, width: int = WIDTH, seed: int = 0) -> torch.Tensor:
    return functional.normalize(torch.randn(count, width, generator=torch.Generator().manual_seed(seed)), dim=1)


def span(axes: np.ndarray) -> np.ndarray:
    """The projector on the rows' span: the same for any signs."""
    return np.asarray(axes.T @ axes)


# rotations


def test_a_wider_random_subset_holds_the_narrower(learning: Learning) -> None:
    x = learning.documents.all()[:5]
    method = RandomSubset().fit(learning, seed=3)
    wide, narrow = method.encode(x, "query", 40), method.encode(x, "query", 16)
    np.testing.assert_array_equal(wide[:, :16], narrow)
    np.testing.assert_array_equal(np.sort(method.encode(x, "document", WIDTH), axis=1), np.sort(x, axis=1))
    assert not np.array_equal(RandomSubset().fit(learning, seed=4).encode(x, "query", 16), narrow)
    assert method.parameters == method.query_cost(16) == 0


@pytest.mark.parametrize("centred", [True, False])
def test_pca_variants_agree_with_numpy(learning: Learning, centred: bool) -> None:
    documents, queries = (vectors.all().astype(np.float64) for vectors in (learning.documents, learning.train.vectors))
    expected = np.cov(documents.T) if centred else documents.T @ documents / len(documents) + queries.T @ queries / len(queries)
    method = (CentredPCA() if centred else PooledPCA()).fit(learning)
    assert method.rotation is not None
    for m in (4, 16):
        leading = np.linalg.eigh(expected)[1][:, -m:].T
        np.testing.assert_allclose(span(method.rotation.matrix[:m]), span(leading), atol=1e-4)


def test_no_mean_is_subtracted(learning: Learning) -> None:
    x = learning.documents.all()[:5]
    encoded = CentredPCA().fit(learning).encode(x, "document", WIDTH)
    np.testing.assert_allclose(encoded @ encoded.T, x @ x.T, atol=1e-5)


# whitening and tempering


def test_whitening_makes_the_covariance_the_identity(learning: Learning) -> None:
    spectrum = Spectrum.of(learning, 0)
    whitened = spectrum.project(learning.documents.all(), 20, 1.0)
    np.testing.assert_allclose(np.cov(whitened.T, ddof=0), np.eye(20), atol=0.01)
    np.testing.assert_allclose(whitened.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_array_equal(Whitening().fit(learning).encode(learning.documents.all(), "document", 20), unit(whitened))


def test_gamma_0_is_pca_and_gamma_1_whitening(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    x = learning.documents.all()
    method = SpectralTempering().fit(learning)
    monkeypatch.setattr(SpectralTempering, "gamma", lambda self, width: 1.0)
    np.testing.assert_array_equal(method.encode(x, "query", 16), Whitening().fit(learning).encode(x, "query", 16))
    monkeypatch.setattr(SpectralTempering, "gamma", lambda self, width: 0.0)
    centred, axes = x - x.mean(axis=0), np.linalg.eigh(np.cov(x.T.astype(np.float64)))[1][:, ::-1][:, :16]
    encoded, expected = method.encode(x, "query", 16), unit(centred @ axes)
    np.testing.assert_allclose(encoded @ encoded.T, expected @ expected.T, atol=1e-4)


def test_the_knee_of_a_hyperbola_is_at_the_root_of_its_length() -> None:
    assert knee(1 / np.arange(1, 101)) == 10
    assert knee(1 / np.arange(1, 401)) == 20


def test_the_knee_is_the_first_peak_that_is_fallen_from() -> None:
    curve = np.array([10.0, 4.0, 3.9, 1.0, 0.9, 0.8, 0.7, 0.0])  # ahead of the diagonal: 0, .46, .32, .47, …
    assert knee(curve) == 2
    assert knee(curve, sensitivity=1.5) == 4  # the first fall, .133, is then less than 1.5 / 7


@pytest.mark.parametrize("curve", [np.ones(20), np.array([1.0, 0.0])])
def test_a_curve_without_a_bend_has_no_knee(curve: np.ndarray) -> None:
    assert knee(curve) is None


def test_tempering_on_a_worked_spectrum() -> None:
    variances = 1.0 + np.concatenate([1 / np.arange(1, 82), np.zeros(9)])  # noise 1, SNR(i) = 1 / i, its knee at the root of 81
    assert tempering(variances, 9) == tempering(variances, 3) == 1.0
    assert tempering(variances, 18) == pytest.approx(0.5)
    assert tempering(variances, 90) == pytest.approx(9 / 81)  # beyond the signals the last of them


def test_tempering_without_signal_whitens() -> None:
    assert tempering(np.ones(50), 16) == 1.0


# the adaptors' losses


def test_prefix_scores_are_the_cosines_of_prefixes() -> None:
    q, d = rows(3), rows(5, seed=1)
    for scores, m in zip(prefix_scores(q, d, [8, 24, WIDTH]), (8, 24, WIDTH), strict=True):
        expected = functional.normalize(q[:, :m], dim=1) @ functional.normalize(d[:, :m], dim=1).T
        torch.testing.assert_close(scores, expected, atol=1e-5, rtol=0)


def test_what_is_kept_costs_nothing_at_the_start_and_full_width() -> None:
    network, x, near = Network(WIDTH, 0), rows(6), rows(12, seed=1).reshape(6, 2, WIDTH)
    assert float(network(x).abs().max().detach()) == 0  # rec
    assert float(pair_loss(x, x + network(x), [WIDTH]).detach()) == pytest.approx(0, abs=1e-6)
    assert float(topk_loss(x, near, x + network(x), near + network(near), [WIDTH]).detach()) == pytest.approx(0, abs=1e-6)
    assert float(pair_loss(x, x, [8])) > 0.05
    assert float(topk_loss(x, near, x, near, [8])) > 0.05


def test_topk_loss_is_the_pair_loss_of_a_row_and_its_own_neighbours() -> None:
    x, near = rows(2), rows(6, seed=1).reshape(2, 3, WIDTH)
    by_hand = [abs(x[i] @ near[i, j] - functional.cosine_similarity(x[i, :16], near[i, j, :16], dim=0)) for i in range(2) for j in range(3)]
    assert float(topk_loss(x, near, x, near, [16])) == pytest.approx(float(torch.stack(by_hand).mean()), abs=1e-6)


def test_rank_loss_counts_every_pair_of_a_relevant_and_another_candidate() -> None:
    scores = torch.tensor([[[0.9, 0.2, 0.5], [0.1, 0.3, 0.6]]])
    relevant = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    pairs = [0.2 - 0.9, 0.2 - 0.5, 0.1 - 0.3, 0.6 - 0.3]
    assert float(rank_loss(scores, relevant)) == pytest.approx(float(np.mean(np.log1p(np.exp(pairs)))), abs=1e-6)
    assert float(rank_loss(scores, torch.zeros(2, 3))) == 0


def test_a_network_starts_as_truncation_and_adapts_only_what_is_asked_for() -> None:
    network, x = Network(WIDTH, 0), rows(7).numpy()
    np.testing.assert_allclose(network.adapt(x, 16), unit(x[:, :16]), atol=1e-6)
    torch.nn.init.normal_(network.last.weight, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(network.adapt(x, 16), unit(network.adapt(x)[:, :16]), atol=1e-5)
    assert network.size == 2 * (WIDTH * WIDTH + WIDTH)
    assert network.cost(16) == WIDTH * WIDTH + 16 * WIDTH


def test_decoded_prefixes_see_no_later_coordinate() -> None:
    encoded, matrix, bias = rows(4), rows(WIDTH, seed=1), rows(1, seed=2)[0]
    decoded = prefix_decoded(encoded, matrix, bias, [8, 32, WIDTH])
    for part, m in zip(decoded, (8, 32, WIDTH), strict=True):
        torch.testing.assert_close(part, encoded[:, :m] @ matrix[:, :m].T + bias, atol=1e-5, rtol=1e-5)


# learning


def few_steps(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    for module in ("descent", "dense"):
        monkeypatch.setattr(f"adawidth.baselines.{module}.steps_for", lambda task: steps)


def encoded(method: Any, learning: Learning, width: int = 32) -> np.ndarray:
    return np.asarray(method.encode(learning.documents.all(), "document", width))


def test_dense_and_conae_start_as_pca(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = unit(encoded(PCA().fit(learning), learning))
    for name, module in (("dense", "dense"), ("conae", "descent")):
        monkeypatch.setattr(f"adawidth.baselines.{module}.descend", lambda *settings, **more: Descent(0.0, 0, 0))
        np.testing.assert_allclose(encoded(baseline(name).fit(learning), learning), expected, atol=1e-5)


@pytest.mark.slow
def test_dense_is_worth_more_than_pca_on_dev(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch, 200)
    ground, dense, pca = Ground.of(learning), Dense().fit(learning), PCA().fit(learning)
    assert ground.evaluate(lambda x: dense.encode(x, "query", WIDTH)) > ground.evaluate(lambda x: pca.encode(x, "query", WIDTH))
    assert dense.parameters == WIDTH * (WIDTH + 1)


def test_no_label_reaches_the_unsupervised_adaptor(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch, 100)
    blind = replace(learning, train=replace(learning.train, judged=None), dev=replace(learning.dev, judged=None))
    unsupervised = encoded(UnsupervisedMatryoshkaAdaptor().fit(learning), learning)
    np.testing.assert_array_equal(unsupervised, encoded(MatryoshkaAdaptor().fit(blind), learning))
    assert not np.array_equal(unsupervised, encoded(MatryoshkaAdaptor().fit(learning), learning))


def test_search_adaptor_has_a_network_for_each_width(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch, 40)
    method = SearchAdaptor().fit(learning)
    assert method.networks is not None
    assert sorted(method.networks) == [32, WIDTH]
    assert method.parameters == 2 * method.networks[32].size
    x = learning.documents.all()[:4]
    np.testing.assert_array_equal(method.encode(x, "query", 16), method.networks[32].adapt(x, 16))
    np.testing.assert_array_equal(method.encode(x, "query", 40), method.networks[WIDTH].adapt(x, 40))


def test_a_small_collection_takes_fewer_steps(learning: Learning) -> None:
    task = Ground.of(learning).task
    assert 100 <= steps_for(task) < STEPS


def test_descent_leaves_the_weights_of_the_best_evaluation() -> None:
    weight, scores = torch.zeros(1, requires_grad=True), iter([0.0, 1.0, 0.5, 0.5])
    seen: list[float] = []

    def evaluate() -> float:
        seen.append(float(weight.detach()))
        return next(scores)

    found = descend([weight], lambda: (weight - 5).square().sum(), evaluate, steps=300)
    assert found == (1.0, 100, 300)
    assert float(weight.detach()) == seen[1] != seen[-1]
    again = torch.zeros(1, requires_grad=True)
    descend([again], lambda: (again - 5).square().sum(), evaluate, steps=300, until=100)
    assert float(again.detach()) == seen[1]


def test_a_course_goes_the_same_way_again_without_an_evaluation() -> None:
    scores = {0.1: iter([0.0, 0.5, 0.6]), 0.2: iter([0.0, 0.9, 0.8]), None: iter([0.0, 0.1, 0.3])}  # at the start, after 100, after 200
    drawn: list[float | None] = []

    def stage(key: float | None, course: Course) -> float:
        weight = torch.zeros(1, requires_grad=True)

        def batches() -> Iterator[float | None]:
            while True:
                drawn.append(key)
                yield key

        course.descend([weight], lambda _: (weight - 5).square().sum(), lambda: next(scores[key]), batches(), steps=200, rate=key or 0.3)
        return float(weight.detach())

    def fit(course: Course) -> tuple[float | None, float, float]:
        return *course.choose((0.1, 0.2), stage), stage(None, course)

    first = Course()
    found = fit(first)
    assert found[0] == 0.2
    assert first.way == [1, 100, 200]
    drawn.clear()
    again = Course(first)
    assert fit(again) == found  # the same start and batches
    assert Counter(drawn) == {0.2: 100, None: 200}
    assert again.way == [100, 200]


def test_a_descent_taken_at_its_start_is_left_there_again() -> None:
    course, weight = Course(), torch.zeros(1, requires_grad=True)
    for one in (course, Course(course)):
        one.descend([weight], lambda _: (weight - 5).square().sum(), lambda: -float(weight.detach()), iter(range(10)), steps=10)
        assert float(weight.detach()) == 0
