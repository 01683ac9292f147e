"""Tasks: query maps by name, each with the policies calibrated for it, so that one index serves several tasks or tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from .errors import OptionError
from .policies.select import Policies
from .record import TaskRecord
from .rotation import QueryMap
from .types import Array, Id

DEFAULT = "default"  # the task taken where none is named, if there is one
NONE = "none"  # no query map: the rotation alone, and at full width the frozen ranking


@dataclass(frozen=True, eq=False)
class TaskMap:
    """What `refit` adds to a model: a query map, policies for mapped queries, and the record of how they were made."""

    query_map: QueryMap
    policies: Policies
    record: TaskRecord = field(default_factory=TaskRecord)
    seen: frozenset[Id] = frozenset()  # ids of documents relevant to a train or dev query

    def config(self) -> dict[str, Any]:
        """What goes into config.json."""
        seen = sorted(self.seen, key=str)
        return {"fingerprint": self.query_map.fingerprint, **self.policies.config(), "record": self.record.to_json(), "seen": seen}

    def tensors(self) -> dict[str, Array]:
        """What goes into model.safetensors."""
        return {"matrix": self.query_map.matrix, "bias": self.query_map.bias, **self.policies.tensors()}

    @classmethod
    def of(cls, config: Mapping[str, Any], tensors: Mapping[str, Array]) -> Self:
        """The task that `config` and `tensors` came from."""
        query_map = QueryMap(tensors["matrix"], tensors["bias"], config["fingerprint"])
        policies, record = Policies.of(query_map.width, config, tensors), TaskRecord.of_json(config["record"])
        return cls(query_map, policies, record, frozenset(config["seen"]))


def pick(tasks: Mapping[str, TaskMap], name: str | None) -> TaskMap | None:
    """The task of this name; unnamed, the one called "default" if there is one; none for "none"."""
    if name is None:
        return tasks.get(DEFAULT)
    if name == NONE:
        return None
    if name not in tasks:
        raise OptionError(f"there is no task {name!r}; there are {', '.join((*sorted(tasks), NONE))}: learn it with refit")
    return tasks[name]


def check_name(name: str) -> None:
    """Refuses what can't name a task."""
    if name == NONE or not name.strip() or name != name.strip() or any(c in name for c in "\r\n\t"):
        raise OptionError(f"{name!r} can't name a task: {NONE!r} means no query map, and a name is not empty and has no spaces around it")
