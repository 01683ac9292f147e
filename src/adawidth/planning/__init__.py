"""What an index of a given size will need: memory and disk from the formats themselves, latency from a table measured by `bench`.
Nothing here searches or fits; `plan` is arithmetic."""

from ..threads import settle
from .planner import Plan, plan

__all__ = ["Plan", "plan"]

settle()
