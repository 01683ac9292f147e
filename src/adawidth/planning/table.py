"""The table of a machine: what a scan, a rescored candidate, a rotation and a call cost on it, as `adawidth bench` measured them."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from ..errors import ArtifactError
from ..formats import atomic_file
from ..formats.files import json_of, regular_bytes
from ..index.codes.graph import SCANNED as AS_MANY
from ..stages.loop import SHORTLIST
from .memory import STORAGES, Shape

FORMAT, VERSION = "adawidth bench", 1
LARGEST = 1_000_000  # bytes of such a file
SLOWEST = 10.0  # seconds of any of these steps
STARTS = (32, 64)
WALKED = 0.5  # rows that a walk expands per candidate
SHARE = 0.43  # of the lists, that an inverted file reads at a million documents (.428 in benchmarks/results/latency.json)


@dataclass(frozen=True)
class Scan:
    """Seconds of one query over the codes of so many documents: measured at a few sizes, straight in between and beyond."""

    documents: tuple[int, ...]  # ascending, at least two
    seconds: tuple[float, ...]

    def at(self, documents: float) -> float:
        """Seconds for so many documents."""
        above = min(max(bisect_left(self.documents, documents), 1), len(self.documents) - 1)
        (low, high), (fast, slow) = self.documents[above - 1 : above + 1], self.seconds[above - 1 : above + 1]
        return max(0.0, fast + (documents - low) * max(0.0, slow - fast) / (high - low))


@dataclass(frozen=True)
class Table:
    """Seconds of processor time on one thread."""

    machine: str
    adawidth: str  # version that measured it
    scans: Mapping[tuple[str, int], Scan]  # by storage (flat, int8, pq4) and start width
    candidate: float  # of rescoring, per candidate
    coordinate: float  # … and per coordinate read of a candidate
    product: float  # per multiply-add of a rotation
    call: float  # of everything else in a search
    reference: bool = False  # shipped, and measured on another machine

    def search(self, shape: Shape, documents: int, mean_width: float) -> float:
        """Seconds of one query: the scan, 500 candidates read to this width on average, the rotation, and the call itself."""
        candidates = min(SHORTLIST, documents)
        rotation = self.product * shape.encoder_width * max(shape.coded, min(shape.target, shape.keep))
        return self.call + self.scan(shape, documents) + rotation + candidates * (self.candidate + self.coordinate * mean_width)

    def scan(self, shape: Shape, documents: int) -> float:
        """Seconds of a scan; an inverted file reads a share of the 4-bit codes, and finds the lists to read first.

        A walk takes as long as a scan of so many rows for each row that it expands.
        """
        start = min(STARTS, key=lambda known: abs(known - shape.start))
        if shape.storage in ("flat", "int8"):
            return self.scans[shape.storage, start].at(documents)
        wide = min(STARTS, key=lambda known: abs(known - 2 * shape.packed))  # codes of as many bytes
        codes, longer = self.scans["pq4", wide], 2 * shape.packed / wide
        match shape.storage:
            case "pq4":
                return longer * codes.at(documents)
            case "graph":
                return longer * codes.at(min(documents, round(WALKED * min(SHORTLIST, documents) * AS_MANY)))
            case _:
                return longer * codes.at(SHARE * documents) + self.scans["flat", start].at(documents**0.5)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        scans = [{"storage": storage, "start": start, **asdict(scan)} for (storage, start), scan in self.scans.items()]
        numbers: dict[str, float] = {name: getattr(self, name) for name in NUMBERS}
        return {"format": FORMAT, "version": VERSION, "adawidth": self.adawidth, "machine": self.machine, "scans": scans, **numbers}

    @classmethod
    def of_json(cls, stored: Any, *, reference: bool = False) -> Self:
        """The table that `to_json` wrote; a ValueError for anything else."""
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError("this is no table")
        if stored.get("version") != VERSION:
            raise ValueError(f"version {stored.get('version')!r}, this AdaWidth reads {VERSION}")
        try:
            scans = {
                (str(scan["storage"]), int(scan["start"])): Scan(_sizes(scan["documents"]), tuple(map(_seconds, scan["seconds"])))
                for scan in stored["scans"]
            }
            numbers: dict[str, Any] = {name: _seconds(stored[name]) for name in NUMBERS}
            words: dict[str, Any] = {name: str(stored[name]) for name in ("machine", "adawidth")}
        except (KeyError, TypeError) as error:
            raise ValueError(f"{error!r} is missing or no number") from None
        if missing := [f"{storage} at {start}" for storage in SCANNED for start in STARTS if (storage, start) not in scans]:
            raise ValueError(f"there is no scan of {missing[0]}")
        if any(len(scan.documents) != len(scan.seconds) for scan in scans.values()):
            raise ValueError("a scan has not as many times as sizes")
        return cls(scans=scans, reference=reference, **words, **numbers)


NUMBERS = ("candidate", "coordinate", "product", "call")
SCANNED = tuple(storage for storage in STORAGES if storage not in ("ivf", "graph"))


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= SLOWEST:
        raise ValueError(f"{value!r} is no time within 0 to {SLOWEST:g} seconds")
    return float(value)


def _sizes(values: Any) -> tuple[int, ...]:
    sound = isinstance(values, list) and len(values) > 1 and all(type(value) is int and value > 0 for value in values)
    if not sound or any(low >= high for low, high in pairwise(values)):
        raise ValueError(f"{str(values)[:60]} are no sizes that rise")
    return tuple(values)


def home() -> Path:
    """Where `bench` keeps the table of this machine."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "adawidth" / "bench.json"


def store(table: Table, path: Path) -> None:
    """Writes a table, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write((json.dumps(table.to_json(), indent=1) + "\n").encode())


def load(path: Path | None = None) -> Table:
    """The table in a file; without one that of this machine, or the one that comes with AdaWidth where there is none."""
    file = home() if path is None else path
    if path is None and not file.is_file():
        return Table.of_json(json_of(files(__package__).joinpath("reference.json").read_bytes()), reference=True)
    try:
        return Table.of_json(json_of(regular_bytes(file, LARGEST)))
    except OSError as error:
        raise ArtifactError(f"{file}: can't be read ({error.strerror}): `adawidth bench` writes one") from None
    except ValueError as error:
        raise ArtifactError(f"{file}: not a table of `adawidth bench` ({error}): run `adawidth bench` again") from None
