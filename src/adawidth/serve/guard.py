"""What every request passes before an endpoint sees it: host, rate, key, size; and the headers that every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import time
from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics
from .problems import Problem, response
from .settings import Settings, is_loopback

log = logging.getLogger("adawidth.serve")

CLIENTS = 10_000  # whose rates are known
PROTECTED = ("/v1/", "/metrics")
BODY = ("POST", "PUT", "PATCH", "DELETE")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Rates:
    """A bucket per client, which fills with `rate` requests a second and holds one second's."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> requests left, when

    def allows(self, client: str) -> bool:
        """Whether one more request is within the rate; counts it."""
        if not self._rate:
            return True
        now, most = time.monotonic(), max(1.0, self._rate)
        left, since = self._left.pop(client, (most, now))
        left = min(most, left + (now - since) * self._rate)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return left >= 1


class Guard:
    """Middleware around the whole app."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._settings = settings
        self._key = None if settings.key is None else settings.key.encode()
        self._rates = Rates(settings.rate)
        self._local = self._key is None and is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, await self._arrived(receive) if scope["method"] in BODY else receive, answer)
        except Problem as problem:
            await response(problem.code, problem.detail)(scope, receive, answer)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        self._metrics.requested(getattr(route, "path", "unknown"), status, seconds)
        level = logging.DEBUG if status < 400 else logging.INFO
        if log.isEnabledFor(level):
            client = scope["client"][0] if scope.get("client") else ""
            more = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6), "client": client}
            log.log(level, "request", extra=more)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self._local and not _is_local(headers.get(b"host", b"").decode("latin-1")):
            raise Problem("host_refused", "this service answers only under the name localhost: other names need an API key")
        client = scope["client"][0] if scope.get("client") else ""
        if not self._rates.allows(client):
            raise Problem("rate_limited", f"more than {self._settings.rate:g} requests a second: wait, or ask for several queries at once")
        if self._key is not None and scope["path"].startswith(PROTECTED):
            given = headers.get(b"authorization", b"")
            kind, _, key = given.partition(b" ")
            if not hmac.compare_digest(key.strip() if kind.lower() == b"bearer" else b"", self._key):
                raise Problem("unauthorized", "send the API key as the header Authorization: Bearer KEY")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._settings.largest_body:
            raise Problem("too_large", f"the body has {int(length)} bytes, at most {self._settings.largest_body} are taken")

    async def _arrived(self, receive: Receive) -> Receive:
        """The whole body, bounded in size and time, as one message; endpoints never wait for a client."""
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return _again(message, receive)
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > self._settings.largest_body:
                        raise Problem("too_large", f"the body has more than {self._settings.largest_body} bytes, the most that is taken")
        except TimeoutError:
            raise Problem("request_timeout", f"the body did not arrive within {self._settings.body_seconds:g} seconds") from None
        return _again({"type": "http.request", "body": b"".join(parts), "more_body": False}, receive)


def _again(message: Message, receive: Receive) -> Receive:
    """A message that was taken, then what follows it."""
    taken = [message]

    async def replayed() -> Message:
        return taken.pop() if taken else await receive()

    return replayed


def _is_local(host: str) -> bool:
    """Whether a Host header names this machine: a page of another site that was made to resolve to it does not."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
