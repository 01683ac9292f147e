"""The losses against the formulas written out in NumPy (methods 2.5)."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from adawidth.training.fused import prefix_objective
from adawidth.training.losses import columns, geometry_loss, kl_loss, log_shares, rank_loss, score_loss

rng = np.random.default_rng(0)
S, G = rng.uniform(-1, 1, (5, 9)), rng.uniform(-1, 1, (5, 9))
P = np.zeros((5, 9), bool)
P[:, 0] = P[2, 4] = True


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(a) for a in arrays]


def test_rank_loss() -> None:
    e = np.exp(S / 0.05)
    expected = np.mean(np.log(e.sum(1)) - np.log((e * P).sum(1)))
    assert np.isclose(float(rank_loss(log_shares(torch.from_numpy(S)), columns(P))), expected)


def test_rank_loss_is_zero_when_all_mass_is_on_positives() -> None:
    scores = np.where(P, 1.0, -1.0)
    assert float(rank_loss(log_shares(torch.from_numpy(scores)), columns(P))) < 1e-12


def test_columns_are_those_that_are_set() -> None:
    assert columns(P).tolist() == [[0, -1], [0, -1], [0, 4], [0, -1], [0, -1]]


def test_score_loss() -> None:
    w = np.exp(-(G.max(1, keepdims=True) - G) / 0.05)
    expected = np.mean((w * np.abs(S - G)).sum(1) / w.sum(1))
    assert np.isclose(float(score_loss(*tensors(S, G))), expected)


def test_score_loss_sends_no_gradient_through_its_weights() -> None:
    teacher = torch.from_numpy(G).requires_grad_(True)
    score_loss(torch.from_numpy(S), teacher).backward()
    w = np.exp(-(G.max(1, keepdims=True) - G) / 0.05)
    expected = -np.sign(S - G) * w / w.sum(1, keepdims=True) / len(S)
    assert np.allclose(teacher.grad.numpy(), expected)


def test_geometry_loss() -> None:
    q, p = rng.standard_normal((6, 40)), rng.standard_normal((6, 12))
    assert np.isclose(float(geometry_loss(*tensors(p, q))), np.abs(p @ p.T - q @ q.T).mean())


def test_kl_loss() -> None:
    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x / 0.05)
        return e / e.sum(1, keepdims=True)

    p, q = softmax(G), softmax(S)
    assert np.isclose(float(kl_loss(*map(log_shares, tensors(S, G)))), np.mean((p * np.log(p / q)).sum(1)))
    assert abs(float(kl_loss(*map(log_shares, tensors(G + 0.3, G))))) < 1e-9  # the level of the scores does not matter


@pytest.mark.parametrize(("rank", "kl"), [(1.0, 0.0), (1.0, 0.3), (0.0, 1.0)])
def test_fused_objective_is_the_plain_one_with_its_gradient(rank: float, kl: float) -> None:
    widths, theta = [8, 16, 24], 0.1
    generator = torch.Generator().manual_seed(0)
    q, d = (torch.randn(n, 24, generator=generator).requires_grad_(True) for n in (7, 19))
    mask = np.zeros((7, 19), bool)
    mask[np.arange(7), np.arange(7)] = mask[3, 12] = True
    teacher = torch.softmax(torch.randn(7, 19, generator=generator), dim=1)
    plain = torch.zeros(())
    for m in widths:
        shares = log_shares(functional.normalize(q[:, :m], dim=1) @ functional.normalize(d[:, :m], dim=1).T, theta)
        plain = plain + (rank * rank_loss(shares, columns(mask)) + kl * kl_loss(shares, teacher.log())) / len(widths)
    expected = torch.autograd.grad(plain, (q, d))
    fused = prefix_objective(q, d, torch.from_numpy(mask).float(), teacher, widths, rank=rank, kl=kl, theta=theta)
    found = torch.autograd.grad(fused, (q, d))
    assert torch.allclose(fused, plain, rtol=1e-5)
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-6)
