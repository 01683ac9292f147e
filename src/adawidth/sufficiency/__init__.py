"""How many dimensions do I need? Required widths, the width law, its tests and its planner.
Nothing that searches depends on this."""

from .bound import Decay, Envelope
from .law import WidthLaw
from .overtakers import RequiredWidths, required_widths
from .planner import Prediction
from .rates import compare_rates, information_rates

__all__ = [
    "Decay",
    "Envelope",
    "Prediction",
    "RequiredWidths",
    "WidthLaw",
    "compare_rates",
    "information_rates",
    "required_widths",
]
