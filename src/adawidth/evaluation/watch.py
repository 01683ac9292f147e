"""A policy under observation: how many candidates go on at each step, and where queries end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ..policies import Policy
from ..stages import Decision, Stage


@dataclass(frozen=True, eq=False)
class Watched:
    """Decides as the policy does and counts. One workload each."""

    policy: Policy
    _read: Counter[int] = field(default_factory=Counter)  # width -> candidates read on to it, over all queries
    _moved: Counter[int] = field(default_factory=Counter)  # width -> queries that came to it less those that left it

    @property
    def name(self) -> str:
        """The policy's."""
        return self.policy.name

    @property
    def start(self) -> int:
        """The policy's."""
        return self.policy.start

    @property
    def reach(self) -> int:
        """The policy's."""
        return self.policy.reach

    def decide(self, stage: Stage) -> Decision:
        """The policy's decision, counted."""
        decision = self.policy.decide(stage)
        moving = decision.widths > stage.widths
        kept = (decision.keep & stage.alive).sum(axis=1)
        for width in np.unique(decision.widths[moving]).tolist():
            here = moving & (decision.widths == width)
            self._read[width] += int(kept[here].sum())
            self._moved[width] += int(here.sum())
        self._moved.subtract(stage.widths[moving].tolist())
        return decision

    def survivors(self, queries: int, shortlist: int) -> dict[int, float]:
        """Candidates read to each width, mean over all queries; those that stop early count 0 beyond."""
        return {self.start: float(shortlist)} | {width: self._read[width] / max(queries, 1) for width in sorted(self._read)}

    def ends(self, queries: int) -> dict[int, int]:
        """How many queries end at each width."""
        counts = Counter({self.start: queries})
        counts.update(self._moved)
        return {width: counts[width] for width in sorted(counts) if counts[width]}
