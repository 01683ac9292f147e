"""The plain funnel: a fixed number of candidates at each width, the same for every query. A baseline."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import OptionError
from ..stages import Decision, Stage

STEPS = ((64, 100), (128, 40), (256, 20))


@dataclass(frozen=True)
class Funnel:
    """At each width of `steps` (width, candidates kept) the best go on to the next, and at last to `target`."""

    target: int
    steps: tuple[tuple[int, int], ...] = STEPS
    name = "funnel"

    def __post_init__(self) -> None:
        if not self.steps or self.target < self.start:
            raise OptionError(f"target width {self.target} is below the funnel's first width {self.steps[0][0] if self.steps else 'none'}")
        widths = [width for width, _ in self.steps]
        if widths[0] < 1 or any(low >= high for low, high in pairwise(widths)) or min(count for _, count in self.steps) < 1:
            raise OptionError(f"a funnel's widths rise from at least 1, and each keeps at least one candidate; these are {self.steps}")

    @property
    def start(self) -> int:
        """The width at which every document is scanned."""
        return self.steps[0][0]

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return self.target

    def decide(self, stage: Stage) -> Decision:
        """The best by prefix score go on (and those that equal the last of them)."""
        width = int(stage.widths[0])  # all queries go the same way
        steps = [step for step in self.steps if width <= step[0] < self.target]
        if width >= self.target:
            return Decision(stage.alive, stage.widths)
        count = min(steps[0][1], stage.candidates.shape[1])
        following = steps[1][0] if len(steps) > 1 else self.target
        scores = np.where(stage.alive, stage.scores, -np.inf)
        least = -np.partition(-scores, count - 1, axis=1)[:, count - 1, None]
        return Decision(stage.alive & (scores >= least), np.full_like(stage.widths, following))
