"""How many coordinates at how many bits: what fits, and what is chosen."""

import numpy as np
import pytest

from adawidth.index.codes import FourBit
from adawidth.index.codes.codebook import code_bytes, fitted_levels
from adawidth.index.codes.shapes import Shape, chosen_shape, shapes
from adawidth.types import BYTES


@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("width", [1, 31, 64, 100, 384, 1_024])
def test_shapes_fill_the_bytes_where_there_are_coordinates_enough(size: int, width: int) -> None:
    for shape in shapes(size, width):
        assert 1 <= shape.width <= width
        taken = code_bytes(fitted_levels(np.empty((0, shape.width), np.float32), shape.bits))
        assert taken == size or (shape == Shape(width, 4) and taken < size)


def falling(power: float, count: int = 3_000, width: int = 256) -> np.ndarray:
    """Rows whose coordinates shrink by a power of their place."""
    return (np.random.default_rng(0).standard_normal((count, width)) * np.arange(1, width + 1) ** -power).astype(np.float16)


def test_a_steep_spectrum_gets_few_coordinates_and_a_flat_one_many() -> None:
    assert chosen_shape(falling(1.0), 16, seed=0) == Shape(32, 4)
    assert chosen_shape(falling(0.0), 16, seed=0) == Shape(128, 1)


def test_with_few_rows_or_coordinates_there_is_nothing_to_compare() -> None:
    assert chosen_shape(falling(2.0, count=50), 16, seed=0) == Shape(64, 2)
    assert chosen_shape(falling(0.0, width=33), 16, seed=0) == Shape(32, 4)
    assert chosen_shape(falling(0.0, width=20), 16, seed=0) == Shape(20, 4)


@pytest.mark.parametrize("bits", [4, 2, 1])
def test_codes_of_any_bits_are_read_as_they_were_written(bits: int) -> None:
    rows = falling(0.3)[:, :64].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    codes = FourBit.build(rows, seed=0, bits=bits)
    again = FourBit.read(codes.arrays())
    assert again.bytes_per_document == 8 * bits
    found = again.search(rows[:20], 50)
    assert (found == codes.search(rows[:20], 50)).all()
    assert all(i in row for i, row in enumerate(found))
