"""Tables and columns of pandas, polars, Arrow and Hugging Face datasets, known by their methods: none of these packages is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def columns_of(given: Any) -> dict[str, Any] | None:
    """The columns of a table by name, in order; None for what is no table."""
    names = getattr(given, "column_names", None)  # of Arrow and datasets
    if names is None:
        names = getattr(given, "columns", None)  # of pandas and polars
    return None if names is None or callable(names) else {str(name): given[name] for name in names}


def listed(column: Any) -> list[Any]:
    """The values of a column, or of anything that can be iterated over, as Python's own."""
    method = next((name for name in ("to_list", "to_pylist", "tolist") if hasattr(column, name)), None)
    return list(column) if method is None else list(getattr(column, method)())


def arrays(given: Any) -> Any:
    """Vectors as arrays where they are a tensor, a column of vectors, or a table: one column of vectors, or one column a coordinate."""
    if hasattr(given, "detach"):  # a tensor of torch, on whatever device
        return given.detach().cpu().numpy()
    columns = columns_of(given)
    if columns is None:
        return _numpy(given)
    parts = [_numpy(column) for column in columns.values()]
    if len(parts) == 1 and _holds_vectors(parts[0]):
        return parts[0]
    return np.stack([np.asarray(part) for part in parts], axis=1) if parts else np.empty((0, 0), np.float32)


def _numpy(column: Any) -> Any:
    if hasattr(column, "to_pylist") and hasattr(column, "to_numpy"):  # Arrow's, which refuses to copy unless it is told to
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _holds_vectors(column: Any) -> bool:
    """Whether its values are vectors, not numbers."""
    return len(column) > 0 and isinstance(column[0], Iterable)
