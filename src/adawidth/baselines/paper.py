"""The paper as it stands: its rotation (64 reflections, its three losses) and its router over 64, 128 and 256 coordinates."""

from __future__ import annotations

from typing import Self

from ..data import Learning
from ..policies import Policy
from ..policies.router import RouterModel
from ..training.extras import require
from ..training.fit import fit_model
from .base import Staged, plain


class Paper(Staged):
    """Outside the widths it routes between, every document is ranked at the budget."""

    router: RouterModel | None = None
    REFLECTIONS = 64

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns the rotation by the paper's recipe, and the router; returns itself."""
        require("lightgbm")
        found = fit_model(learning, recipe="paper", seed=seed)
        self.rotation, self.router = found.rotation, found.policies.router
        return self

    def policy(self, budget: int, k: int) -> Policy:
        """The router at this mean width."""
        if self.router is None or not self.router.start < budget < self.router.widths[-1]:
            return plain(budget)
        return self.router.policy(budget=budget)

    @property
    def parameters(self) -> int:
        """The reflections' directions."""
        return 0 if self.rotation is None else self.REFLECTIONS * self.rotation.width
