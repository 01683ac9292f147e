"""Micro-batching: what arrives while a scan is running waits for it, and is then answered together by one scan.

A scan starts as soon as a thread is free and the requests that the event loop has already read have all been taken in, so a single
request is as fast as it can be; under load the batches grow by themselves, and no request waits longer than the scans before it take.

What is expected to take less than two milliseconds is answered on the event loop itself: to wake a thread, and to pass Python's lock
to it and back, costs more than such a scan.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")

QUICK = 0.002  # seconds that the event loop may be kept
FADING = 0.5  # of what a slow one took is expected of the next
KEYS = 256  # whose pace is known


class Batcher(Generic[Asked, Answered]):
    """Questions with the same key are answered together, in threads, or at once if that is quick. Used from one event loop only."""

    def __init__(
        self,
        name: str,
        run: Callable[[Hashable, Sequence[Asked]], Sequence[Answered | Exception]],
        threads: int,
        most: int,
        expected: Callable[[Hashable, Asked], float] = lambda key, asked: math.inf,
    ) -> None:
        """`run` answers questions of one key, one answer or error each, in their order; it is given at most `most` of them.

        `expected` tells how many seconds a question will take.
        """
        self._run = run
        self._most = most
        self._expected = expected
        self._free = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting: dict[Hashable, deque[tuple[Asked, asyncio.Future[Answered]]]] = {}  # the key that has waited longest first
        self._running: set[asyncio.Future[Sequence[Answered | Exception]]] = set()
        self._due = False  # a start is on the event loop's list

    async def ask(self, key: Hashable, asked: Asked) -> Answered:
        """The answer to one question."""
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append((asked, future))
        self._schedule()
        return await future

    def close(self) -> None:
        """Waits for what is running."""
        self._pool.shutdown(wait=True)

    def _schedule(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Gives what waits to free threads, up to the first that is quick: that is answered here, and then other events have their turn."""
        self._due = False
        for key in list(self._waiting):
            quick = self._quick(key)
            if not quick and not self._free:
                continue
            taken = self._taken(key, quick or self._most)
            asked, futures = [one for one, _ in taken], [future for _, future in taken]
            if not taken:
                continue
            if quick:
                self._answer_here(key, asked, futures)
                if self._waiting:
                    self._schedule()
                return
            self._free -= 1
            running = asyncio.get_running_loop().run_in_executor(self._pool, self._run, key, asked)
            self._running.add(running)
            running.add_done_callback(partial(self._finish, futures))
        if self._waiting and self._free:
            self._schedule()

    def _quick(self, key: Hashable) -> int:
        """How many of a key's questions can be answered on the event loop."""
        left, count = QUICK, 0
        for asked, _ in self._waiting[key]:
            left -= self._expected(key, asked)
            if left < 0 or count == self._most:
                break
            count += 1
        return count

    def _taken(self, key: Hashable, most: int) -> list[tuple[Asked, asyncio.Future[Answered]]]:
        """So many of a key's questions that still want an answer; the others go behind the other keys."""
        queue = self._waiting.pop(key)
        taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        if queue:
            self._waiting[key] = queue
        return [(asked, future) for asked, future in taken if not future.cancelled()]

    def _answer_here(self, key: Hashable, asked: Sequence[Asked], futures: Sequence[asyncio.Future[Answered]]) -> None:
        try:
            answers: Sequence[Any] = self._run(key, asked)
        except Exception as error:
            answers = [error] * len(futures)
        _pass_on(answers, futures)

    def _finish(self, futures: Sequence[asyncio.Future[Answered]], done: asyncio.Future[Sequence[Answered | Exception]]) -> None:
        self._running.discard(done)
        self._free += 1
        error = done.exception()
        _pass_on([error] * len(futures) if error is not None else done.result(), futures)
        if self._waiting:
            self._schedule()


class Pace:
    """What a question took of late, by its key: the slowest of the last few. Forgotten when what is asked is another."""

    def __init__(self) -> None:
        self._known: tuple[Callable[[], object | None], dict[Hashable, float]] = (lambda: None, {})

    def of(self, source: object, key: Hashable) -> float:
        """Seconds; infinitely many where none of the kind was asked yet."""
        known, seconds = self._known
        return seconds.get(key, math.inf) if known() is source else math.inf

    def note(self, source: object, key: Hashable, seconds: float) -> None:
        """Notes what one took. Threads may."""
        known, noted = self._known
        if known() is not source or len(noted) >= KEYS:
            known, noted = self._known = (weakref.ref(source), {})
        noted[key] = max(seconds, FADING * noted.get(key, 0.0))


def _pass_on(answers: Sequence[Any], futures: Sequence[asyncio.Future[Any]]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
