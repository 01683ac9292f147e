"""The kernel: an Arrow table or record batch in, the same with rotated and cut vectors out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Vectors
from ..errors import DataError, OptionError
from ..formats.parquet import column_of_vectors, matrix, pyarrow_modules
from ..model import AdaWidth
from ..types import F32


@dataclass(frozen=True, eq=False)
class Rotate:
    """Rotates the vectors of an Arrow table; every other column stays. It can be pickled, and has no state: call it from any engine.

    >>> import numpy as np, pyarrow
    >>> documents = np.random.default_rng(0).standard_normal((100, 64)).astype(np.float32)
    >>> kernel = Rotate(AdaWidth.fit(documents, recipe="pca"), width=16)
    >>> kernel(pyarrow.table({"id": range(100), "vector": list(documents)})).schema.field("vector").type
    FixedSizeListType(fixed_size_list<item: float>[16])
    """

    model: AdaWidth
    width: int | None = None
    queries: bool = False  # as queries: by the task's query map, where there is one
    task: str | None = None
    column: str | None = None  # with the vectors, where there are several of lists

    def __post_init__(self) -> None:
        whole = self.model.width
        if self.width is not None and not 1 <= self.width <= whole:
            raise OptionError(f"width {self.width} is not between 1 and the encoder width {whole}")
        if self.task is not None and not self.queries:
            raise OptionError("only queries pass through a task's map: rotate queries (--queries), or leave the task out")
        self.model.task(self.task)

    def __call__(self, table: Any, place: str = "table", start: int = 0) -> Any:
        """A pyarrow Table or RecordBatch, of the same kind as the one given. Errors name the place, whose row `start` is the first here."""
        name = self.column or column_of_vectors(place, table.schema)
        values = values_of(table, name, place, start)
        if not len(values):
            rotated: F32 = np.empty((0, self.model.width if self.width is None else self.width), np.float32)
        else:
            vectors = Vectors.of(values, name=place if not start else f"{place} from row {start:,} on", note=False)
            turned = self.model.rotate_queries(vectors, self.width, self.task) if self.queries else self.model.rotate(vectors, self.width)
            rotated = turned
        return with_vectors(table, name, rotated)

    def facts(self) -> dict[str, Any]:
        """What its output depends on."""
        width = self.model.width if self.width is None else self.width
        return {"rotation": self.model.rotation.fingerprint, "width": width, "queries": self.queries, "task": self.task}


def values_of(table: Any, name: str, place: str, start: int = 0) -> Any:
    """The vectors of a table as one array. (n, D)"""
    if name not in table.schema.names:
        raise DataError(f"{place}: there is no column {name!r}, found {', '.join(table.schema.names)}")
    column = table.column(name)
    return matrix(place, column.combine_chunks() if hasattr(column, "combine_chunks") else column, start)


def with_vectors(table: Any, name: str, values: F32) -> Any:
    """The table with these vectors in a column, in place of the one of this name or as a new one."""
    arrow, _ = pyarrow_modules()
    flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
    column = arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
    place = table.schema.get_field_index(name)
    field = arrow.field(name, column.type)
    return table.append_column(field, column) if place < 0 else table.set_column(place, field, column)
