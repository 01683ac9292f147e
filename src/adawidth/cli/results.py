"""What commands write at --out beside models and indexes: folders of results, and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
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
    _refuse_file(path, "report", lambda: FOOT in path.read_bytes(), force=force)


def refuse_run(path: Path, *, force: bool) -> None:
    """The same for a TREC run."""
    _refuse_file(path, "run", lambda: next(lines(path), (0, ""))[1].rpartition(" ")[2].startswith(TAG), force=force)


def run_files(path: Path, widths: Sequence[int | str]) -> dict[int | str, Path]:
    """Where the run of each width goes: a single one to `path` itself, several to answers.32.trec, answers.full.trec, …"""
    if len(widths) == 1:
        return {widths[0]: path}
    packed = ".gz" if path.suffix == ".gz" else ""
    plain = path.with_name(path.name.removesuffix(packed))
    return {width: plain.with_name(f"{plain.stem}.{width}{plain.suffix}{packed}") for width in widths}


def _refuse_file(path: Path, name: str, ours: Callable[[], bool], *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        raise OptionError(f"{path} exists: choose another path, or replace it with force (--force)")
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
