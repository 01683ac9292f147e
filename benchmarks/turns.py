"""Timing rivals on a machine that others use too: one thread, its processor time, in turns.

Ratios are medians over turns of the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def take(ways: Mapping[str, Callable[[int], object]], turns: int, each: int = 1) -> dict[str, np.ndarray]:
    """Processor seconds of a call, by way and turn: in each turn every way answers the same `each` queries in a row; their mean counts.

    In a row, as a server has them: a rival that reads all of memory between two queries would cost the others their caches.
    """
    for call in ways.values():
        call(0)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns):
        for name, call in ways.items():
            began = time.thread_time()
            for query in range(turn * each, (turn + 1) * each):
                call(query)
            times[name].append((time.thread_time() - began) / each)
    return {name: np.array(taken) for name, taken in times.items()}


def summary(times: Mapping[str, np.ndarray], ours: str, queries: int = 1) -> dict[str, float]:
    """Median and least microseconds a query of each way, and how many times ours every other way takes."""
    found = {f"{name}_us": round(float(np.median(taken)) / queries * 1e6, 1) for name, taken in times.items()}
    found |= {f"{name}_least_us": round(float(taken.min()) / queries * 1e6, 1) for name, taken in times.items()}
    ratios = {name: np.median(taken / times[ours]) for name, taken in times.items() if name != ours}
    return found | {f"{name}_over_{ours}": round(float(ratio), 1) for name, ratio in ratios.items()}


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """Share of the true rows that were found. (Q, k), (Q, k)"""
    return round(float(np.mean([np.isin(wanted, rows).mean() for wanted, rows in zip(truth, found, strict=True)])), 4)
