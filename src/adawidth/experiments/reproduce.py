"""Runs an experiment cell by cell and writes what it found: JSON, Markdown and a figure. Finished cells are kept and not measured again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..errors import OptionError
from ..formats import atomic_file, load_dataset
from ..formats.files import written
from ..formats.folders import kept_if_used
from ..progress import progress
from ..types import StrPath
from .base import Cell, Experiment, Part, Settings, need_matplotlib, write_figure
from .cells import Store, difference, read_head, stamp, without_arrays, write_json

REGISTRY = {
    "curves": "curves:CURVES",
    "vqa": "curves:VQA",
    "capacity": "capacity:CAPACITY",
    "ablation": "ablation:ABLATION",
    "routers": "routers:ROUTERS",
    "sweep": "sweep:SWEEP",
    "scaling": "scaling:SCALING",
    "rates": "rates:RATES",
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
    run goes on where it stopped and experiments with a part in common measure it once. A cell that other sources measured is stale
    and is measured again. A cell of other settings, and an `out` that is no such folder, are refused; with `force` every cell asked
    for is measured again. Other files in `out` stay. None for an encoder means the only one that the dataset has.
    """
    chosen, out = experiment(name), Path(out)
    need_matplotlib()
    parts, store = chosen.parts(settings or Settings()), Store(out / "cells")
    if os.path.lexists(out) and not store.folder.is_dir():
        raise OptionError(f"{out} exists and holds no cells of an earlier run: choose another folder (--out)")
    loaded = [load_dataset(path, encoder, skip_unknown=skip_unknown) for path in datasets for encoder in encoders]
    if not loaded:
        raise OptionError("there is nothing to measure: give at least one dataset and one encoder")
    asked = {store.file(part, data.name, data.encoder): (data, part) for data in loaded for part in parts}
    if len(asked) < len(loaded) * len(parts):
        counts = f"{len(loaded) * len(parts)} cells have {len(asked)} names"
        raise OptionError(f"{counts}: give each dataset and encoder once, and folders different names")
    finished = set() if force else {file for file, (data, part) in asked.items() if _finished(file, data, part)}
    with written(out), kept_if_used(store.folder), progress(f"reproducing {name}", len(asked)) as advance:
        for file, (data, part) in asked.items():
            advance(0, f"{data.name}, {data.encoder}: {part.name}")
            if file not in finished:
                store.write(file, measured(data, part))
            advance()
    return write(name, [store.read(file) for file in asked], out)


def measured(data: Dataset, part: Part) -> dict[str, Any]:
    """A new cell."""
    return {**_head(data, part), **stamp(part), **part.measure(data)}


def _head(data: Dataset, part: Part) -> dict[str, Any]:
    return {
        "part": part.name,
        "dataset": data.name,
        "encoder": data.encoder,
        "encoder_width": data.documents.width,
        "documents": len(data.documents),
    }


def _finished(file: Path, data: Dataset, part: Part) -> bool:
    """Whether a cell is there and true; one of other settings or other data is refused."""
    if not file.exists():
        return False
    cell, now = read_head(file), stamp(part)
    other = next((f"{key} {cell.get(key)}, now {value}" for key, value in _head(data, part).items() if cell.get(key) != value), None)
    other = other or difference(cell, {**now, "sources": cell.get("sources")})
    if other is not None:
        raise OptionError(f"{file} was measured with {other}: choose another folder (--out), or measure with force (--force)")
    return difference(cell, now) is None


def write(of: str, cells: Sequence[Cell], out: Path, name: str | None = None) -> dict[str, Any]:
    """What an experiment makes of its cells, in the folder `out`: the figure, the page and, last, the JSON, which it returns.

    Files have the experiment's name, or `name`.
    """
    chosen, name = experiment(of), name or of
    verdict = chosen.judge(cells)
    header, rows = chosen.table(cells)
    with atomic_file(out / f"{name}.svg") as file:
        write_figure(chosen, cells, file)
    bars = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "\n".join(f"| {' | '.join(row)} |" for row in bars)
    page = f"# {chosen.title}\n\n{verdict.paragraph}\n\n{chosen.differs}\n\n{table}\n\n![{chosen.title}]({name}.svg)\n"
    with atomic_file(out / f"{name}.md") as file:
        file.write(page.encode())
    result = {
        "experiment": of,
        "holds": verdict.holds,
        "verdict": verdict.paragraph,
        "differs": chosen.differs,
        "claims": [asdict(claim) for claim in verdict.claims],
        "table": {"header": header, "rows": rows},
        **chosen.summarise(cells),
        "cells": [without_arrays(cell) for cell in cells],
    }
    write_json(out / f"{name}.json", result)
    return result
