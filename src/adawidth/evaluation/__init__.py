"""What a model is worth: evaluate one, compare it with other methods, draw the report."""

from .compare import Comparison, compare
from .evaluate import evaluate
from .points import Evaluation, Point

__all__ = ["Comparison", "Evaluation", "Point", "compare", "evaluate"]
