"""The Ky Fan rotation (methods 9.2): supervised, in closed form, the best subspace for the mean margin at every width at once.

S = sym mean q (d⁺ − d⁻)ᵀ;   the mean prefix margin at width m is tr(Π_m S), largest on S's leading m eigenvectors.
"""

from __future__ import annotations

import numpy as np

from ..rotation import Rotation
from ..types import F64
from .ranking import DevCurve
from .task import Task, mean

ETAS = (-0.1, 0.0, 0.1, 0.3, 1.0)  # how much of the documents' second moment is added; a little less than none can help


def margin_matrix(task: Task, hard: int = 16, random: int = 16, seed: int = 0) -> F64:
    """S, from every train query's mean positive and mean negative (the hardest of its shortlist and others). (D, D)"""
    rng = np.random.default_rng(seed)
    candidates, usable = task.candidates, task.candidates.usable()
    total = np.zeros((task.width, task.width))
    for start in range(0, len(usable), 1024):
        part = usable[start : start + 1024]
        counts = candidates.counts[part][:, None]
        others = rng.integers(np.minimum(hard, counts - 1), counts, (len(part), random))
        places = np.concatenate([np.arange(hard)[None] % counts, others], axis=1)
        negatives = task.documents[candidates.negatives[part[:, None], places]].mean(axis=1)
        positives = np.stack([task.documents[candidates.positives.positives(query)].mean(axis=0) for query in part])
        total += (task.queries[part].T @ (positives - negatives)).astype(np.float64)
    total /= max(len(usable), 1)
    return (total + total.T) / 2


def kyfan(margin: F64, moment: F64, eta: float) -> Rotation:
    """Eigenvectors of S + η Σ, Σ the documents' second moment scaled to the trace of S's positive part."""
    positive = np.linalg.eigvalsh(margin).clip(min=0).sum()
    return Rotation.principal(margin + eta * positive / np.trace(moment) * moment, "kyfan")


def best_kyfan(task: Task, margin: F64, moment: F64) -> tuple[Rotation, float, DevCurve]:
    """The η that is best on dev: the rotation, η and its dev curve."""
    tried = []
    for eta in ETAS:
        rotation = kyfan(margin, moment, eta)
        tried.append((rotation, eta, task.dev_curve(rotation)))
    return max(tried, key=lambda trial: mean(trial[2]))
