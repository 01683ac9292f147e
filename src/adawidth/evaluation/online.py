"""The streaming controller over one of a model's policies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from ..policies import Policy
from ..policies.budget import Online
from ..policies.select import Policies
from ..policies.taper import TaperModel
from ..stages import Stage
from ..types import F64


@dataclass(frozen=True, eq=False)
class _TaperDial:
    """The taper from one start width as the controller turns it. It keeps no signals of dev queries, so it tells no drift."""

    taper: TaperModel
    start: int
    k: int

    @property
    def reference(self) -> F64:
        return np.empty(0)

    def policy(self, *, budget: float) -> Policy:
        return self.taper.policy(budget=budget, start=self.start, k=self.k)

    def signal(self, stage: Stage) -> F64:
        return np.zeros(len(stage))


def controller(policies: Policies, policy: str | None, *, budget: float | None, quality: float | None, start: int | None, k: int) -> Online:
    """A controller that keeps to the budget in query order: over the taper, or over a router."""
    if budget is None or quality is not None:
        raise OptionError("the online controller keeps to a budget, which has to be given, and to no quality")
    match policy or "taper":
        case "taper":
            begins = policies.taper.policy(budget=budget, start=start, k=k).start
            return Online(_TaperDial(policies.taper, begins, k), budget)
        case "router" | "paper-router" as name:
            router = policies.routed(name)
            if start not in (None, router.start):
                raise OptionError(f"the {name} starts at {router.start}, not at {start}")
            return Online(router, budget)
        case other:
            raise OptionError(f"the policy {other!r} has no budget to keep online; taper and routers have")
