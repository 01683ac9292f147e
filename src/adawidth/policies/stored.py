"""What a model folder says, checked before anything computes with it: field by field, each refused by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from ..errors import ArtifactError
from ..types import Array

LARGEST = 1e9  # of any finite number that a model stores: sums and squares of such stay finite


@contextmanager
def within(part: str) -> Iterator[None]:
    """Puts the name of a part in front of the field that is refused in it."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(f"{part}.{error}") from None


def refuse(name: str, expected: str, found: object) -> NoReturn:
    """The error for a field that can't be."""
    text = str(found)
    raise ArtifactError(f"{name}: expected {expected}, found {ascii(text[:60])[1:-1]}{'…' * (len(text) > 60)}")


def entry(config: Any, name: str) -> Any:
    """A field of a JSON object."""
    if not isinstance(config, dict) or name not in config:
        refuse(name, "a value", "none")
    return config[name]


def listed(config: Any, name: str) -> list[Any]:
    """A field that is a list."""
    found = entry(config, name)
    return found if isinstance(found, list) else refuse(name, "a list", found)


def flag(config: Any, name: str) -> bool:
    """A field that is true or false."""
    found = entry(config, name)
    return found if isinstance(found, bool) else refuse(name, "true or false", found)


def whole(config: Any, name: str, low: int, high: int) -> int:
    """A field that is a whole number from `low` to `high`."""
    found = entry(config, name)
    if type(found) is not int or not low <= found <= high:
        refuse(name, f"a whole number from {low} to {high}", found)
    return int(found)


def number(value: Any, name: str) -> float:
    """A finite number, as scores, shares and noise are."""
    if type(value) not in (int, float) or not abs(value) <= LARGEST:
        refuse(name, f"a number of at most {LARGEST:g}", value)
    return float(value)


def ascending(values: Any, name: str, high: int) -> tuple[int, ...]:
    """Whole numbers that rise from at least 1 to at most `high`."""
    rising = isinstance(values, list) and bool(values) and all(type(value) is int for value in values)
    if not rising or values[0] < 1 or values[-1] > high or any(a >= b for a, b in pairwise(values)):
        refuse(name, f"whole numbers that rise within 1 to {high}", values)
    return tuple(values)


def array(tensors: Mapping[str, Array], name: str) -> Array:
    """An array by its name."""
    return tensors[name] if name in tensors else refuse(name, "an array in model.safetensors", "none")


def check(found: Array, name: str, dtype: type, *shape: int | None, largest: float = LARGEST) -> None:
    """Refuses an array of another type or shape (None: any length), and one with NaN or numbers beyond the largest."""
    if found.dtype != dtype or found.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        wanted = " × ".join("n" if length is None else str(length) for length in shape)
        refuse(name, f"{np.dtype(dtype)}, {wanted}", f"{found.dtype}, {' × '.join(map(str, found.shape)) or 'one number'}")
    wrong = ~(np.abs(found) <= largest)
    if wrong.any():
        refuse(name, f"numbers of at most {largest:g}", found[wrong][0])
