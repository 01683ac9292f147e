"""adawidth report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import need
from .options import Force
from .output import say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(report)


def report(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder written by `compare`, `reproduce` or `demo`, or a model folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="HTML file to write.")] = Path("report.html"),
    force: Force = False,
) -> None:
    """Draw what was measured: one HTML file, no network needed."""
    from ..report import read_results, write_report
    from ..report.findings import experiments_in, write_findings
    from .results import refuse_report

    refuse_report(out, force=force)
    need("matplotlib")
    if experiments_in(path):
        write_findings(out, path)
    else:
        write_report(out, read_results(path))
    say(f"written: {out}")
