"""What is exported: one side of a model as a matrix and a bias, cut to a width."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import OptionError
from ...model import AdaWidth
from ...types import F32, StrPath


@dataclass(frozen=True, eq=False)
class Side:
    """A unit vector x becomes matrix x + bias, brought to unit length again."""

    matrix: F32  # (m, D)
    bias: F32 | None  # (m,)
    fingerprint: str  # of the rotation

    @classmethod
    def of(cls, model: AdaWidth, width: int | None = None, *, queries: bool = False, task: str | None = None) -> Side:
        """Of documents, or of queries: those pass through a task's query map, where the model has one."""
        whole = model.width
        kept = whole if width is None else width
        if not isinstance(kept, int | np.integer) or isinstance(kept, bool) or not 1 <= kept <= whole:
            raise OptionError(f"width {width!r} is not a whole number between 1 and the encoder width {whole}")
        if task is not None and not queries:
            raise OptionError(f"task {task!r} maps queries alone: add queries (--queries), or leave the task out")
        mapped = model.task(task) if queries else None
        through = model.rotation if mapped is None else mapped.query_map
        bias = None if mapped is None or not mapped.query_map.bias.any() else np.ascontiguousarray(mapped.query_map.bias[:kept])
        return cls(np.ascontiguousarray(through.matrix[:kept]), bias, model.rotation.fingerprint)

    @property
    def width(self) -> int:
        """Coordinates that come out."""
        return len(self.matrix)

    @property
    def encoder_width(self) -> int:
        """Coordinates that go in."""
        return int(self.matrix.shape[1])

    def facts(self) -> dict[str, Any]:
        """What `adawidth export --json` prints."""
        return {"encoder_width": self.encoder_width, "width": self.width, "fingerprint": self.fingerprint}


def refuse_existing(path: StrPath, force: bool) -> Path:
    """A file's path. One that exists is replaced only with `force`, and a folder never."""
    place = Path(path)
    if os.path.lexists(place) and not force:
        raise OptionError(f"{place} exists: choose another path (--out), or replace it with force (--force)")
    if place.is_dir():
        raise OptionError(f"{place}: not replaced, as it is a folder: choose another path (--out)")
    return place
