"""What goes to standard output: one JSON object, or tables: drawn on a terminal, plain columns elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def emit(result: Mapping[str, Any]) -> None:
    """One JSON object and nothing else."""
    typer.echo(json.dumps(result, ensure_ascii=False))


def say(line: str = "") -> None:
    """A line of a result."""
    typer.echo(line)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, numbers to the right."""
    if sys.stdout.isatty():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
        for place, title in enumerate(header):
            drawn.add_column(title, justify="right" if place else "left", no_wrap=True)
        for row in rows:
            drawn.add_row(*row)
        Console(highlight=False).print(drawn)
        return
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    for row in (header, *rows):
        cells = [cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        say("  ".join(cells).rstrip())


def at_best(shortlist: Mapping[str, Any]) -> str:
    """What the candidates of a shortlist protocol allow, in a line."""
    recall = next(name for name in shortlist if name.startswith("R@"))
    best = ", ".join(f"{measure} {value:.4f}" for measure, value in shortlist["at_best"].items())
    return (
        f"all rank the same {shortlist['candidates']} candidates a query, mined at {shortlist['mined_at']} coordinates: "
        f"{recall} {shortlist[recall]:.4f}; at best {best}"
    )
