"""Axes as kernels multiply a query by them: 32 at a time, their coordinates side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.float16 import ABREAST
from ..types import F32, U16

CACHED = 1 << 17  # bytes of axes that stay in a core's own cache beside codes and rows: more are read as float16, in half of the time


def panels(axes: F32, kind: type[np.floating[Any]] = np.float16) -> U16:
    """Axes in panels of 32; zeros fill the last one. (A, D) -> (P, D, 32) of float16 or (P, D, 64) of float32, as bits"""
    largest = float(np.finfo(kind).max)
    found = np.zeros((-(-len(axes) // ABREAST), axes.shape[1], ABREAST), kind)
    for panel in range(len(found)):
        part = axes[panel * ABREAST :][:ABREAST]
        found[panel, :, : len(part)] = np.clip(part, -largest, largest).T
    return found.view(np.uint16)


def of_rotation(matrix: F32) -> U16:
    """The panels of a rotation or a query map."""
    return panels(matrix, np.float32 if matrix.nbytes <= CACHED else np.float16)
