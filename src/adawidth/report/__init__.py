"""Pages and figures, and what they say of models, indexes and results."""

from .report import read_results, write_report

__all__ = ["read_results", "write_report"]
