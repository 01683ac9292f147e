"""Our walk through flat arrays gives LightGBM's raw scores."""

import numpy as np
import pytest

from adawidth.kernels.trees import batch_features, route
from adawidth.training.router import TreeSettings, flat, grow

lightgbm = pytest.importorskip("lightgbm")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("leaves", "trees"), [(2, 5), (15, 50), (63, 130)])
def test_equal_to_raw_scores(seed: int, leaves: int, trees: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(800, 18)).round(2)  # rounded: values that fall on thresholds
    x[:, 3] = x[:, 3] > 0
    y = x[:, 0] * x[:, 1] + rng.normal(size=800)
    options = {"num_leaves": leaves, "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1, "objective": "regression"}
    fitted = lightgbm.train(options, lightgbm.Dataset(x, y), trees)
    ours = flat(fitted.dump_model()["tree_info"])
    unseen = np.concatenate([x, rng.normal(scale=3, size=(500, 18)), np.zeros((1, 18))])
    np.testing.assert_allclose(ours.predict(unseen), fitted.predict(unseen, raw_score=True), atol=1e-6, rtol=0)


def test_one_query_from_scores_to_prediction() -> None:
    rng = np.random.default_rng(5)
    scores = -np.sort(-rng.normal(0.3, 0.1, (300, 500)).astype(np.float32), axis=1)
    x = batch_features(scores)
    trees = grow(x, 3 * x[:, 0] + rng.normal(scale=0.1, size=300), TreeSettings(), 0)
    one_by_one = [route(row, *trees.tensors().values()) for row in scores]
    np.testing.assert_allclose(one_by_one, trees.predict(x), atol=1e-12)


def test_growing_is_deterministic() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(400, 18)), rng.normal(size=400)
    first, second = (grow(x, y, TreeSettings(), 3).predict(x) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_nothing_to_split_on() -> None:
    trees = grow(np.ones((200, 18)), np.linspace(0, 1, 200), TreeSettings(), 0)
    found = trees.predict(np.ones((2, 18)))
    assert np.isfinite(found).all()
