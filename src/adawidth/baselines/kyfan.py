"""The Ky Fan rotation (methods 9.2): axes by the mean margin of train queries, in closed form; its one number is set on dev."""

from __future__ import annotations

from ..data import Learning
from ..rotation import Rotation, second_moment
from ..training.kyfan import best_kyfan, margin_matrix
from ..training.pool import sample
from ..training.task import Task
from .base import Rotated


class KyFan(Rotated):
    """Without labels the frozen encoder's first answer is each query's positive."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        task = Task.of(sample(learning, seed))
        return best_kyfan(task, margin_matrix(task, seed=seed), second_moment(learning.documents, seed=seed))[0]
