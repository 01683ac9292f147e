"""The quality of a model: evaluate one, compare it with other methods; curves and significance.
Results are objects and JSON; pages and figures are made in report."""

from .check import check
from .compare import Comparison, compare
from .evaluate import evaluate
from .points import Evaluation, Point

__all__ = ["Comparison", "Evaluation", "Point", "check", "compare", "evaluate"]
