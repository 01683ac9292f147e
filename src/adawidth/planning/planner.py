"""Storage, width, memory and latency of an index that is not there yet, and what to change where it does not fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import OptionError
from ..index.folder import Finding
from ..model import AdaWidth
from ..policies.base import DEFAULT_QUALITY
from ..policies.taper import Taper
from ..sizes import in_bytes, in_words
from .memory import STORAGES, Shape
from .table import Table, load

SMALL, WALKED, LARGE = 20_000, 100_000, 200_000  # documents at which `--storage auto` changes: flat, pq4, graph if it fits, ivf
MOST = 10**12  # documents
WIDEST = 65_536  # dimensions
START = 64
MEAN_WIDTH = 80.0  # without a model: what the taper read of 384 coordinates without labels, see README.md
K = 10


@dataclass(frozen=True)
class Option:
    """One storage, and what it would take."""

    storage: str
    start: int
    keep: int
    target: int
    mean_width: float
    memory_bytes: float
    bytes_per_document: float
    disk_bytes: float
    milliseconds: float
    fits: bool


@dataclass(frozen=True)
class Plan:
    """What an index of so many documents would take; `choice` is None where nothing fits."""

    documents: int
    dimensions: int
    memory: float | None  # bytes that there are
    milliseconds: float | None
    table: Table
    options: tuple[Option, ...]
    choice: Option | None
    quality: dict[str, Any] | None  # from the model's card
    changes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        size = f"{self.documents:,} documents of {self.dimensions:,} dimensions"
        if self.choice is None:
            return f"Nothing fits {size}: {self.changes[0]}."
        one = self.choice
        needs = f"{in_words(one.memory_bytes)} of memory, {in_words(one.disk_bytes)} on disk and about {one.milliseconds:.2g} ms a query"
        return f"For {size}: storage {one.storage}, candidates at {one.start} coordinates, {one.mean_width:.0f} read on average; {needs}."

    def to_json(self) -> dict[str, Any]:
        """The object that `adawidth plan --json` prints."""
        return {
            "documents": self.documents,
            "dimensions": self.dimensions,
            "memory": self.memory,
            "milliseconds": self.milliseconds,
            "table": {"reference": self.table.reference, "machine": self.table.machine, "adawidth": self.table.adawidth},
            "sentence": self.sentence,
            "choice": None if self.choice is None else asdict(self.choice),
            "options": [asdict(option) for option in self.options],
            "quality": self.quality,
            "changes": list(self.changes),
        }

    def __repr__(self) -> str:
        return f"Plan({self.sentence})"


def plan(
    documents: float,
    dimensions: int | None = None,
    *,
    memory: str | float | None = None,
    milliseconds: float | None = None,
    model: AdaWidth | None = None,
    keep: int | None = None,
    bytes_per_document: int | None = None,
    table: Table | None = None,
) -> Plan:
    """What an index needs: `memory` (2e9 or "2GB") and `milliseconds` a query are what there is. Times are of one thread, by `table`.

    `keep` and `bytes_per_document` are those of `model.index`. With a model, widths and quality are those of its
    card. Without a table, the one that `adawidth bench` stored, or a reference.

    >>> found = plan(10e6, 1024, memory="2GB")
    >>> found.choice.storage, found.choice.memory_bytes < 2e9
    ('ivf', True)
    """
    room = None if memory is None else in_bytes(memory)
    count, width = _checked(documents, dimensions, model, milliseconds)
    table = load() if table is None else table
    start, target, mean_width = (min(START, width), width, min(MEAN_WIDTH, float(width))) if model is None else _widths(model)
    kept = width if keep is None else keep
    if not start <= kept <= width:
        raise OptionError(f"keep {kept} is not between the start width {start} and the encoder width {width}")
    options = []
    for storage in STORAGES:
        shape = Shape(storage, width, kept, start, min(target, kept), Finding(bytes_per_document=bytes_per_document).bytes_per_document)
        needed, spent = count * shape.memory, 1000 * table.search(shape, count, min(mean_width, float(kept)))
        fits = (room is None or needed <= room) and (milliseconds is None or spent <= milliseconds)
        read = min(mean_width, float(kept))
        options.append(
            Option(storage, start, kept, min(target, kept), read, needed, shape.memory, count * shape.disk, spent, fits)
        )  # fmt: skip
    choice = _choice(options, count, room)
    changes = _changes(options, count, target, width, room, milliseconds, choice)
    quality = None if model is None else _quality(model)
    return Plan(count, width, room, milliseconds, table, tuple(options), choice, quality, tuple(changes))


def _checked(documents: float, dimensions: int | None, model: AdaWidth | None, milliseconds: float | None) -> tuple[int, int]:
    if not 1 <= documents <= MOST:
        raise OptionError(f"{documents:g} documents are not between 1 and {MOST:g}")
    if model is not None and dimensions not in (None, model.width):
        raise OptionError(f"{dimensions} dimensions, but the model has {model.width}: leave --dimensions out, or give another model")
    width = model.width if model is not None else dimensions
    if width is None:
        raise OptionError("give the number of dimensions (--dimensions), or a model (--model)")
    if not 1 <= width <= WIDEST:
        raise OptionError(f"{width} dimensions are not between 1 and {WIDEST}")
    if milliseconds is not None and not milliseconds > 0:
        raise OptionError(f"milliseconds {milliseconds:g} is not above 0")
    return int(documents), width


def _widths(model: AdaWidth) -> tuple[int, int, float]:
    """Start width, target width and the mean width that default searches read, by the model's card."""
    policy, taper = model.policies.choose(k=K), model.policies.taper
    curve = next((c for c in taper.curves[taper.starts.index(policy.start)] if c.k >= K), taper.curves[0][-1])
    z = policy.z if isinstance(policy, Taper) else np.inf
    spent = curve.widths[-1] if np.isinf(z) else np.interp(z, curve.z[:-1], curve.widths[:-1])
    return policy.start, policy.reach, float(spent)


