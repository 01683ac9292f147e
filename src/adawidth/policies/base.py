"""What every policy is: a start width and one decision after each stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from ..errors import OptionError
from ..stages import Decision, Stage

DEFAULT_QUALITY = 0.99
# The taper's: narrow steps first, where most candidates are dropped. A step costs time, and one stored norm per document.
LADDER = (32, 36, 40, 48, 56, 64, 72, 80, 96, 128, 160, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
# For bounds, which are computed again at every step, and for target widths; all of them are in LADDER.
COARSE_LADDER = (32, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)


class Policy(Protocol):
    """Decides after each stage which candidates are read on, and to which width. It ends when no query moves. Hashable by value."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """taper, router, paper-router, fixed or certify."""
        ...

    @property
    def start(self) -> int:
        """The width at which every document is scanned."""
        ...

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        ...

    def decide(self, stage: Stage) -> Decision:
        """What to read next."""
        ...


@runtime_checkable
class Stepwise(Policy, Protocol):
    """A policy that needs only a document's scores and norms at a few widths, so that an engine can follow it."""

    def at(self, widths: Sequence[int]) -> Policy:
        """The same for documents that can be read at these widths only; an OptionError if that can't be."""
        ...


def finish(stage: Stage) -> Decision:
    """The decision to stop every query here."""
    return Decision(stage.alive, stage.widths)


def ladder_from(start: int, target: int, ladder: Iterable[int] = COARSE_LADDER) -> tuple[int, ...]:
    """The widths from `start` to `target`, both in it, with the ladder's own in between."""
    if not start <= target:
        raise OptionError(f"start width {start} is above the target width {target}")
    return (*sorted({start, *(m for m in ladder if start < m < target)} - {target}), target)
