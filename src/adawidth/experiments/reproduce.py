"""Runs an experiment cell by cell and writes what it found: JSON, Markdown and a figure. Finished cells are kept and not measured again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..errors import DataError, OptionError
from ..formats import atomic_file, load_dataset
from ..formats.files import written
from ..formats.folders import kept_if_used
from ..progress import progress
from ..types import StrPath
from .base import Cell, Experiment, Part, Settings, need_matplotlib, write_figure
from .methods import PER_QUERY

REGISTRY = {
    "curves": "curves:CURVES",
    "vqa": "curves:VQA",
    "capacity": "capacity:CAPACITY",
    "ablation": "ablation:ABLATION",
    "sweep": "sweep:SWEEP",
    "scaling": "scaling:SCALING",
    "stable-widths": "stable_widths:STABLE_WIDTHS",
}  # name -> module:experiment, imported on first use
EVERY = tuple(name for name in REGISTRY if name != "vqa")  # that is `curves` again, for collections of images and questions


def experiment(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in REGISTRY:
        raise OptionError(f"there is no experiment {name!r}; there are {', '.join(REGISTRY)}")
    module, _, attribute = REGISTRY[name].partition(":")
    found: Experiment = getattr(import_module(f".{module}", __package__), attribute)
    return found


def reproduce(
    name: str,
    datasets: Sequence[StrPath],
    out: StrPath,
    *,
    encoders: Sequence[str | None] = (None,),
    settings: Settings | None = None,
    skip_unknown: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Measures every part with every dataset and encoder; writes <name>.json, .md and .svg into the folder `out`; returns the JSON.

    A cell is kept in `out`/cells as soon as it is measured, and one that is there is not measured again, so that an interrupted
    run goes on where it stopped and experiments with a part in common measure it once. A cell of other settings, and an `out`
    that is no such folder, are refused; with `force` every cell asked for is measured again. Other files in `out` stay. None for an
    encoder means the only one that the dataset has.
    """
    chosen, out = experiment(name), Path(out)
    need_matplotlib()
    parts, kept = chosen.parts(settings or Settings()), out / "cells"
    if os.path.lexists(out) and not kept.is_dir():
        raise OptionError(f"{out} exists and holds no cells of an earlier run: choose another folder (--out)")
    loaded = [load_dataset(path, encoder, skip_unknown=skip_unknown) for path in datasets for encoder in encoders]
    if not loaded:
        raise OptionError("there is nothing to measure: give at least one dataset and one encoder")
    asked = {kept / f"{_file_name(part.name)}-{data.name}-{data.encoder}.json": (data, part) for data in loaded for part in parts}
    if len(asked) < len(loaded) * len(parts):
        counts = f"{len(loaded) * len(parts)} cells have {len(asked)} names"
        raise OptionError(f"{counts}: give each dataset and encoder once, and folders different names")
    heads = {file: _head(data, part) for file, (data, part) in asked.items()}
    cells = {} if force else {file: cell for file, head in heads.items() if (cell := _kept(file, head)) is not None}
    if force:
        for file in asked:
            file.unlink(missing_ok=True)
    with written(out), kept_if_used(kept), progress(f"reproducing {name}", len(asked)) as advance:
        for file, (data, part) in asked.items():
            advance(0, f"{data.name}, {data.encoder}: {part.name}")
            if file not in cells:
                cells[file] = {**heads[file], **part.measure(data)}
                _write_json(file, cells[file])
            advance()
    return _write(name, chosen, [cells[file] for file in asked], out)


def _file_name(part: str) -> str:
    return re.sub(r"[^\w.]+", "-", part)


def _head(data: Dataset, part: Part) -> dict[str, Any]:
    """What makes a kept cell the same as one to measure."""
    return {
        "part": part.name,
        "dataset": data.name,
        "encoder": data.encoder,
        "encoder_width": data.documents.width,
        "documents": len(data.documents),
        "settings": dict(part.head),
    }


def _kept(file: Path, head: dict[str, Any]) -> Cell | None:
    """The finished cell in a file; None where there is none."""
    if not file.exists():
        return None
    try:
        cell: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        was, now = ({**found, **found["settings"], "settings": None} for found in (cell, head))
        other = next((f"{key} {was.get(key)}, now {value}" for key, value in now.items() if was.get(key) != value), None)
    except (ValueError, AttributeError, KeyError, TypeError):
        raise DataError(f"{file}: this is no finished cell: remove it, or measure with force (--force)") from None
    if other is not None:
        raise OptionError(f"{file} was measured with {other}: choose another folder (--out), or measure with force (--force)")
    return cell


def _write(name: str, chosen: Experiment, cells: list[Cell], out: Path) -> dict[str, Any]:
    """The figure, the page and, last, the JSON."""
    verdict = chosen.judge(cells)
    header, rows = chosen.table(cells)
    with atomic_file(out / f"{name}.svg") as file:
        write_figure(chosen, cells, file)
    bars = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "\n".join(f"| {' | '.join(row)} |" for row in bars)
    page = f"# {chosen.title}\n\n{verdict.paragraph}\n\n{table}\n\n![{chosen.title}]({name}.svg)\n"
    with atomic_file(out / f"{name}.md") as file:
        file.write(page.encode())
    shown = [_without_queries(cell) for cell in cells]
    result = {
        "experiment": name,
        "holds": verdict.holds,
        "verdict": verdict.paragraph,
        "table": {"header": header, "rows": rows},
        **chosen.summarise(cells),
        "cells": shown,
    }
    _write_json(out / f"{name}.json", result)
    return result


def _without_queries(value: Any) -> Any:
    """The same without the figures of single queries, which cells keep for intervals."""
    if isinstance(value, Mapping):
        return {name: _without_queries(inner) for name, inner in value.items() if name != PER_QUERY}
    return [_without_queries(inner) for inner in value] if isinstance(value, list) else value


def _write_json(path: Path, content: Cell) -> None:
    with atomic_file(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