def _quality(model: AdaWidth) -> dict[str, Any]:
    """What the card says of quality: the share kept, of what, and the dev figures of the recipe that ships."""
    taper, record = model.policies.taper, model.record
    trial = next((trial for trial in record.trials if trial.recipe == record.chosen), None)
    return {
        "kept": DEFAULT_QUALITY,
        "of": f"nDCG@{K} at {taper.target}" if taper.labelled else f"the top {K} at {taper.target}",
        "fitted_on": record.documents,
        "dev_measure": record.dev_measure,
        "dev": {} if trial is None else {str(m): figure for m, figure in trial.dev.items()},
    }


def _choice(options: list[Option], documents: int, memory: float | None) -> Option | None:
    """What `--storage auto` takes where it fits, else the fastest that does. A graph is for those who say that they have the memory."""
    usual = "flat" if documents <= SMALL else "pq4" if documents < LARGE else "ivf"
    fitting = [option for option in options if option.fits]
    if documents >= WALKED and memory is not None and any(option.storage == "graph" for option in fitting):
        usual = "graph"
    return next((option for option in fitting if option.storage == usual), min(fitting, key=lambda one: one.milliseconds, default=None))


def _changes(
    options: list[Option], documents: int, target: int, width: int, memory: float | None, milliseconds: float | None, choice: Option | None
) -> list[str]:
    """What to do where nothing fits, and what would save something where it does."""
    changes = []
    if choice is None:
        least = min(options, key=lambda one: one.memory_bytes)
        fastest = min(options, key=lambda one: one.milliseconds)
        if memory is not None and least.memory_bytes > memory:
            most, parts = int(memory / least.bytes_per_document), int(-(-least.memory_bytes // memory))
            changes.append(
                f"{least.storage} takes the least memory, {in_words(least.memory_bytes)}: {in_words(memory)} hold {most:,} documents; "
                f"give it more, or split the documents over {parts} machines"
            )
        if milliseconds is not None and fastest.milliseconds > milliseconds:
            parts = int(-(-fastest.milliseconds // milliseconds))
            changes.append(
                f"{fastest.storage} is the fastest, {fastest.milliseconds:.2g} ms on one thread: split the documents over about {parts} "
                "machines or threads, or allow more time"
            )
        if not changes:
            changes.append("what is fast enough takes too much memory, and what is small enough is too slow: allow more of either")
    if target < width and options[0].keep == width:
        saved = documents * 2 * (width - target)
        changes.append(f"searches read {target} of {width} coordinates at most: --keep {target} saves {in_words(saved)} on disk")
    return changes
