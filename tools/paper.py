"""Measures what docs/paper.md rests on, cell by cell, and says what is missing.

    python tools/paper.py measure --datasets ../shared/datasets --datasets build/paper-data [--minutes 60] [--only paper]
    python tools/paper.py check
    python tools/paper.py write

benchmarks/paper.toml lists the cells; they are kept in benchmarks/results/paper/cells and committed. Any number of processes may
measure side by side: a cell belongs to the one that has claimed it. An interrupted run loses the cell it was at and nothing else.
`write` makes tables, figures and intervals again from the cells that there are; tools/paper_page.py makes docs/paper.md of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from adawidth.data import Dataset
from adawidth.errors import AdaWidthError, DataError, OptionError
from adawidth.experiments.base import Cell, Part, Settings
from adawidth.experiments.cells import State, Store
from adawidth.experiments.curves import COMPARED, PAPER
from adawidth.experiments.reproduce import experiment, measured
from adawidth.experiments.reproduce import write as write_table
from adawidth.formats import load_dataset

HOME = Path(__file__).parents[1]
SPEC, RESULTS = HOME / "benchmarks/paper.toml", HOME / "benchmarks/results/paper"


@dataclass(frozen=True)
class Wanted:
    """A cell that must be there."""

    experiment: str
    table: str  # that it belongs to
    part: Part
    dataset: str
    encoder: str

    def __str__(self) -> str:
        return f"{self.part.name}, {self.dataset}, {self.encoder}"


def wanted(spec: dict[str, Any]) -> Iterator[Wanted]:
    """Every cell of the list, in its order, each as often as it is asked for."""
    for entry in spec["cells"]:
        pairs = [pair.split("/") for group in entry["pairs"] for pair in spec["pairs"].get(group, [group])]
        settings = dict(entry.get("settings", {}))
        if "methods" in entry:
            settings["methods"] = tuple(name for group in entry["methods"] for name in spec["methods"].get(group, [group]))
        for part in experiment(entry["experiment"]).parts(Settings(**settings)):
            for dataset, encoder in pairs:
                yield Wanted(entry["experiment"], entry.get("table", entry["experiment"]), part, dataset, encoder)


def once(spec: dict[str, Any], store: Store) -> dict[Path, Wanted]:
    """The same by their files, each once."""
    found: dict[Path, Wanted] = {}
    for cell in wanted(spec):
        found.setdefault(store.file(cell.part, cell.dataset, cell.encoder), cell)
    return found


def unfinished(cells: Sequence[Wanted], store: Store) -> Iterator[tuple[Wanted, State, str]]:
    """Cells that are missing or stale, and why."""
    for cell in cells:
        state, reason = store.state(cell.part, cell.dataset, cell.encoder)
        if state != "finished":
            yield cell, state, reason


@cache
def load(folders: tuple[Path, ...], dataset: str, encoder: str) -> Dataset:
    """From the first folder that has these vectors."""
    homes = [folder / dataset for folder in folders if (folder / dataset / "embeddings" / encoder).is_dir()]
    if not homes:
        raise OptionError(f"{dataset} with {encoder} is in none of {', '.join(map(str, folders))}: name its folder (--datasets)")
    return load_dataset(homes[0], encoder)


def measure(spec: dict[str, Any], store: Store, folders: Sequence[Path], minutes: float, only: str) -> int:
    """Measures unfinished cells in the list's order; no new one is begun once the time is over. Returns how many it measured."""
    began, count = time.monotonic(), 0
    for file, cell in once(spec, store).items():
        if only not in str(cell) or store.state(cell.part, cell.dataset, cell.encoder)[0] == "finished":
            continue
        if time.monotonic() - began > 60 * minutes:
            break
        with store.claim(file) as mine:
            if mine and store.state(cell.part, cell.dataset, cell.encoder)[0] != "finished":
                start = time.monotonic()
                try:
                    store.write(file, measured(load(tuple(folders), cell.dataset, cell.encoder), cell.part))
                except (DataError, OptionError) as error:
                    say(f"{cell}: {error}")
                    continue
                count += 1
                say(f"{cell}: {time.monotonic() - start:.0f} s")
    return count


def check(spec: dict[str, Any], store: Store) -> bool:
    """Names every cell that is missing or stale; False where there is one."""
    cells = once(spec, store)
    found = list(unfinished(list(cells.values()), store))
    for cell, state, reason in found:
        say(f"{state}: {cell}{f' ({reason})' if reason else ''}")
    say(f"{len(cells) - len(found)} of {len(cells)} cells are finished")
    return not found


def write(spec: dict[str, Any], store: Store) -> None:
    """Every table from the cells that are finished; one with too few is left as it is."""
    asked: dict[str, dict[Path, Wanted]] = {}
    for cell in wanted(spec):
        asked.setdefault(cell.table, {})[store.file(cell.part, cell.dataset, cell.encoder)] = cell
    for table, cells in asked.items():
        known = [store.read(file) for file in cells if file.exists()]
        first = next(iter(cells.values()))
        whole = first.experiment == "curves" or len({cell.part.name for cell in cells.values()}) == len({cell["part"] for cell in known})
        found = complete(known, everything=first.experiment != "curves") if whole else []
        if found:
            write_table(next(iter(cells.values())).experiment, found, store.folder.parent, name=table)
        say(f"{table}: {len(found)} of {len(cells)} cells")


def complete(cells: Sequence[Cell], *, everything: bool) -> list[Cell]:
    """Cells that can be compared: pairs with the methods that claims are about, or every method, and the methods that all of them have."""
    if not all("method" in cell for cell in cells):
        return list(cells)
    have: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        have.setdefault((cell["dataset"], cell["encoder"]), set()).add(cell["method"])
    asked = set().union(*have.values()) if everything else {PAPER, *COMPARED}
    pairs = {pair: methods for pair, methods in have.items() if methods >= asked}
    shared = set.intersection(*pairs.values()) if pairs else set()
    return [cell for cell in cells if (cell["dataset"], cell["encoder"]) in pairs and cell["method"] in shared]


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "check", "write"))
    parser.add_argument("--datasets", type=Path, action="append", default=[], help="folder of datasets; may be repeated")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no new cell after so many")
    parser.add_argument("--only", default="", help="cells whose name holds this text")
    parser.add_argument("--spec", type=Path, default=SPEC)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    spec, store = tomllib.loads(options.spec.read_text(encoding="utf-8")), Store(options.results / "cells")
    try:
        if options.what == "measure":
            measure(spec, store, options.datasets, options.minutes, options.only)
        elif options.what == "write":
            write(spec, store)
        elif not check(spec, store):
            sys.exit(1)
    except AdaWidthError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
