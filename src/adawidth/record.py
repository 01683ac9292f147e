"""How a model was made, from fit to card: data, seed, recipes tried with their dev figures, and which one ships.

It is config.json's "record". Folders of 0.1 lack some of the keys; those get their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True)
class Trial:
    """A rotation or query map that was tried, with its mean nDCG@10 on dev at each width."""

    recipe: str
    dev: Mapping[int, float]
    steps: int = 0  # run
    taken_at: int = 0  # the step that was best on dev
    detail: str = ""
    strength: float | None = None  # of a query map

    @property
    def mean(self) -> float:
        """Over the widths; 0 where there were no dev queries."""
        return sum(self.dev.values()) / max(len(self.dev), 1)

    def to_json(self) -> dict[str, Any]:
        """As config.json and `info --json` have it."""
        optional = {"detail": self.detail} if self.strength is None else {"strength": self.strength}
        figures = {str(m): figure for m, figure in self.dev.items()}
        return {"recipe": self.recipe, "steps": self.steps, "taken_at": self.taken_at, **optional, "dev": figures}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """The trial that `to_json` wrote."""
        stored = dict(stored)
        dev = {int(m): float(figure) for m, figure in dict(stored["dev"]).items()}
        strength = stored.get("strength")
        return cls(
            str(stored["recipe"]),
            dev,
            int(stored.get("steps", 0)),
            int(stored.get("taken_at", 0)),
            str(stored.get("detail", "")),
            None if strength is None else float(strength),
        )


@dataclass(frozen=True, kw_only=True)
class _Fit:
    """What the records of a rotation and of a query map share."""

    dataset: str = "arrays"
    encoder: str = ""
    encoding: Mapping[str, Any] = field(default_factory=dict)  # what is known of the encoder: its name, fingerprint and prompts
    seed: int = 0
    documents: int = 0
    train_queries: int = 0
    dev_queries: int = 0
    dev_measure: str = "nDCG@10"
    chosen: str = ""  # the recipe that ships
    reason: str = ""
    trials: tuple[Trial, ...] = ()
    target_width: int = 0

    def to_json(self) -> dict[str, Any]:
        """As config.json has it."""
        stored = asdict(self) | {"trials": [trial.to_json() for trial in self.trials]}
        return {name: value for name, value in stored.items() if name not in ("encoding", "profile") or value}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """The record that `to_json` wrote; unknown keys are left out, and a value of the wrong type is a ValueError."""
        stored = dict(stored)
        known = {one.name: stored[one.name] for one in fields(cls) if one.name in stored and one.name != "trials"}
        for one in fields(cls):
            default = one.default if one.default_factory is MISSING else one.default_factory()
            if one.name in known and not isinstance(known[one.name], (int, float) if isinstance(default, float) else type(default)):
                raise ValueError(f"the record's {one.name} is {known[one.name]!r}")
        return cls(**known, trials=tuple(Trial.of_json(trial) for trial in stored.get("trials", ())))


@dataclass(frozen=True, kw_only=True)
class Record(_Fit):
    """How a rotation and its policies were made."""

    recipe: str = "auto"  # as asked
    labels: bool = False
    pool: int = 0  # documents that the fit held in memory
    profile: Mapping[str, Any] = field(default_factory=dict)  # how documents and queries looked under the model: see model/profile.py


@dataclass(frozen=True, kw_only=True)
class TaskRecord(_Fit):
    """How a query map and its policies were made."""

    strength: float = 0.0
