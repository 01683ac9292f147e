"""Funnels: a fixed number of candidates goes on at each width, the same for every query. PCA, no labels (methods 13, item 50)."""

from __future__ import annotations

from typing import ClassVar

from ..data import Learning
from ..hits import Hits
from ..policies.funnel import STEPS, Funnel
from ..rotation import Rotation
from ..stages import Stage
from ..stages.loop import SHORTLIST, run
from .dialled import Dialled

FIRST = (32, 200)  # the step that goes before the others where the scan is at 32


class SteppedFunnel(Dialled):
    """From 64 to full width in steps that keep 100, 40 and 20 candidates, from 32 first 200; the knob multiplies all counts."""

    KNOBS: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.5, 5.0, 12.5, 25.0, float("inf"))  # costs are linear between

    def steps(self, start: int, knob: float, k: int) -> tuple[tuple[int, int], ...]:
        """(width, candidates that go on from it), never fewer than k nor more than the shortlist."""
        return tuple((width, _count(knob * count, k)) for width, count in (FIRST, *STEPS) if width >= start)

    def read(self, stage: Stage, knob: float, k: int) -> Hits:
        """The best at each width go on to the next, the last of them to full width."""
        done = run(stage, Funnel(stage.backend.width, self.steps(int(stage.widths[0]), knob, k)))
        return Hits(*done.ranked(k), done.mean_widths, stage.backend.documents)

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.pca(learning.documents, seed=seed)


class PlainFunnel(SteppedFunnel):
    """One step: the best of the shortlist are rescored at full width; the knob is their share."""

    KNOBS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, float("inf"))

    def steps(self, start: int, knob: float, k: int) -> tuple[tuple[int, int], ...]:
        """The start width alone."""
        return ((start, _count(knob * SHORTLIST, k)),)


def _count(count: float, k: int) -> int:
    """Rounded down, but for what floating-point numbers lose."""
    return max(k, int(min(count, SHORTLIST) + 1e-6))
