"""Pages and figures, and what they say of models, indexes and results.
What is drawn was measured elsewhere and came as JSON; nothing is measured here."""

from .report import read_results, write_report

__all__ = ["read_results", "write_report"]
