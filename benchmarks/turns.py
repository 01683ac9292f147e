"""Timing rivals on a machine that others use too: one thread, its processor time, in turns.

Ratios are medians over turns of the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def take(ways: Mapping[str, Callable[[int], object]], turns: int, each: int = 1) -> dict[str, np.ndarray]:
    """Processor seconds of every call: in each turn every way is called with the turn's number, `each` times, the fastest counting."""
    for call in ways.values():
        call(0)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns):
        for name, call in ways.items():
            taken = []
            for _ in range(each):
                began = time.thread_time()
                call(turn)
                taken.append(time.thread_time() - began)
            times[name].append(min(taken))
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
