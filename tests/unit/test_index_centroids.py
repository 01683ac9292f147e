"""The lists of an inverted file: learned in groups, but hardly worse than k-means over all rows at once."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from adawidth.data import unit
from adawidth.index.codes.centroids import FEWEST, FINE, Divided, divided


def clustered(count: int, width: int = 24) -> np.ndarray:
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((60, width))
    return unit((centres[rng.integers(60, size=count)] + 0.6 * rng.standard_normal((count, width))).astype(np.float32))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clustered(20_000)


@pytest.fixture(scope="module")
def made(rows: np.ndarray) -> Divided:
    return divided(rows, seed=0)


def spread(rows: np.ndarray, centres: np.ndarray, list_of: np.ndarray) -> float:
    """Mean squared distance of a row from its list's centroid."""
    return float(((rows - centres[list_of]) ** 2).sum(axis=1).mean())


def test_lists_are_about_as_tight_as_those_of_k_means_over_all(rows: np.ndarray, made: Divided) -> None:
    learner = faiss.Kmeans(rows.shape[1], len(made.centres), niter=10, seed=0, spherical=True)
    learner.train(rows)
    list_of = learner.index.search(rows, 1)[1][:, 0]
    means = np.stack([rows[list_of == one].mean(axis=0) for one in range(len(made.centres))])
    assert spread(rows, *made) < 1.05 * spread(rows, means, list_of)


def test_a_row_is_in_the_nearest_list_or_in_one_as_near(rows: np.ndarray, made: Divided) -> None:
    scores = rows @ unit(made.centres).T
    own = np.take_along_axis(scores, made.list_of[:, None].astype(np.int64), axis=1)[:, 0]
    assert (scores.max(axis=1) - own < 0.02).mean() > 0.9


def test_a_centroid_is_the_mean_of_its_list(rows: np.ndarray, made: Divided) -> None:
    for one in np.unique(made.list_of)[:20]:
        np.testing.assert_allclose(made.centres[one], rows[made.list_of == one].mean(axis=0), atol=1e-6)


def test_equal_rows_are_in_one_list(rows: np.ndarray) -> None:
    twice = np.concatenate([rows[:3_000], rows[:3_000][::-1], rows[3_000:7_000]])
    list_of = divided(twice, seed=0).list_of
    np.testing.assert_array_equal(list_of[:3_000], list_of[3_000:6_000][::-1])


@pytest.mark.parametrize("count", [0, 1, 5, 100, 3_000])
def test_there_are_as_many_lists_as_there_are_rows_for(count: int) -> None:
    made = divided(clustered(count), seed=0)
    wanted = max(1, min(round(FINE * count**0.5), count // FEWEST))
    assert len(made.centres) == pytest.approx(wanted, rel=0.1)
    assert made.list_of.shape == (count,)
    assert made.list_of.max(initial=0) < len(made.centres)
