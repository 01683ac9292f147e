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
    path: Annotated[Path, typer.Argument(metavar="DIR|MODEL", help="What `compare`, `reproduce` or `demo` wrote, or a model folder.")],
    out: Annotated[Path, typer.Option("--out", help="HTML file to write.")] = Path("report.html"),
    force: Force = False,
) -> None:
    """Draw what was measured: one HTML file that needs no network."""
    from ..report import read_results, write_report
    from ..report.findings import experiments_in, write_findings

    refuse_existing(out, force)
    if experiments_in(path):
        write_findings(out, path)
    else:
        write_report(out, read_results(path))
    say(f"written: {out}")
