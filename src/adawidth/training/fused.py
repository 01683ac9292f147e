"""The rank and KL losses over shared candidates at all widths in one pass, with their gradient worked out by hand.

    loss = mean over widths m and queries b of   r · −log Σ_pos p + w · KL(t ‖ p),     p = softmax(s_m / θ)
    ∂loss/∂(s_m / θ) = (r + w) p − r p_pos / Σ p_pos − w t

One softmax serves both terms, partial sums continue from width to width, and gradients gather from the widest down: the
products cost as much as the widest width alone. Equal to losses.py under autograd (tests), at less than half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

TINY = 1e-12


class _Objective(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, d: Tensor, positive: Tensor, teacher: Tensor, widths: Sequence[int], terms: tuple[float, float, float]
    ) -> Tensor:
        rank, kl, theta = terms
        loss, sums, low, kept = 0.0, torch.zeros(len(q), len(d)), 0, []
        q_energy, d_energy = torch.zeros(len(q), 1), torch.zeros(1, len(d))
        of_documents = ctx.needs_input_grad[1]
        entropy = float(torch.special.xlogy(teacher, teacher).sum()) if kl else 0.0
        for m in widths:
            q_part, d_part = q[:, low:m], d[:, low:m]
            sums = torch.addmm(sums, q_part, d_part.T)
            q_energy = q_energy + q_part.square().sum(dim=1, keepdim=True)
            d_energy = d_energy + d_part.square().sum(dim=1)
            scale = q_energy.clamp(min=TINY).rsqrt() * d_energy.clamp(min=TINY).rsqrt()  # (B, c)
            scores = sums * scale
            shares = torch.softmax(scores / theta, dim=1)
            gradient = shares * (rank + kl)
            if rank:
                on_positives = shares * positive
                mass = on_positives.sum(dim=1, keepdim=True).clamp(min=1e-30)
                gradient -= on_positives * (rank / mass)
                loss -= rank * float(mass.log().sum())
            if kl:
                gradient -= kl * teacher
                loss += kl * (entropy - float((teacher * shares.clamp(min=1e-30).log()).sum()))
            gradient *= 1 / (theta * len(q) * len(widths))
            along = gradient * scores  # renormalising takes back what lies along a row itself
            q_along = along.sum(dim=1, keepdim=True) / q_energy.clamp(min=TINY)
            d_along = (along.sum(dim=0) / d_energy.clamp(min=TINY)).T
            kept.append((low, m, gradient * scale, q_along, d_along))
            low = m
        q_gradient, d_gradient = torch.zeros_like(q), torch.zeros_like(d)
        total, q_total, d_total = torch.zeros_like(sums), torch.zeros(len(q), 1), torch.zeros(len(d), 1)
        for low, m, gradient, q_along, d_along in reversed(kept):
            total, q_total, d_total = total + gradient, q_total + q_along, d_total + d_along
            q_gradient[:, low:m] = total @ d[:, low:m] - q_total * q[:, low:m]
            if of_documents:
                d_gradient[:, low:m] = total.T @ q[:, low:m] - d_total * d[:, low:m]
        ctx.save_for_backward(q_gradient, d_gradient)
        return torch.tensor(loss / (len(q) * len(widths)))

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        q_gradient, d_gradient = ctx.saved_tensors
        return outer * q_gradient, outer * d_gradient if ctx.needs_input_grad[1] else None, None, None, None, None


def prefix_objective(
    q: Tensor, d: Tensor, positive: Tensor, teacher: Tensor, widths: Sequence[int], *, rank: float, kl: float, theta: float
) -> Tensor:
    """The loss of rotated queries (B, m) and shared candidates (c, m); which are relevant (B, c) 0 or 1, the teacher's shares (B, c)."""
    loss: Tensor = _Objective.apply(q, d, positive, teacher, widths, (rank, kl, theta))  # type: ignore[no-untyped-call]
    return loss
