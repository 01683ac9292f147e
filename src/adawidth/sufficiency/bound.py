"""The paper's bounds on the width that is enough (its section 4), for one query and for a workload.

If a random document overtakes the relevant one at width m with probability at most A exp(-γ m), the rate γ, then by
Markov's inequality at most N A exp(-γ m) / k is the probability that k of N do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True)
class Decay:
    """How the probability that a document overtakes falls with the width: floor + constant · exp(-rate · m)."""

    rate: float
    constant: float = 1.0
    floor: float = 0.0  # what is left at any width; the paper has 0, yet some relevant documents are outside the top k at full width

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.constant > 0 and 0 <= self.floor < 1):
            raise OptionError(f"a decay needs a rate and a constant above 0 and a floor in [0, 1): {self}")

    def failure(self, width: float, documents: float, k: int) -> float:
        """Bound on the probability that the relevant document is outside the top k at this width."""
        return min(1.0, documents * (self.floor + self.constant * math.exp(-self.rate * width)) / k)

    def sufficient_width(self, documents: float, k: int, delta: float) -> float:
        """The width from which `failure` is at most `delta`; infinite where the floor alone exceeds it."""
        room = delta * k / documents - self.floor
        return math.inf if room <= 0 else max(0.0, math.log(self.constant / room) / self.rate)

    def first_hit_tail(self, width: float, documents: float, k: int) -> float:
        """Bound on the probability that the required width is above this one; the floor must be 0, else it is 1."""
        if self.floor:
            return 1.0
        return min(1.0, documents * self.constant / k * math.exp(-self.rate * width) / -math.expm1(-self.rate))


@dataclass(frozen=True)
class Envelope:
    """The failure of a workload: at most kappa · N^alpha · k^-beta · exp(-rate · m)."""

    rate: float
    kappa: float
    alpha: float
    beta: float

    def failure(self, width: float, documents: float, k: int) -> float:
        """Bound on the probability that a relevant document is outside the top k at this width."""
        return min(1.0, self.kappa * math.exp(self.alpha * math.log(documents) - self.beta * math.log(k) - self.rate * width))

    def law(self, delta: float) -> tuple[float, float, float]:
        """(a, b, c) of the width a + b ln N + c ln k at which `failure` is `delta`."""
        return math.log(self.kappa / delta) / self.rate, self.alpha / self.rate, -self.beta / self.rate
