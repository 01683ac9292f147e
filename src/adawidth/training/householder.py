"""Products of Householder reflections in compact WY form (methods 2.1, 2.2; the paper's equations 2 and 3).

    Rᵀ = H(v₁) H(v₂) … H(v_F) = I − V T Vᵀ,     H(v) = I − 2 v vᵀ,     T = (½ I + striu(VᵀV))⁻¹

T is one triangular solve, so the whole product is differentiable and no loop over reflections remains.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import AdaWidthError, OptionError


def paired_start(reflections: int, width: int, seed: int) -> Tensor:
    """Gaussian directions, each twice in a row: the product is the identity, so training starts at the frozen encoder. (F, D)"""
    if reflections < 2 or reflections % 2:
        raise OptionError(f"reflections come in pairs: {reflections} is not an even number of at least 2")
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(reflections // 2, width, generator=generator).repeat_interleave(2, dim=0)


def wy_factors(u: Tensor) -> tuple[Tensor, Tensor]:
    """V (D, F) with unit columns and the inverse of T (F, F) for the product of reflections in the rows of u (F, D)."""
    v = functional.normalize(u, dim=1).T
    return v, torch.triu(v.T @ v, diagonal=1) + 0.5 * torch.eye(v.shape[1], dtype=v.dtype)


def rotate(x: Tensor, u: Tensor, width: int | None = None) -> Tensor:
    """The leading `width` coordinates of x Rᵀ, by whichever of the two equal ways is cheaper. (n, D) -> (n, m)"""
    v, inverse = wy_factors(u)
    width = v.shape[0] if width is None else width
    if 2 * v.shape[1] < width:  # x − ((x V) T) Vᵀ
        projected: Tensor = torch.linalg.solve_triangular(inverse, x @ v, upper=True, left=False)
        return x[:, :width] - projected @ v[:width].T
    leading: Tensor = torch.linalg.solve_triangular(inverse, v[:width].T, upper=True)  # T Vᵀ, its first columns
    return x @ (torch.eye(v.shape[0], width, dtype=v.dtype) - v @ leading)


def materialise(u: Tensor) -> Tensor:
    """R itself, computed in float64. (D, D)"""
    u = u.detach().double()
    return rotate(torch.eye(u.shape[1], dtype=u.dtype), u).T


def verify(u: Tensor, seed: int = 0) -> None:
    """The paper's check before each fit: inner products kept, and agreement with one reflection after the other."""
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
        generator = torch.Generator().manual_seed(seed)
        y = functional.normalize(torch.randn(64, u.shape[1], generator=generator, dtype=torch.float64), dim=1).to(dtype)
        rows = u.detach().to(dtype)
        rotated, sequential = rotate(y, rows), y
        for v in functional.normalize(rows, dim=1):
            sequential = sequential - 2 * torch.outer(sequential @ v, v)
        for what, found, wanted in (("inner products", rotated @ rotated.T, y @ y.T), ("sequential product", rotated, sequential)):
            error = float((found - wanted).abs().max())
            if not error <= tolerance:
                raise AdaWidthError(f"the WY form is off the {what} by {error:.2g} in {dtype}; at most {tolerance:g} is allowed")
