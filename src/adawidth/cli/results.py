"""What commands write at --out beside models and indexes: folders of results, and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import DataError, OptionError
from ..formats import Kind
from ..formats.files import hidden_name, lines, written
from ..formats.folders import PROBE

RESULTS = Kind("a folder of results", "results.json", "encoder_width", entries=("report.html",))
PLAN = Kind("a folder of results", "width.json", "encoder_width", entries=("width.svg",))
FOOT = b"<footer>AdaWidth "  # of every report
TAG = "adawidth-"  # of every run


def write_json(file: Path, result: Mapping[str, Any]) -> None:
    """One JSON object in a file."""
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_report(path: Path, *, force: bool) -> None:
    """Refuses, before any work is done, a report that can't be written, or that would replace something else."""
    if os.path.lexists(path) and not force:
        raise OptionError(f"{path} exists: choose another path (--out), or replace it with force (--force)")
    _refuse_file(path, "report", lambda: FOOT in path.read_bytes())


def refuse_run(path: Path) -> None:
    """The same for a TREC run, which replaces an earlier one."""
    _refuse_file(path, "run", lambda: next(lines(path), (0, ""))[1].rpartition(" ")[2].startswith(TAG))


def _refuse_file(path: Path, name: str, ours: Callable[[], bool]) -> None:
    with written(path):
        known = False
        with suppress(DataError):  # no text at all
            known = path.is_file() and ours()
        if os.path.lexists(path) and not known:
            raise OptionError(f"{path}: not replaced, as it is no {name} that AdaWidth wrote: choose another path, or move it away")
        probe = hidden_name(path)
        try:
            probe.write_bytes(PROBE)
        finally:
            probe.unlink(missing_ok=True)
