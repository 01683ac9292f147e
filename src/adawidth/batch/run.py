"""Work on every shard: one after the other in this process, or as tasks of Ray Data. Either way results come as they are ready.

A task whose worker or node dies is run again by Ray, so work must come out the same twice: a part is written whole under its own
name, documents are written under their ids.
"""

from __future__ import annotations

import logging
import os
import pickle
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .. import errors
from ..errors import AdaWidthError, OptionError, need
from ..progress import progress
from ..threads import cpus
from .shards import Shard

log = logging.getLogger("adawidth")

TRIES = 4  # of a connection that the cluster takes up and then drops
PAUSE = 0.5  # seconds before the second try, twice as long before each further one

T = TypeVar("T")


def over(work: Callable[[Shard], T], shards: Sequence[Shard], on: str | None, what: str) -> Iterator[tuple[Shard, T]]:
    """(shard, what `work` gives for it), in the order in which they are done. `on`: None for this process, "local" for a Ray of this
    machine, else a Ray cluster's address."""
    with progress(what, sum(shard.rows for shard in shards)) as advance:
        if not shards:
            return
        if on is None:
            for shard in shards:
                yield shard, work(shard)
                advance(shard.rows)
            return
        with _cluster(on) as ray:
            feed = ray.remote(num_cpus=0)(_Feed).remote(work, list(shards))
            while (packed := _got(ray, feed, on)) is not None:
                number, result = pickle.loads(packed)
                if isinstance(result, _Refused):
                    raise getattr(errors, result.kind, AdaWidthError)(result.message)
                yield shards[number], result
                advance(shards[number].rows)


class _Refused:
    """An AdaWidthError on its way from a worker."""

    def __init__(self, error: AdaWidthError) -> None:
        plain = isinstance(error, errors.OptionalDependencyError)
        self.kind, self.message = "AdaWidthError" if plain else type(error).__name__, str(error)


class _Feed:
    """An actor on the cluster that runs the tasks and hands out results one by one: a client needs no more than its address."""

    def __init__(self, work: Callable[[Shard], Any], shards: list[Shard]) -> None:
        import ray.data

        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        numbers = ray.data.from_items([{"number": number} for number in range(len(shards))], override_num_blocks=len(shards))

        def run(row: dict[str, int]) -> dict[str, bytes]:
            number = int(row["number"])
            try:
                result = work(shards[number])
            except AdaWidthError as error:
                result = _Refused(error)
            return {"packed": pickle.dumps((number, result))}

        self._rows = iter(numbers.map(run).iter_rows())

    def next(self) -> bytes | None:
        """The next result; None at the end."""
        row = next(self._rows, None)
        return None if row is None else bytes(row["packed"])


def _got(ray: Any, feed: Any, on: str) -> Any:
    """The next result of the feed; a task that failed and a cluster that went away are one error of one line."""
    try:
        return ray.get(feed.next.remote())
    except (ray.exceptions.RayError, ConnectionError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise AdaWidthError(f"Ray at {on}: a task failed: {lines[-1][:300] if lines else type(error).__name__}") from None


@contextmanager
def _cluster(on: str) -> Iterator[Any]:
    """Ray, connected; one that is connected already is used as it is."""
    need("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    import ray.exceptions

    if ray.is_initialized():
        yield ray
        return
    _connect(ray, on)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, on: str) -> None:
    """Connects to a cluster. For every client, `ray://` starts a process on the head node; where that process dies or is slow, as on a
    busy head, the connection is aborted, and tried again: the next one gets a process of its own."""
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    for tried in range(1, TRIES + 1):
        try:
            if on == "local":
                ray.init("local", num_cpus=cpus(), include_dashboard=False, **quiet)
            else:
                ray.init(on, **quiet)
            return
        except (ConnectionError, ValueError, TimeoutError, RuntimeError) as error:
            dropped = isinstance(error, ConnectionAbortedError)
            lines = str(error).strip().splitlines() or [type(error).__name__]
            reason = lines[-1 if dropped else 0][:200]  # what it says of itself stands behind the traceback of the server
            if not dropped:
                raise OptionError(
                    f"Ray at {on!r} can't be reached ({reason}): give ray://HOST:10001, an address, or local (--on)"
                ) from None
            if tried == TRIES:
                raise AdaWidthError(
                    f"Ray at {on!r} dropped the connection {TRIES} times ({reason}): see ray_client_server*.err on its head node"
                ) from None
            log.info("Ray at %s dropped the connection (%s): trying again", on, reason)
            time.sleep(PAUSE * 2 ** (tried - 1) * random.uniform(0.5, 1.5))
