"""Equal vectors are stored as equal bits, whatever they are added with, so that their ids order them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite.binding import get_host_cpu_features
from numba import njit

from adawidth import AdaWidth
from adawidth.data import Vectors, unit
from adawidth.formats.documents import of_file
from adawidth.index.codes.fourbit import FourBit
from adawidth.kernels.float16 import narrow
from adawidth.rotation import Axes, Rotation

WIDTHS = (1, 3, 17, 64, 100, 384, 768, 1024)
CPUS = ("+sse2", "+avx2,+fma,+f16c", "+avx512f,+avx2,+fma,+f16c")
DIGEST = """
import hashlib, sys
import numpy as np
from adawidth.rotation import Rotation

digest = hashlib.sha256()
with np.load(sys.argv[1]) as made:
    for width in sys.argv[2:]:
        rotation, rows = Rotation(made["rotation" + width], "made"), made["rows" + width]
        for begin, end in ((0, 1), (1, 3), (3, 15), (15, len(rows))):
            digest.update(rotation.stored(rows[begin:end], int(width)).tobytes())
print(digest.hexdigest())
"""


@cache
def rotation(width: int) -> Rotation:
    return Rotation.random(width)


@njit
def _narrowed(values: np.ndarray, bits: np.ndarray) -> None:
    narrow(values.ctypes.data, bits.ctypes.data, len(values))  # type: ignore[call-arg]


def vectors(count: int, width: int, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, width)))


@given(width=st.sampled_from(WIDTHS), seed=st.integers(0, 99), place=st.integers(0, 299), count=st.integers(1, 300), kept=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_row_is_stored_alike_in_every_batch(width: int, seed: int, place: int, count: int, kept: float) -> None:
    rows, kept = vectors(300, width, seed), max(1, round(kept * width))
    alone = rotation(width).stored(rows[place : place + 1], kept)
    begin = max(0, min(place, 300 - count))
    batch = rotation(width).stored(rows[begin : begin + count], kept)
    if begin <= place < begin + count:
        np.testing.assert_array_equal(batch[place - begin].view(np.uint16), alone[0].view(np.uint16))
    np.testing.assert_array_equal(rotation(width).stored(np.asfortranarray(rows), kept)[place], alone[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_stored_rows_are_the_rotated_ones_rounded_once(width: int) -> None:
    rows = vectors(40, width)
    exact = rows.astype(np.float64) @ rotation(width).matrix.T.astype(np.float64)
    spacing = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    assert (np.abs(rotation(width).stored(rows, width) - exact) <= 0.502 * spacing + 1e-7).all()


@given(seed=st.integers(0, 99), width=st.integers(1, 600), count=st.sampled_from([1, 5, 12, 13, 48, 49, 100]), kept=st.integers(1, 600))
@settings(max_examples=40, deadline=None)
def test_products_are_those_of_whole_numbers(seed: int, width: int, count: int, kept: int) -> None:
    rows, axes, kept = vectors(count, width, seed), vectors(width, width, seed + 1), min(width, kept)
    whole = [np.rint(x.astype(np.float64) * 2**26).astype(np.int64) for x in (rows, axes)]
    exact = (whole[0] @ whole[1].T) / 2.0**52  # no sum is longer than 2⁵²
    np.testing.assert_array_equal(Axes(axes).singles(rows), exact.astype(np.float32))
    found = np.empty((count, kept), np.float16)
    Axes(axes).halves(rows, found)
    np.testing.assert_array_equal(found.view(np.uint16), exact[:, :kept].astype(np.float16).view(np.uint16))


@given(st.lists(st.integers(-(2**26), 2**26), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_float16_is_rounded_once_as_numpy_rounds_it(whole: list[int]) -> None:
    """Numbers between two of float16, or a little more or less, go where NumPy has them go: to the even one, or to the nearer."""
    axes = np.array([[number / 2**26] for number in whole], np.float64).astype(np.float16).astype(np.float64)
    between = (axes + np.nextafter(axes.astype(np.float16), np.float16(2)).astype(np.float64)) / 2
    values = np.concatenate([axes, between, between + 2.0**-52, between - 2.0**-52]).ravel()
    bits = np.empty(len(values), np.uint16)
    _narrowed(values, bits)
    np.testing.assert_array_equal(bits, values.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_every_cpu_gives_the_same_bits(tmp_path: Path, threads: str) -> None:
    """In processes whose numba compiles for a lesser CPU than this one, or whose rows are shared among threads."""
    widths = [str(width) for width in WIDTHS]
    np.savez(
        tmp_path / "made.npz",
        **{f"rotation{w}": rotation(int(w)).matrix for w in widths},
        **{f"rows{w}": vectors(200, int(w)) for w in widths},
    )
    command = [sys.executable, "-c", DIGEST, str(tmp_path / "made.npz"), *widths]
    has = get_host_cpu_features()
    found = {}
    for features in [None, *(names for names in CPUS if all(has.get(name[1:]) for name in names.split(",")))]:
        cpu = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)} if features else {}
        environment = {**os.environ, "OMP_NUM_THREADS": threads, **cpu}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found[features] = done.stdout
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("width", [64, 384, *(pytest.param(wide, marks=pytest.mark.slow) for wide in (768, 1024))])
@pytest.mark.parametrize("storage", ["flat", "pq4"])
def test_ids_order_equal_documents_of_several_commits(tmp_path: Path, width: int, storage: str) -> None:
    rng = np.random.default_rng(width)
    made = unit(vectors(502, width) * (0.1 + np.exp(-np.arange(width) / 30)))
    documents, copied, other = made[:500], made[500:501], made[501:]
    model = AdaWidth.fit(documents, recipe="pca")
    ids, names = [f"d{i}" for i in range(500)], [f"c{i:03}" for i in rng.permutation(60)]
    with model.index(documents, tmp_path / "i", ids=ids, storage=storage) as index:
        memory = model.index(documents, ids=ids)
        for begin, end in ((0, 20), (20, 21), (21, 57), (57, 60)):
            for each in (index, memory):
                each.add(np.tile(copied, (end - begin, 1)), names[begin:end])
        assert len(index.store.view.segments) > 1
        assert len(np.unique(index.store.vectors(names), axis=0)) == 1
        expected = sorted(names, reverse=True)
        near = unit(copied + 0.3 * other)
        for each in (index, memory):
            for options in ({}, {"width": "full"}, {"policy": "certify"}, {"policy": "fixed"}):
                hits = each.search(near, k=60, **options)  # type: ignore[arg-type]
                assert hits.ids[0] == expected, (options, each)
                assert len(set(hits.scores[0].tolist())) == 1


def test_equal_rows_of_a_segment_have_equal_codes() -> None:
    block = np.tile(vectors(1, 128), (16_384 + 3, 1))  # the last three are coded by themselves
    for bits in (2, 4):
        assert len(np.unique(FourBit.build(block, 0, bits).arrays()["codes"], axis=0)) == 1


def test_equal_rows_of_a_parquet_file_are_read_alike(tmp_path: Path) -> None:
    """Also where they are in different batches, and not of length one."""
    rows = np.tile(3.7 * vectors(50, 100), (400, 1))
    pq.write_table(pa.table({"id": [str(i) for i in range(len(rows))], "vector": list(rows)}), tmp_path / "d.parquet")
    batches = [batch.vectors.all() for batch in of_file(tmp_path / "d.parquet").batches()]
    assert len(batches) > 1
    np.testing.assert_array_equal(np.concatenate(batches), np.tile(batches[0][:50], (400, 1)))


def test_lengths_do_not_depend_on_how_an_array_lies_in_memory() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 1000)).astype(np.float32)
    np.testing.assert_array_equal(unit(np.asfortranarray(rows)), unit(rows))
    np.testing.assert_array_equal(Vectors.of(np.asfortranarray(rows)).read(slice(7, 8)), unit(rows)[7:8])
