"""The WY form against the product it stands for, and what F reflections can reach (methods 2.1 to 2.3)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.errors import AdaWidthError, OptionError
from adawidth.training import householder
from adawidth.training.householder import materialise, paired_start, rotate, verify, wy_factors


def reflections(count: int, width: int, seed: int) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sequential(u: torch.Tensor) -> torch.Tensor:
    """Rᵀ as the product itself: H(v₁) H(v₂) … H(v_F)."""
    product = torch.eye(u.shape[1], dtype=u.dtype)
    for row in u:
        v = row / row.norm()
        product = product @ (torch.eye(len(v), dtype=u.dtype) - 2 * torch.outer(v, v))
    return product


def recursion(u: torch.Tensor) -> torch.Tensor:
    """T, column by column (the paper's algorithm 1)."""
    v = (u / u.norm(dim=1, keepdim=True)).T
    gram = v.T @ v
    t = torch.zeros_like(gram)
    for j in range(len(gram)):
        t[j, j] = 2
        if j:
            t[:j, j] = -2 * t[:j, :j] @ gram[:j, j]
    return t


shapes = st.tuples(st.integers(1, 20).map(lambda pairs: 2 * pairs), st.integers(32, 48), st.integers(0, 10_000))


@given(shapes)
@settings(max_examples=50, deadline=None)
def test_wy_is_the_sequential_product_and_orthogonal(shape: tuple[int, int, int]) -> None:
    u = reflections(*shape)
    r = materialise(u)
    assert torch.allclose(r.T, sequential(u), atol=1e-10)
    assert torch.allclose(r @ r.T, torch.eye(u.shape[1], dtype=torch.float64), atol=1e-10)


@given(shapes)
@settings(max_examples=50, deadline=None)
def test_closed_form_is_the_recursion(shape: tuple[int, int, int]) -> None:
    u = reflections(*shape)
    assert torch.allclose(torch.linalg.inv(wy_factors(u)[1]), recursion(u), atol=1e-9)


@given(shapes, st.integers(1, 32))
@settings(max_examples=50, deadline=None)
def test_both_ways_to_rotate_agree(shape: tuple[int, int, int], width: int) -> None:
    u = reflections(*shape)
    x = reflections(5, u.shape[1], 1)
    assert torch.allclose(rotate(x, u, width), (x @ sequential(u))[:, :width], atol=1e-10)


def test_pairs_start_at_the_identity() -> None:
    u = paired_start(64, 96, seed=3)
    assert torch.allclose(materialise(u), torch.eye(96, dtype=torch.float64), atol=1e-12)
    assert torch.equal(u[0::2], u[1::2])


def test_gradients_of_a_pair_are_opposite_at_the_start() -> None:
    u = paired_start(8, 40, seed=0).double().requires_grad_(True)
    x = reflections(16, 40, 5)
    (rotate(x, u, 10) ** 3).sum().backward()
    assert torch.allclose(u.grad[0::2], -u.grad[1::2], atol=1e-9)
    assert u.grad.abs().max() > 1e-3


@pytest.mark.parametrize("count", [0, 1, 7])
def test_odd_reflections_are_refused(count: int) -> None:
    with pytest.raises(OptionError, match=str(count)):
        paired_start(count, 64, seed=0)


@pytest.mark.parametrize(("count", "width"), [(8, 32), (16, 48), (30, 40)])
def test_prefix_subspace_keeps_what_reflections_cannot_move(count: int, width: int) -> None:
    """The rotated m-prefix shares at least m − F dimensions with the original one."""
    r = materialise(reflections(count, 64, 7)).numpy()
    overlap = np.linalg.svd(r[:width, :width], compute_uv=False)
    assert (overlap > 1 - 1e-9).sum() >= width - count


def test_m_reflections_reach_any_m_dimensional_subspace() -> None:
    width, m = 40, 6
    target = np.linalg.qr(np.random.default_rng(0).standard_normal((width, m)))[0]  # (D, m)
    product, vectors = np.eye(width), []
    for j in range(m):  # carry e_j onto column j, one reflection each, as QR does
        now = product.T @ target[:, j]
        v = np.eye(width)[j] - now
        v[:j] = 0
        v /= np.linalg.norm(v)
        vectors.append(v)
        product = product @ (np.eye(width) - 2 * np.outer(v, v))
    span = product[:, :m]
    assert np.linalg.svd(span.T @ target, compute_uv=False).min() > 1 - 1e-9
    u = torch.from_numpy(np.array(vectors))
    assert torch.allclose(materialise(u).T, torch.from_numpy(product), atol=1e-10)


def test_verify_passes_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    verify(reflections(64, 96, 0).float())
    monkeypatch.setattr(householder, "rotate", lambda x, u, width=None: x * 1.01)
    with pytest.raises(AdaWidthError, match="inner products"):
        verify(reflections(64, 96, 0))
