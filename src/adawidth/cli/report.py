"""adawidth report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Force
from .output import refuse_existing, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(report)


def report(
    path: Annotated[Path, typer.Argument(metavar="DIR|MODEL", help="What `compare --out` or `demo` wrote, or a model folder.")],
    out: Annotated[Path, typer.Option("--out", help="HTML file to write.")] = Path("report.html"),
    force: Force = False,
) -> None:
    """Draw quality against width: one HTML file that needs no network."""
    from ..evaluation.report import read_results, write_report

    refuse_existing(out, force)
    write_report(out, read_results(path))
    say(f"written: {out}")
