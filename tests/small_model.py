"""A small model with everything that one can have, made by hand: a taper from two start widths, a router with two heads, two tasks."""

from pathlib import Path

import numpy as np

from adawidth import AdaWidth, Rotation
from adawidth.policies.router import Head, RouterModel, Trees
from adawidth.policies.select import Policies
from adawidth.policies.taper import Calibration, Curve, TaperModel
from adawidth.record import Record, TaskRecord
from adawidth.rotation import QueryMap
from adawidth.tasks import TaskMap
from small_index import ROTATION


def trees(**changes: object) -> dict[str, np.ndarray]:
    """Two trees of one split each, but for the changes."""
    sound = {
        "feature": np.array([3, 0, 0, 17, 0, 0], np.int32),
        "threshold": np.array([0.5, np.inf, np.inf, 0.1, np.inf, np.inf]),
        "children": np.array([[1, 2], [1, 1], [2, 2], [4, 5], [4, 4], [5, 5]], np.int32),
        "value": np.array([0.0, -1.0, 1.0, 0.0, 2.0, 3.0]),
        "roots": np.array([0, 3], np.int32),
        "depths": np.array([1, 1], np.int32),
    }
    return sound | {name: np.asarray(value, sound[name].dtype if isinstance(value, list) else None) for name, value in changes.items()}


def policies() -> Policies:
    """A taper from two start widths, and a router with a head for a pair of widths and one for three."""
    rng = np.random.default_rng(0)
    z = np.array([0.0, 0.5, 1.0, 2.0, 4.0, np.inf])
    ladders = [(32, 40, 48, 64), (48, 64)]
    curves = [
        tuple(Curve(k, z, np.linspace(ladder[0], 64, 6), np.full(6, 0.2), np.linspace(0.8, 1, 6)) for k in (10, 100)) for ladder in ladders
    ]
    calibrations = tuple(Calibration(ladder, np.full(len(ladder) - 1, 0.9), np.full(len(ladder) - 1, 0.1)) for ladder in ladders)
    heads = (
        Head((32, 64), "paper", Trees(**trees()), np.array([-1.0, 1.0]), np.array([[0.0, -1.0], [0.0, 1.0]])),
        Head((32, 48, 64), "query", Trees(**trees()), np.arange(4.0), np.outer(np.arange(4.0), [0.0, 0.1, 0.2])),
    )
    scores = tuple(rng.uniform(-1, 4, 20) for _ in heads)
    router = RouterModel(32, (32, 48, 64), 0.1, True, 10, rng.uniform(0.5, 1, (20, 3)), heads, scores)
    return Policies(64, TaperModel(True, calibrations, tuple(curves), {32: 0.8, 48: 0.9, 64: 1.0}), router)


def small_model(rotation: Rotation = ROTATION) -> AdaWidth:
    """That model, two tasks included, under the small index's rotation or another one as wide."""
    task = TaskMap(QueryMap.identity(rotation), policies(), TaskRecord(chosen="identity"), frozenset({"d1", "d2"}))
    return AdaWidth(rotation, policies(), Record(chosen="random"), frozenset({"d1", "d2"}), {"default": task, "other": task})


def save_small_model(path: Path) -> Path:
    """Writes it, and gives the path."""
    small_model().save(path)
    return path
