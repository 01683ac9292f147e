"""Rotations: orthogonal, order-preserving at full width, and best for what each promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.data import Vectors, unit
from adawidth.errors import ArtifactError, OptionError
from adawidth.rotation import Rotation, second_moment
from adawidth.training.kyfan import kyfan

D = 48


@pytest.fixture(scope="module")
def documents() -> Vectors:
    rng = np.random.default_rng(0)
    return Vectors.of((rng.standard_normal((500, D)) * np.linspace(2, 0.1, D)[rng.permutation(D)]).astype(np.float32))


def all_kinds(documents: Vectors) -> list[Rotation]:
    margin = np.random.default_rng(1).standard_normal((D, D))
    moment = second_moment(documents)
    return [Rotation.identity(D), Rotation.random(D, 3), Rotation.pca(documents), kyfan(margin + margin.T, moment, 0.1)]


def test_full_width_scores_are_exactly_what_they_were(documents: Vectors) -> None:
    x = documents.all()
    for rotation in all_kinds(documents):
        y = rotation.apply(x)
        assert np.abs(y @ y.T - x @ x.T).max() < 1e-5
        assert np.abs(rotation.invert(y) - x).max() < 1e-5


def test_leading_coordinates_are_a_cut_of_the_whole(documents: Vectors) -> None:
    rotation = Rotation.pca(documents)
    x = documents.all()
    assert np.allclose(rotation.apply(x, 10), rotation.apply(x)[:, :10], atol=1e-6)


def test_pca_holds_the_most_energy_at_every_width(documents: Vectors) -> None:
    energy = [np.cumsum((r.apply(documents.all()) ** 2).mean(axis=0)) for r in all_kinds(documents)]
    pca = energy[2]
    assert (np.diff(pca, 2) <= 1e-6).all()  # no coordinate holds more than the one before
    for other in energy:
        assert (pca >= other - 1e-5).all()


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_kyfan_has_the_largest_margin_at_every_width(seed: int) -> None:
    """tr(Π_m S) against random rotations and the identity."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal((32, 32))
    s = s + s.T
    best = kyfan(s, np.eye(32), 0.0)
    for other in (Rotation.identity(32), Rotation.random(32, seed)):
        margins = [np.cumsum(np.einsum("md,de,me->m", r.matrix, s, r.matrix)) for r in (best, other)]
        assert (margins[0] >= margins[1] - 1e-3).all()


def test_second_moment_of_a_sample_is_seeded(documents: Vectors) -> None:
    assert np.array_equal(second_moment(documents, 100, seed=1), second_moment(documents, 100, seed=1))
    assert not np.array_equal(second_moment(documents, 100, seed=1), second_moment(documents, 100, seed=2))
    x = unit(documents.values).astype(np.float64)
    assert np.allclose(second_moment(documents), x.T @ x / len(x))


def test_what_is_no_rotation_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"off the identity by 3"):
        Rotation(2 * np.eye(D, dtype=np.float32), "bad")
    with pytest.raises(ArtifactError, match="48 × 3"):
        Rotation(np.eye(D, 3, dtype=np.float32), "bad")


def test_wrong_widths_are_refused(documents: Vectors) -> None:
    rotation = Rotation.identity(D)
    with pytest.raises(OptionError, match="49 is not between 1 and the encoder width 48"):
        rotation.apply(documents.all(), 49)
    with pytest.raises(OptionError, match="64 wide, the rotation 48"):
        rotation.apply(np.zeros((1, 64), np.float32))


def test_fingerprint_names_the_matrix() -> None:
    assert Rotation.random(D, 1).fingerprint == Rotation.random(D, 1).fingerprint != Rotation.random(D, 2).fingerprint
