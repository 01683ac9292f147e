"""Micro-batching: what arrives while a scan is running waits for it, and is then answered together by one scan.

A scan starts as soon as a thread is free and the requests that the event loop has already read have all been taken in, so a single
request is as fast as it can be; under load the batches grow by themselves, and no request waits longer than the scans before it take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class Batcher(Generic[Asked, Answered]):
    """Questions with the same key are answered together, in threads. Used from one event loop only."""

    def __init__(
        self, name: str, run: Callable[[Hashable, Sequence[Asked]], Sequence[Answered | Exception]], threads: int, most: int
    ) -> None:
        """`run` answers questions of one key, one answer or error each, in their order; it is given at most `most` of them."""
        self._run = run
        self._most = most
        self._free = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting: dict[Hashable, deque[tuple[Asked, asyncio.Future[Answered]]]] = {}  # the key that has waited longest first
        self._running: set[asyncio.Future[Sequence[Answered | Exception]]] = set()
        self._due = False  # a start is on the event loop's list

    async def ask(self, key: Hashable, asked: Asked) -> Answered:
        """The answer to one question."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answered] = loop.create_future()
        self._waiting.setdefault(key, deque()).append((asked, future))
        if self._free and not self._due:
            self._due = True
            loop.call_soon(self._start)
        return await future

    def close(self) -> None:
        """Waits for what is running."""
        self._pool.shutdown(wait=True)

    def _start(self) -> None:
        self._due = False
        while self._free and self._waiting:
            key, queue = next(iter(self._waiting.items()))
            del self._waiting[key]
            taken = [queue.popleft() for _ in range(min(self._most, len(queue)))]
            if queue:
                self._waiting[key] = queue  # behind the other keys
            taken = [(asked, future) for asked, future in taken if not future.cancelled()]
            if taken:
                self._free -= 1
                running = asyncio.get_running_loop().run_in_executor(self._pool, self._run, key, [asked for asked, _ in taken])
                self._running.add(running)
                running.add_done_callback(partial(self._finish, [future for _, future in taken]))

    def _finish(self, futures: Sequence[asyncio.Future[Answered]], done: asyncio.Future[Sequence[Answered | Exception]]) -> None:
        self._running.discard(done)
        self._free += 1
        error = done.exception()
        answers: Sequence[Any] = [error] * len(futures) if error is not None else done.result()
        for future, answer in zip(futures, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self._start()
