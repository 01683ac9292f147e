"""Progress of long work: a bar on standard error when that is a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Advances the bar by `steps`; a `note` replaces the text behind it."""

    def __call__(self, steps: int = 1, note: str = "") -> None: ...


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """A bar with `total` steps: `with progress("fitting", 100) as advance: advance()`."""
    if not total or not sys.stderr.isatty():
        yield lambda steps=1, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words, note = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
    columns = (words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total, note="")

        def advance(steps: int = 1, note: str = "") -> None:
            bars.advance(task, steps)
            if note:
                bars.update(task, note=note)

        yield advance


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Says what takes a while, as long as it does: `with waiting("loading the encoder"): …`."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
