"""What commands write at --out beside models and indexes: folders of results, and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..formats import Kind
from ..formats.files import hidden_name, written
from ..formats.folders import PROBE

RESULTS = Kind("a folder of results", "results.json", "encoder_width", entries=("report.html",))
PLAN = Kind("a folder of results", "width.json", "encoder_width", entries=("width.svg",))
FOOT = b"<footer>AdaWidth "  # of every report


def write_json(file: Path, result: Mapping[str, Any]) -> None:
    """One JSON object in a file."""
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_report(path: Path, *, force: bool) -> None:
    """Refuses, before any work is done, a report that can't be written, or that would replace something else."""
    if os.path.lexists(path) and not force:
        raise OptionError(f"{path} exists: choose another path (--out), or replace it with force (--force)")
    with written(path):
        if os.path.lexists(path) and (not path.is_file() or FOOT not in path.read_bytes()):
            raise OptionError(f"{path}: not replaced, as it is no report that AdaWidth wrote: choose another path (--out), or move it away")
        probe = hidden_name(path)
        try:
            probe.write_bytes(PROBE)
        finally:
            probe.unlink(missing_ok=True)
