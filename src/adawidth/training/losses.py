"""The training losses at one width (methods 2.5; the paper's equations 6 to 9). S are prefix scores, G frozen full-width scores."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..types import Mask

THETA = 0.05  # temperature of the contrastive term and of the difficulty weights


def log_shares(scores: Tensor, theta: float = THETA) -> Tensor:
    """Log of each candidate's share of the softmax at temperature θ. (B, c) -> (B, c)"""
    return functional.log_softmax(scores / theta, dim=1)


def rank_loss(shares: Tensor, positive: Tensor) -> Tensor:
    """−log of the share that the relevant candidates have together, mean over queries. (B, c) log shares, (B, P) columns, -1 for none"""
    relevant = shares.gather(1, positive.clamp(min=0)).masked_fill(positive < 0, -torch.inf)
    return -torch.logsumexp(relevant, dim=1).mean()


def score_loss(scores: Tensor, teacher: Tensor, theta_b: float = THETA) -> Tensor:
    """|S − G|, weighted by how contestable a candidate is at full width: W = exp(−(max G − G) / θ_b)."""
    weights = torch.exp(-(teacher.amax(dim=1, keepdim=True) - teacher) / theta_b).detach()
    return ((weights * (scores - teacher).abs()).sum(dim=1) / weights.sum(dim=1)).mean()


def geometry_loss(prefixes: Tensor, queries: Tensor) -> Tensor:
    """Mean |Π Πᵀ − Q Qᵀ| over all pairs of queries of the batch; prefixes renormalised. (B, m), (B, D)"""
    return (prefixes @ prefixes.T - queries @ queries.T).abs().mean()


def columns(mask: Mask) -> Tensor:
    """The columns that are set in each row, padded with -1. (B, c) -> (B, P)"""
    rows, found = np.nonzero(mask)
    counts = np.bincount(rows, minlength=len(mask))
    out = np.full((len(mask), max(1, int(counts.max(initial=0)))), -1, np.int64)
    out[rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)] = found
    return torch.from_numpy(out)
