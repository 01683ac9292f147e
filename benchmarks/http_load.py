"""Load on a service of this machine, from a process of its own: python benchmarks/http_load.py SPEC.json (see `serve.py`).

Raw HTTP/1.1 over a bounded number of connections and seconds, on 127.0.0.1 only; it stops by itself. A client library would take
longer for a request than the service does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np


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


def writes(rows: np.ndarray, worker: int, key: str) -> Iterator[tuple[str, bytes]]:
    """A new document with each request."""
    for turn in count():
        name = f"load-{worker}-{turn}"
        document = {"id": name, "title": name, "vector": packed(rows[(worker * 31 + turn) % len(rows)])}
        yield name, request("/v1/documents", {"documents": [document]}, key)


KINDS: dict[str, Callable[[np.ndarray, int, str], Iterator[tuple[str, bytes]]]] = {
    "nothing": lambda rows, place, key: forever([request("/healthz")], 0),
    "search": lambda rows, place, key: forever([request("/v1/search", {"vector": packed(row)}, key) for row in rows], 7 * place),
    "ids": lambda rows, place, key: forever([request("/v1/search", {"vector": packed(row), "fields": []}, key) for row in rows], 7 * place),
    "batch": lambda rows, place, key: forever(
        [request("/v1/search", {"vector": packed(rows[i : i + 32]), "fields": []}, key) for i in range(0, len(rows) - 31, 32)], place
    ),
    "write": writes,
}  # kind -> requests of one connection


async def connection(spec: dict[str, Any], kind: str, place: int, rows: np.ndarray, out: dict[str, Any]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", spec["port"])
    end = time.perf_counter() + spec["seconds"]
    for name, sent in KINDS[kind](rows, place, spec["key"]):
        began = time.perf_counter()
        if began >= end:
            break
        try:
            writer.write(sent)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        except (OSError, EOFError, ValueError):
            out["broken"] += 1  # the server is gone
            return
        out[kind].append(time.perf_counter() - began)
        if head.startswith(b"http/1.1 200"):
            out["written"] += [name] if name else []
        else:
            out["errors"].append(head.partition(b"\r\n")[0].decode())
    writer.close()


async def load(spec: dict[str, Any]) -> dict[str, Any]:
    rows = np.load(spec["queries"])
    out: dict[str, Any] = {"errors": [], "written": [], "broken": 0, **{kind: [] for kind in KINDS}}
    kinds = [kind for kind, connections in spec["connections"].items() for _ in range(connections)]
    await asyncio.gather(*(connection(spec, kind, place, rows, out) for place, kind in enumerate(kinds)))
    figures = {}
    for kind in spec["connections"]:
        taken = np.array(out[kind]) * 1e3 if out[kind] else np.zeros(1)
        p50, p99 = np.percentile(taken, [50, 99])
        figures[kind] = {
            "requests": len(out[kind]), "per_second": round(len(out[kind]) / spec["seconds"], 1),
            "p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "max_ms": round(float(taken.max()), 1),
        }  # fmt: skip
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
