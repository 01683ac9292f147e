"""Measures this machine: codes, rescoring and rotation, each by itself, in about a minute. Processor time of one thread counts."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .. import __version__
from ..data import Vectors, unit
from ..index.codes import build
from ..index.rescore import Rescorer
from ..model import AdaWidth
from ..policies import Fixed
from ..policies.select import Policies
from ..policies.taper import Calibration, Curve, TaperModel
from ..progress import progress
from ..record import Record
from ..rotation import Rotated, Rotation
from ..stages.loop import SHORTLIST
from ..types import F32
from .memory import Shape
from .table import SCANNED, STARTS, Scan, Table

SIZES = (2_000, 20_000, 160_000)  # documents
ROWS, WIDTH = 40_000, 512  # that candidates are read from
READ = (64, 512)  # coordinates of a candidate
CANDIDATES = (100, SHORTLIST)
TURNED = (64, 512)  # coordinates of a query
TIMES = 40  # that each step is timed


def bench(seed: int = 0) -> Table:
    """The table of this machine."""
    rng = np.random.default_rng(seed)
    scans: dict[tuple[str, int], Scan] = {}
    with progress("measuring", len(SCANNED) * len(STARTS) + 3) as advance:
        for start in STARTS:
            block = unit(rng.standard_normal((SIZES[-1], start), np.float32))
            for storage in SCANNED:
                advance(0, f"{storage}, {start} coordinates")
                scans[storage, start] = _scan(block, storage)
                advance()
        advance(0, "rescoring")
        candidate, coordinate = _rescoring(rng)
        advance()
        advance(0, "rotation")
        product = _rotation(rng)
        advance()
        advance(0, "searching")
        known = Table(machine(), __version__, scans, candidate, coordinate, product, 0.0)
        call = _call(known, rng)
        advance()
    return Table(machine(), __version__, scans, candidate, coordinate, product, call)


def machine() -> str:
    """The processor's name where the system tells it, and how many there are."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} CPUs, {platform.system()}"


def _scan(block: F32, storage: str) -> Scan:
    """Seconds of one query, at each size."""
    seconds = []
    for size in SIZES:
        codes = build(block[:size], storage, 0)
        queries = block[-TIMES:]
        seconds.append(_timed(lambda i, c=codes, q=queries: c.search(q[i : i + 1], SHORTLIST)))  # type: ignore[misc]
    return Scan(SIZES, tuple(seconds))


def _rescoring(rng: np.random.Generator) -> tuple[float, float]:
    """Seconds per candidate, and per coordinate that is read of it."""
    rows = unit(rng.standard_normal((ROWS, WIDTH), np.float32)).astype(np.float16)
    rescorer = Rescorer([rows], lambda width: np.ones(ROWS, np.float32), np.arange(ROWS))
    queries, identity = unit(rng.standard_normal((TIMES, WIDTH), np.float32)), Rotation.identity(WIDTH)
    picked = np.stack([rng.permutation(ROWS)[: CANDIDATES[-1]] for _ in range(TIMES)])
    seconds = {}
    for count in CANDIDATES:
        for width in READ:
            policy, rotated = Fixed(width, min(READ)), Rotated(queries, identity)
            rotated.upto(WIDTH)
            seconds[count, width] = _timed(
                lambda i, p=policy, r=rotated, c=count: rescorer.answer(r[i : i + 1], picked[i : i + 1, :c], p, 10)  # type: ignore[misc]
            )
    few, many = CANDIDATES
    at = {width: max(0.0, seconds[many, width] - seconds[few, width]) / (many - few) for width in READ}
    coordinate = max(0.0, at[READ[1]] - at[READ[0]]) / (READ[1] - READ[0])
    return max(0.0, at[READ[0]] - coordinate * READ[0]), coordinate


def _rotation(rng: np.random.Generator) -> float:
    """Seconds per multiply-add."""
    turn = Rotation.random(WIDTH, 0)
    queries = unit(rng.standard_normal((TIMES, WIDTH), np.float32))
    few, many = (_timed(lambda i, m=m: Rotated(queries[i : i + 1], turn).upto(m)) for m in TURNED)  # type: ignore[misc]
    return max(0.0, many - few) / (WIDTH * (TURNED[1] - TURNED[0]))


def _call(known: Table, rng: np.random.Generator) -> float:
    """Seconds of a search on disk beyond its scan, its rescoring and its rotation."""
    documents, width, start = 5_000, 128, 64
    rows = unit(rng.standard_normal((documents, width), np.float32))
    rotation = Rotation.random(width, 0)
    curve = Curve(10, np.array([0.0, np.inf]), np.array([float(start), float(width)]), np.zeros(2), np.array([0.9, 1.0]))
    calibration = Calibration((start, width), np.ones(1), np.ones(1))
    model = AdaWidth(rotation, Policies(width, TaperModel(False, (calibration,), ((curve,),), {width: 1.0})), Record())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        with model.index(Vectors.of(rows), folder, storage="flat") as index:
            spent = _timed(lambda i: index.search(rows[i], 10, width=width))
    return max(0.0, spent - known.search(Shape("flat", width, width, start, width), documents, float(width)))


def _timed(step: Callable[[int], object]) -> float:
    """Of a few calls, each with another query: the lower quartile, as others may be at work. The first ones warm up."""
    for i in range(3):
        step(i)
    taken = []
    for i in range(TIMES):
        began = time.thread_time()
        step(i)
        taken.append(time.thread_time() - began)
    return float(np.quantile(taken, 0.25))
