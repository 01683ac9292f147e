"""HTTP/1.1 as uvicorn speaks it, with bounds on the head of a request, for which uvicorn has none."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .problems import MEDIA_TYPE, TITLES, response

HEAD_SECONDS = 10.0  # from a connection, or the first byte of a further request, to the end of the request's head
LARGEST_HEAD = 65_536  # bytes


class Bounded(HttpToolsProtocol):
    """A connection that is closed if the head of a request takes too long or grows too large."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._heading = False  # a head has begun, and not ended
        self._head = 0  # bytes of it
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._heading, self._head = True, 0

    def on_headers_complete(self) -> None:
        self._heading = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._heading:
            if self._deadline is not None:
                self._arrived()
            return
        self._head += len(data)
        if self._head > LARGEST_HEAD:
            self._refuse("head_too_large", f"the head of the request has more than {LARGEST_HEAD} bytes")
        elif self._deadline is None:
            self._wait()

    def _wait(self) -> None:
        late = f"the head of the request did not arrive within {HEAD_SECONDS:g} seconds"
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._refuse, "request_timeout", late)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, code: str, detail: str) -> None:
        """Answers with a problem, and closes."""
        self._arrived()
        if self.transport.is_closing():
            return
        body = bytes(response(code, detail).body)
        status, title = TITLES[code]
        head = [f"HTTP/1.1 {status} {title}", f"content-type: {MEDIA_TYPE}", f"content-length: {len(body)}", "connection: close", "", ""]
        self.transport.write("\r\n".join(head).encode() + body)
        self.transport.close()
