"""Load on a service of this machine, from a process of its own: python benchmarks/http_load.py SPEC.json (see `serve.py`).

Raw HTTP/1.1 over a bounded number of connections and seconds, on 127.0.0.1 only; it stops by itself. A client library would take
longer for a request than the service does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32  # queries of a request
Spec = dict[str, Any]  # port, key, connections by kind, seconds, queries (a file), options of searches, path of a Chroma collection


def request(path: str, body: Any = None, key: str = "") -> bytes:
    """A request as it goes over the wire."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"] if content else []
    return "\r\n".join([*lines, "", ""]).encode() + content


def packed(rows: np.ndarray) -> str:
    """Vectors as base64."""
    return base64.b64encode(np.ascontiguousarray(rows, "<f4").tobytes()).decode()


def forever(requests: list[bytes], first: int) -> Iterator[tuple[str, bytes]]:
    """The same requests over and over, from another one on for each connection."""
    for place in count(first):
        yield "", requests[place % len(requests)]


def writes(rows: np.ndarray, worker: int, spec: Spec) -> Iterator[tuple[str, bytes]]:
    """A new document with each request."""
    for turn in count():
        name = f"load-{os.getpid()}-{worker}-{turn}"
        document = {"id": name, "title": name, "vector": packed(rows[(worker * 31 + turn) % len(rows)])}
        yield name, request("/v1/documents", {"documents": [document]}, spec["key"])


def searches(rows: np.ndarray, spec: Spec, size: int = 1, **options: Any) -> list[bytes]:
    """So many queries in each request, as base64."""
    parts = [packed(rows[i : i + size]) for i in range(0, len(rows) - size + 1, size)]
    return [request("/v1/search", {"vector": part, **spec["options"], **options}, spec["key"]) for part in parts]


def chroma(rows: np.ndarray, spec: Spec, size: int = 1) -> list[bytes]:
    """The same for a collection of Chroma's server, as its client sends it."""
    parts = [rows[i : i + size].tolist() for i in range(0, len(rows) - size + 1, size)]
    return [request(spec["chroma"], {"query_embeddings": part, "n_results": 10, "include": ["distances"]}) for part in parts]


KINDS: dict[str, Callable[[np.ndarray, Spec], list[bytes]]] = {
    "nothing": lambda rows, spec: [request("/healthz")],
    "search": searches,
    "ids": partial(searches, fields=[]),
    "batch": partial(searches, fields=[], size=BATCH),
    "chroma": chroma,
    "chroma_batch": partial(chroma, size=BATCH),
}  # kind -> requests that all connections send; besides these there is "write"


class Connection(asyncio.Protocol):
    """One request after the other, each sent when the answer to the last one is there."""

    def __init__(self, kind: str, requests: Iterator[tuple[str, bytes]], end: float, out: dict[str, Any]) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._kind, self._requests, self._end, self._out = kind, requests, end, out
        self._read, self._missing = b"", 0  # of the answer

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._name, sent = next(self._requests)
        self._began = time.perf_counter()
        if self._began >= self._end:
            self._transport.close()
            self.done.set_result(None)
        else:
            self._transport.write(sent)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if not self._missing:
            head, ended, _ = self._read.partition(b"\r\n\r\n")
            if not ended:
                return
            self._missing = len(head) + 4 + int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self._read) >= self._missing:
            self._answered()

    def _answered(self) -> None:
        self._out[self._kind].append(time.perf_counter() - self._began)
        if self._read.startswith(b"HTTP/1.1 200"):
            self._out["written"] += [self._name] if self._name else []
        else:
            self._out["errors"].append(self._read.partition(b"\r\n")[0].decode())
        self._read, self._missing = b"", 0
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._out["broken"] += 1  # the server is gone
            self.done.set_result(None)


async def load(spec: Spec) -> dict[str, Any]:
    rows, loop = np.load(spec["queries"]), asyncio.get_running_loop()
    prepared = {kind: make(rows, spec) for kind, make in KINDS.items() if kind in spec["connections"]}
    out: dict[str, Any] = {"errors": [], "written": [], "broken": 0, "write": [], **{kind: [] for kind in KINDS}}
    kinds = [kind for kind, connections in spec["connections"].items() for _ in range(connections)]
    began, end = time.process_time(), time.perf_counter() + spec["seconds"]

    async def one(place: int, kind: str) -> None:
        requests = writes(rows, place, spec) if kind == "write" else forever(prepared[kind], 7 * place)
        _, opened = await loop.create_connection(lambda: Connection(kind, requests, end, out), "127.0.0.1", spec["port"])
        await opened.done

    await asyncio.gather(*(one(place, kind) for place, kind in enumerate(kinds)))
    busy = time.process_time() - began
    figures = {}
    for kind in spec["connections"]:
        taken = np.array(out[kind]) * 1e3 if out[kind] else np.zeros(1)
        p50, p99 = np.percentile(taken, [50, 99])
        figures[kind] = {
            "requests": len(out[kind]), "per_second": round(len(out[kind]) / spec["seconds"], 1),
            "p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "max_ms": round(float(taken.max()), 1),
        }  # fmt: skip
    figures["load_cpu"] = round(busy / spec["seconds"], 2)  # of one core: near 1, this process would be what is measured
    return {**figures, "errors": len(out["errors"]), "first_errors": out["errors"][:3], "broken": out["broken"], "written": out["written"]}


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        loop_factory = None
    else:
        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        print(json.dumps(runner.run(load(json.loads(Path(sys.argv[1]).read_text())))))
