"""Tasks: query maps by name, each with the policies calibrated for it, so that one index serves several tasks or tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np

from .errors import ArtifactError, OptionError
from .policies.select import Policies, part_of
from .policies.stored import array, check, entry, listed, refuse, within
from .record import Record, TaskRecord
from .rotation import QueryMap, Rotation
from .types import Array, Id

DEFAULT = "default"  # the task taken where none is named, if there is one
R = TypeVar("R", Record, TaskRecord)
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
    def of(cls, config: Mapping[str, Any], tensors: Mapping[str, Array], rotation: Rotation) -> Self:
        """The task that `config` and `tensors` came from, over this rotation; what can't be is refused by name."""
        if entry(config, "fingerprint") != rotation.fingerprint:
            refuse("fingerprint", f"{rotation.fingerprint}, the model's rotation", config["fingerprint"])
        for name, shape in (("matrix", (rotation.width,) * 2), ("bias", (rotation.width,))):
            check(array(tensors, name), name, np.float32, *shape)
        query_map = QueryMap(tensors["matrix"], tensors["bias"], config["fingerprint"])
        return cls(query_map, Policies.of(rotation.width, config, tensors), record_of(config, TaskRecord), seen_of(config))


def record_of(config: Any, kind: type[R]) -> R:
    """The record of how something was learned."""
    found = entry(config, "record")
    if not isinstance(found, dict):
        refuse("record", "an object", found)
    try:
        return kind.of_json(found)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        refuse("record", f"what {kind.__name__} holds", repr(error))


def seen_of(config: Any) -> frozenset[Id]:
    """Ids of documents that a fit has seen."""
    found = listed(config, "seen")
    return frozenset(found) if all(type(one) in (str, int) for one in found) else refuse("seen", "a list of ids", found)


def stored_tasks(config: Any, tensors: Mapping[str, Array], rotation: Rotation) -> dict[str, TaskMap]:
    """The tasks of a model folder by name; models of early versions have none."""
    tasks: dict[str, TaskMap] = {}
    for place, stored in enumerate(listed(config, "tasks") if "tasks" in config else ()):
        with within(f"tasks.{place}"):
            name = entry(stored, "name")
            if not isinstance(name, str) or name in tasks:
                refuse("name", "a name that no other task has", name)
            try:
                check_name(name)
            except OptionError as error:
                raise ArtifactError(f"name: {error}") from None
            tasks[name] = TaskMap.of(stored, part_of(f"tasks.{place}", tensors), rotation)
    return tasks


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
