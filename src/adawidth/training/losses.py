"""The training losses at one width (methods 2.5; the paper's equations 6 to 9). S are prefix scores, G frozen full-width scores."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

THETA = 0.05  # temperature of the contrastive term and of the difficulty weights


def rank_loss(scores: Tensor, positive: Tensor, theta: float = THETA) -> Tensor:
    """−log of the softmax mass on the relevant candidates, mean over queries. (B, c), (B, c) bool"""
    logits = scores / theta
    on_positives = torch.logsumexp(logits.masked_fill(~positive, -torch.inf), dim=1)
    return (torch.logsumexp(logits, dim=1) - on_positives).mean()


def score_loss(scores: Tensor, teacher: Tensor, theta_b: float = THETA) -> Tensor:
    """|S − G|, weighted by how contestable a candidate is at full width: W = exp(−(max G − G) / θ_b)."""
    weights = torch.exp(-(teacher.amax(dim=1, keepdim=True) - teacher) / theta_b).detach()
    return ((weights * (scores - teacher).abs()).sum(dim=1) / weights.sum(dim=1)).mean()


def geometry_loss(prefixes: Tensor, queries: Tensor) -> Tensor:
    """Mean |Π Πᵀ − Q Qᵀ| over all pairs of queries of the batch; prefixes renormalised. (B, m), (B, D)"""
    return (prefixes @ prefixes.T - queries @ queries.T).abs().mean()


def kl_loss(scores: Tensor, teacher: Tensor, theta: float = THETA) -> Tensor:
    """KL(softmax(G / θ) ‖ softmax(S / θ)): the order of the candidates is to be kept, not the level of their scores."""
    target = functional.log_softmax(teacher / theta, dim=1)
    return functional.kl_div(functional.log_softmax(scores / theta, dim=1), target, reduction="batchmean", log_target=True)
