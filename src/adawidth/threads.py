"""The one place that decides on threads: as many as the process has CPUs, and those that wait sleep.

faiss and torch bring OpenMP, NumPy brings OpenBLAS; by default their waiting threads spin. On a busy machine or under a container's
CPU quota that takes many times the CPU seconds of the work itself. Sleeping is asked for in the environment, which OpenMP reads once,
when it is loaded; OpenBLAS can't sleep, so it runs on one thread. What the user has set is left as it is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any

SLEEPING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # which OpenBLAS reads
SETTERS = [f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]
SOME = 2048  # rows that are worth a thread's while
KEPT = 64  # threads that are kept at most, however many are asked for


@cache
def cpus() -> int:
    """CPUs that this process may use: OMP_NUM_THREADS where it is set, else by affinity and the control groups' quota."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(allowed, quota())))


def quota(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float:
    """CPUs that the control groups of this process allow it, its own and all above it; infinity where there is no limit."""
    found = [inf]
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            mounts = (root, root / "unified") if not controllers else (root / controllers, root / "cpu")
            if not controllers or "cpu" in controllers.split(","):
                path = Path(own.lstrip("/"))
                found += [_limit(mount / group) for mount in mounts for group in (path, *path.parents)]
    return min(found)


def _limit(group: Path) -> float:
    """One control group's quota in CPUs, of version 2 or 1."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        with suppress(OSError, ValueError):  # no such file, or "max" for no limit
            quota, period = map(int, " ".join((group / name).read_text() for name in names).split())
            if quota > 0 and period > 0:
                return quota / period
    return inf


@cache
def settle() -> None:
    """Decides, once. Packages whose modules import faiss or torch call this in their `__init__`, so that it comes before them."""
    count, free = cpus(), not any(name in os.environ for name in BLAS)
    for name, value in {**SLEEPING, "OMP_NUM_THREADS": str(count)}.items():
        os.environ.setdefault(name, value)
    if free:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        for set_threads in _loaded_blas():
            set_threads(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(min(torch.get_num_threads(), count))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_alone)


@contextmanager
def openmp(faiss: Any, count: int) -> Iterator[None]:
    """`with openmp(faiss, 1):` so many threads for what this thread asks of faiss; then as many as before."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def pool(count: int) -> ThreadPoolExecutor:
    """So many threads, or `KEPT`, for work that waits for no other of theirs. New ones would have to get memory of their own first."""
    return _kept(min(count, KEPT), os.getpid())  # a forked child has none of its parent's threads


@lru_cache(maxsize=8)
def _kept(count: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="adawidth")


def shared(work: Callable[[slice], object], count: int) -> None:
    """Calls `work` with some of so many rows at a time, on all CPUs."""
    parts = [slice(start, start + SOME) for start in range(0, count, SOME)]
    if len(parts) < 2 or cpus() < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(min(cpus(), len(parts))) as pool:
        list(pool.map(work, parts))


def _loaded_blas() -> list[Any]:
    """What sets the threads of each OpenBLAS that is loaded already."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in lines if "openblas" in line}
    libraries = [ctypes.CDLL(path) for path in sorted(paths) if Path(path).is_file()]
    return [getattr(library, name) for library in libraries for name in SETTERS if hasattr(library, name)]


def _alone() -> None:
    """In a forked child OpenMP would wait for threads that only the parent has: one thread is all there is."""
    os.environ["OMP_NUM_THREADS"] = "1"
    cpus.cache_clear()
    if faiss := sys.modules.get("faiss"):
        faiss.omp_set_num_threads(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
