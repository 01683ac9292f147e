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

from adawidth import AdaWidth
from adawidth.data import Vectors, unit
from adawidth.formats.documents import of_file
from adawidth.index.codes.fourbit import FourBit
from adawidth.rotation import Rotation

WIDTHS = (1, 3, 17, 64, 100, 384, 768, 1024)
KERNELS = {"Prescott": "sse3", "Nehalem": "sse4_2", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512bw"}  # of OpenBLAS
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


def test_every_kernel_of_blas_gives_the_same_bits(tmp_path: Path) -> None:
    """Kernels for other CPUs, and other numbers of threads, add up in other orders."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "").split()
    widths = [str(width) for width in WIDTHS]
    np.savez(
        tmp_path / "made.npz",
        **{f"rotation{w}": rotation(int(w)).matrix for w in widths},
        **{f"rows{w}": vectors(200, int(w)) for w in widths},
    )
    command = [sys.executable, "-c", DIGEST, str(tmp_path / "made.npz"), *widths]
    found = {}
    for kernel in [None, *(kernel for kernel, flag in KERNELS.items() if flag in flags)]:
        for threads in ("1", "2"):
            chosen = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, **chosen}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            found[kernel, threads] = done.stdout
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
