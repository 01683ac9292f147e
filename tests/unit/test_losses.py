"""The losses against the formulas written out in NumPy (methods 2.5)."""

import numpy as np
import torch

from adawidth.training.losses import geometry_loss, kl_loss, rank_loss, score_loss

rng = np.random.default_rng(0)
S, G = rng.uniform(-1, 1, (5, 9)), rng.uniform(-1, 1, (5, 9))
P = np.zeros((5, 9), bool)
P[:, 0] = P[2, 4] = True


def tensors(*arrays):
    return [torch.from_numpy(a) for a in arrays]


def test_rank_loss():
    e = np.exp(S / 0.05)
    expected = np.mean(np.log(e.sum(1)) - np.log((e * P).sum(1)))
    assert np.isclose(float(rank_loss(*tensors(S, P))), expected)


def test_rank_loss_is_zero_when_all_mass_is_on_positives():
    scores = np.where(P, 1.0, -1.0)
    assert float(rank_loss(*tensors(scores, P))) < 1e-12


def test_score_loss():
    w = np.exp(-(G.max(1, keepdims=True) - G) / 0.05)
    expected = np.mean((w * np.abs(S - G)).sum(1) / w.sum(1))
    assert np.isclose(float(score_loss(*tensors(S, G))), expected)


def test_score_loss_sends_no_gradient_through_its_weights():
    teacher = torch.from_numpy(G).requires_grad_(True)
    score_loss(torch.from_numpy(S), teacher).backward()
    w = np.exp(-(G.max(1, keepdims=True) - G) / 0.05)
    expected = -np.sign(S - G) * w / w.sum(1, keepdims=True) / len(S)
    assert np.allclose(teacher.grad.numpy(), expected)


def test_geometry_loss():
    q, p = rng.standard_normal((6, 40)), rng.standard_normal((6, 12))
    assert np.isclose(float(geometry_loss(*tensors(p, q))), np.abs(p @ p.T - q @ q.T).mean())


def test_kl_loss():
    def softmax(x):
        e = np.exp(x / 0.05)
        return e / e.sum(1, keepdims=True)

    p, q = softmax(G), softmax(S)
    assert np.isclose(float(kl_loss(*tensors(S, G))), np.mean((p * np.log(p / q)).sum(1)))
    assert abs(float(kl_loss(*tensors(G + 0.3, G)))) < 1e-9  # the level of the scores does not matter
