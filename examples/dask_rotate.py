"""Rotates the vectors of Parquet files on Dask, a task for each file: python dask_rotate.py MODEL IN_FOLDER OUT_FOLDER [WIDTH]"""

import sys
from pathlib import Path

import dask
import pyarrow.parquet as pq

from adawidth import AdaWidth
from adawidth.batch import Rotate


def rotated(kernel: Rotate, source: Path, out: Path) -> None:
    pq.write_table(kernel(pq.read_table(source), str(source)), out)


def main(model: str, source: str, out: str, width: str = "64") -> None:
    kernel = dask.delayed(Rotate(AdaWidth.load(model), int(width)))
    Path(out).mkdir(parents=True)
    files = sorted(Path(source).glob("*.parquet"))
    dask.compute(*(dask.delayed(rotated)(kernel, file, Path(out) / file.name) for file in files))


if __name__ == "__main__":
    main(*sys.argv[1:])
