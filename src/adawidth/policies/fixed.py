"""One width for all: the shortlist, found at the start width, is read on to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from ..stages import Decision, Stage


@dataclass(frozen=True)
class Fixed:
    """Every query ends at `width`."""

    width: int
    start: int
    name = "fixed"

    def __post_init__(self) -> None:
        if self.width < self.start:
            raise OptionError(f"width {self.width} is below the start width {self.start}: ask for a larger width, or a smaller start")

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return self.width

    def at(self, widths: Sequence[int]) -> Fixed:
        """The same, if both widths are among these."""
        for width in (self.start, self.width):
            if width not in widths:
                raise OptionError(f"width {width} is not kept in the engine; there are {', '.join(map(str, widths))}")
        return self

    def decide(self, stage: Stage) -> Decision:
        """On to the width, all candidates."""
        return Decision(stage.alive, np.full(len(stage), self.width, np.int64))
