"""Runs an experiment cell by cell and writes what it found: JSON, Markdown and a figure. Finished cells are kept and not measured again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..errors import ArtifactError, DataError, OptionError
from ..formats import atomic_file, load_dataset
from ..formats.files import StrPath
from ..progress import progress
from ..rotation import Rotation
from .base import Cell, Experiment, Settings, need_matplotlib, write_figure

REGISTRY = {
    "scaling": "scaling:SCALING",
    "stable-widths": "stable_widths:STABLE_WIDTHS",
}  # name -> module:experiment, imported on first use


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
    rotation: Rotation | None = None,
    settings: Settings | None = None,
    skip_unknown: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Measures every dataset with every encoder; writes <name>.json, .md and .svg into the folder `out` and returns what the JSON holds.

    A cell is kept in `out`/cells as soon as it is measured, and one that is there is not measured again, so that an interrupted
    run goes on where it stopped. A cell of other settings, and an `out` that is no such folder, are refused; with `force` every
    cell asked for is measured anew. Other files in `out` stay. None for an encoder means the only one that the dataset has.
    """
    chosen, settings, out = experiment(name), settings or Settings(), Path(out)
    need_matplotlib()
    kept = out / "cells"
    if os.path.lexists(out) and not kept.is_dir() and not force:
        raise OptionError(f"{out} exists and holds no cells of an earlier run: choose another --out or add --force")
    loaded = [load_dataset(path, encoder, skip_unknown=skip_unknown) for path in datasets for encoder in encoders]
    files = {kept / f"{name}-{data.name}-{data.encoder}.json": data for data in loaded}
    if not loaded:
        raise OptionError("there is nothing to measure: give at least one dataset and one encoder")
    if len(files) < len(loaded):
        raise OptionError(f"{len(loaded)} cells have {len(files)} names: give each dataset and encoder once, and folders different names")
    heads = {file: _head(name, data, rotation, settings) for file, data in files.items()}
    cells = {} if force else {file: cell for file, head in heads.items() if (cell := _kept(file, head)) is not None}
    kept.mkdir(parents=True, exist_ok=True)
    if force:
        for file in files:
            file.unlink(missing_ok=True)
    with progress(f"reproducing {name}", len(files)) as tick:
        for file, data in files.items():
            tick(0, f"{data.name}, {data.encoder}")
            if file not in cells:
                cells[file] = {**heads[file], **chosen.measure(data, rotation, settings)}
                _write_json(file, cells[file])
            tick()
    return _write(name, chosen, [cells[file] for file in files], out)


def _head(name: str, data: Dataset, rotation: Rotation | None, settings: Settings) -> dict[str, Any]:
    """What makes a kept cell the same as one to measure."""
    if rotation is not None and rotation.width != data.documents.width:
        raise ArtifactError(
            f"the model is {rotation.width} wide, the vectors of {data.documents.name} {data.documents.width}: "
            "use the encoder the model was fitted for"
        )
    return {
        "experiment": name,
        "dataset": data.name,
        "encoder": data.encoder,
        "encoder_width": data.documents.width,
        "documents": len(data.documents),
        "fingerprint": None if rotation is None else rotation.fingerprint,
        "settings": asdict(settings),
    }


def _kept(file: Path, head: dict[str, Any]) -> Cell | None:
    """The finished cell in a file; None where there is none."""
    if not file.exists():
        return None
    try:
        cell: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        other = next((f"{key} {cell.get(key)}, now {value}" for key, value in head.items() if cell.get(key) != value), None)
    except (ValueError, AttributeError):
        raise DataError(f"{file}: this is no finished cell: remove it or add --force") from None
    if other is not None:
        raise OptionError(f"{file} was measured with {other}: choose another --out or add --force")
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
    result = {"experiment": name, "holds": verdict.holds, "verdict": verdict.paragraph, "cells": cells}
    _write_json(out / f"{name}.json", result)
    return result


def _write_json(path: Path, content: Cell) -> None:
    with atomic_file(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
