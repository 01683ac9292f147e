"""From words to a policy: what `policy=`, `budget=`, `quality=`, `width=` and `start=` mean for one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..errors import OptionError
from ..types import Array
from .base import Policy
from .certify import Certify
from .fixed import Fixed
from .router import RouterModel
from .stored import entry
from .taper import TaperModel

NAMES = ("taper", "router", "paper-router", "fixed", "certify")


@dataclass(frozen=True, eq=False)
class Policies:
    """The policies that a fitted model has."""

    width: int  # the encoder width D
    taper: TaperModel
    router: RouterModel | None = None
    paper_router: RouterModel | None = None

    def choose(
        self,
        policy: str | None = None,
        *,
        budget: float | None = None,
        quality: float | None = None,
        width: int | None = None,
        start: int | None = None,
        k: int = 10,
        offset: int = 0,
        coded: int | None = None,
        transductive: bool = False,
    ) -> Policy:
        """One policy: the taper at quality .99 unless told otherwise; a `width` alone means fixed.

        `coded` is the width that an index finds candidates for, where policies start unless `start` says otherwise. With an `offset`
        the answer is a page of the list that the policy gives for k; certify proves the pages before it too, and this one.
        """
        name = policy or ("fixed" if width is not None else "taper")
        if name not in NAMES:
            raise OptionError(f"there is no policy {name!r}; there are {', '.join(NAMES)}")
        if sum(value is not None for value in (budget, quality, width)) > 1:
            raise OptionError("give one of budget, quality and width")
        if budget is not None and not 1 <= budget <= self.width:
            raise OptionError(f"budget {budget:g} is not between 1 and the encoder width {self.width}")
        for what, value in (("start width", start), ("width", width)):
            if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or not 1 <= value <= self.width):
                raise OptionError(f"{what} {value!r} is not a whole number between 1 and the encoder width {self.width}")
        first = coded or min(64, self.width)
        if width is not None and name != "fixed":
            raise OptionError(f"width {width} goes with the policy fixed, not with {name}; {name} takes a budget or a quality")
        match name:
            case "taper":
                start = coded if start is None and coded in self.taper.starts else start
                return self.taper.policy(budget=budget, quality=quality, start=start, k=k)
            case "router" | "paper-router":
                return self.routed(name).policy(budget=budget, quality=quality, transductive=transductive)
            case "certify":
                if budget is not None or quality is not None:
                    raise OptionError("certify proves its answers: it takes neither a budget nor a quality")
                return Certify(first if start is None else start, self.width, k + offset)
            case _:
                return self._fixed(budget, quality, width, first if start is None else start)

    def routed(self, name: str) -> RouterModel:
        """The router of this name; refuses where the model has none."""
        found = self.router if name == "router" else self.paper_router
        if found is None and name == "router":
            raise OptionError("this model has no router (it was fitted without queries): use the taper")
        if found is None:
            raise OptionError("this model has no paper-router: fit one with labels by the recipe paper (--recipe paper), or use the router")
        return found

    def _fixed(self, budget: float | None, quality: float | None, width: int | None, start: int) -> Fixed:
        if quality is not None:
            width = self.taper.fixed_width(quality)
        elif budget is not None:
            width = int(budget)
        width = self.width if width is None else width
        return Fixed(width, min(start, width))

    def cut(self, keep: int) -> Policies:
        """The same for documents of which `keep` coordinates are stored: nothing reads further."""
        routers = (None if router is None or router.widths[-1] > keep else router for router in (self.router, self.paper_router))
        return Policies(self.width, self.taper.cut(keep), *routers)

    def config(self) -> dict[str, Any]:
        """What goes into config.json."""
        routers = (("router", self.router), ("paper_router", self.paper_router))
        return {"taper": self.taper.config(), **{part: None if router is None else router.config() for part, router in routers}}

    def tensors(self) -> dict[str, Array]:
        """What goes into model.safetensors."""
        parts = (("taper", self.taper), ("router", self.router), ("paper_router", self.paper_router))
        return {f"{part}.{name}": tensor for part, found in parts if found is not None for name, tensor in found.tensors().items()}

    @classmethod
    def of(cls, width: int, config: Mapping[str, Any], tensors: Mapping[str, Array]) -> Self:
        """The policies that `config` and `tensors` came from."""
        taper = TaperModel.of(entry(config, "taper"), part_of("taper", tensors), width)
        stored = entry(config, "router")
        router = None if stored is None else RouterModel.of(stored, part_of("router", tensors), width)
        of_paper = config.get("paper_router")  # folders before 0.2 have none
        paper = None if of_paper is None else RouterModel.of(of_paper, part_of("paper_router", tensors), width, "paper-router")
        return cls(width, taper, router, paper)


def part_of(part: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors whose names begin with this part, without it."""
    return {name.removeprefix(f"{part}."): tensor for name, tensor in tensors.items() if name.startswith(f"{part}.")}
