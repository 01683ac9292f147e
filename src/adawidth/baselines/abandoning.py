"""Early abandoning: the candidates of a shortlist one after another, each read block by block while it may be among the k best.

A candidate is held against the k-th best score that was read in full before it, so the candidates of a query stand at different
widths at one time; this is what the stage loop's policies do not do.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from ..hits import Hits
from ..stages import Decision, Stage
from ..types import I64, Floats
from .dialled import Dialled


class Abandoning(Dialled):
    """Subclasses say at which widths a candidate is tested, and what score it may still reach."""

    @abstractmethod
    def levels(self, start: int, width: int) -> tuple[int, ...]:
        """The widths at which a candidate may be given up, from the start width to the full one."""

    @abstractmethod
    def hopes(self, stage: Stage, knob: float) -> Floats:
        """The most that each candidate's score at full width is taken to be. (Q, C)"""

    def read(self, stage: Stage, knob: float, k: int) -> Hits:
        """Best first by the scan. Whatever is not given up is read in full, and ranked by that."""
        levels = np.array(self.levels(int(stage.widths[0]), stage.backend.width))
        hopes = []
        for width in levels.tolist():
            stage = stage.backend.rescore(stage, Decision(stage.alive, np.full_like(stage.widths, width)))
            hopes.append(self.hopes(stage, knob))
        last = np.where(stage.alive, levels[abandon(np.stack(hopes, axis=2), stage.scores, k)], 0)
        done = replace(stage, last=last, coordinates=last.sum(axis=1))
        return Hits(*done.ranked(k), done.mean_widths, stage.backend.documents)


def abandon(hopes: Floats, scores: Floats, k: int) -> I64:
    """The level that each candidate was read to: the first where its hope is below the k-th best full score before it, or the last.

    (Q, C, L), (Q, C) -> (Q, C)
    """
    levels = np.empty(scores.shape, np.int64)
    best = np.full((len(scores), k), -np.inf)  # full scores so far
    last = hopes.shape[2] - 1
    for place in range(scores.shape[1]):
        worst = best.argmin(axis=1)
        kth = np.take_along_axis(best, worst[:, None], axis=1)  # (Q, 1)
        below = hopes[:, place] < kth
        below[:, last] = True  # there is nothing left to read
        levels[:, place] = below.argmax(axis=1)
        enters = (levels[:, place] == last) & (scores[:, place] > kth[:, 0])
        best[enters, worst[enters]] = scores[enters, place]
    return levels
