"""Encoders behind an OpenAI-compatible endpoint: POST <base>/embeddings. Base URL and key come from the environment.

The key goes to the host that the user named and to no other: redirects are not followed. Nothing that the server sends is believed,
waited for beyond a time, or repeated but for a short, escaped bit. urllib does: httpx has neither retries nor a limit of the whole time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from ..data import unit
from ..errors import DataError, OptionError
from ..types import F32
from .base import Input, Prompts, Role, fingerprint_of

PREFIX = "openai:"
BASE, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
DEFAULT = "https://api.openai.com/v1"
TRIES = 5
BUSY = (408, 409, 429, 500, 502, 503, 504)
SECONDS = 120  # for one answer, all of it
LONGEST_PAUSE = 60  # seconds, whatever a server asks for
LARGEST = 2**28  # bytes of an answer
WIDEST = 65_536  # coordinates
SHOWN = 80  # characters of what a server says


class Endpoint:
    """A model that a server runs. The server's weights can't be seen: the fingerprint names the model and its width."""

    max_length: int | None = None
    batch = 64

    def __init__(self, name: str, *, prompts: Prompts | None = None, batch: int = batch) -> None:
        self.name = name
        self.batch = batch
        self.prompts: Prompts = prompts or {"query": "", "document": ""}
        self._model = name.removeprefix(PREFIX)
        self._base, self._key = _base(), _key()
        self.width = self._ask(["width"]).shape[1]
        self.fingerprint = fingerprint_of([self._model, self.width, self.prompts["document"]])

    def encode(self, inputs: Sequence[Input], role: Role) -> F32:
        """Unit vectors; a server that is busy is asked again."""
        texts = [self.prompts[role] + text or " " for text in inputs if isinstance(text, str)]  # an empty text is refused by servers
        if len(texts) != len(inputs):
            raise DataError(f"{self.name} is sent no images: choose an encoder that reads them (--model), as qwen3-vl")
        vectors = np.empty((len(texts), self.width), np.float32)
        for start in range(0, len(texts), self.batch):
            found = self._ask(texts[start : start + self.batch])
            if found.shape[1] != self.width:
                raise DataError(f"{self._place}: a vector is {found.shape[1]} wide, earlier ones {self.width}: ask for one model")
            vectors[start : start + self.batch] = found
        return vectors

    @property
    def _place(self) -> str:
        """The endpoint without what could be secret in its address."""
        parts = urlsplit(self._base)
        return f"{parts.scheme}://{parts.netloc}{parts.path}/embeddings"

    def _ask(self, texts: list[str]) -> F32:
        answer = self._post({"model": self._model, "input": texts, "encoding_format": "float"})
        try:
            found = sorted(answer["data"], key=lambda entry: entry["index"])
            places, vectors = [entry["index"] for entry in found], np.array([entry["embedding"] for entry in found], np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise DataError(f"{self._place}: expected data with index and embedding, found {self._said(str(answer))}") from None
        if places != list(range(len(texts))):
            raise DataError(f"{self._place}: {len(texts)} texts were sent, {len(places)} vectors came back, not one for each")
        if vectors.ndim != 2 or not 1 <= vectors.shape[1] <= WIDEST or not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise DataError(f"{self._place}: expected vectors of finite numbers, not all zero, found shape {vectors.shape}")
        return unit(vectors)

    def _post(self, body: Mapping[str, Any]) -> Any:
        head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self._key}"} if self._key else {})}
        request = Request(self._base + "/embeddings", json.dumps(body).encode(), head)
        for tried in range(1, TRIES + 1):
            code, headers, content = self._fetch(request)
            if code == 200:
                break
            if code not in BUSY or tried == TRIES:
                raise DataError(f"{self._place}: answered {code} {self._said(content.decode(errors='replace'))}{_hint(code)}")
            time.sleep(_pause(headers.get("Retry-After"), tried))
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise DataError(f"{self._place}: the answer is no JSON: is {BASE} right?") from None

    def _fetch(self, request: Request) -> tuple[int, Message, bytes]:
        """Status, headers and body, all within SECONDS: a thread waits, so that a server which drips can be left alone."""
        done: list[tuple[int, Message, bytes] | Exception] = []

        def fetch() -> None:
            try:
                with build_opener(_Stay).open(request, timeout=SECONDS) as answer:
                    done.append((answer.status, answer.headers, answer.read(LARGEST + 1)))
            except HTTPError as error:
                done.append((error.code, error.headers, error.read(4_096)))
            except Exception as error:
                done.append(error)

        waiting = threading.Thread(target=fetch, daemon=True)
        waiting.start()
        waiting.join(SECONDS)
        if not done:
            raise DataError(f"{self._place}: no whole answer within {SECONDS} seconds: is the server well? lower --batch")
        (found,) = done
        if isinstance(found, (URLError, HTTPException, OSError)):
            raise DataError(f"{self._place}: can't be reached ({self._said(str(found))}): is {BASE} right?") from None
        if isinstance(found, Exception):
            raise found
        if len(found[2]) > LARGEST:
            raise DataError(f"{self._place}: the answer is over {LARGEST} bytes long: is {BASE} right?")
        return found

    def _said(self, text: str) -> str:
        """A short bit of what a server said, on one line, without the key."""
        text = " ".join((text.replace(self._key, "…") if self._key else text).split())
        return ascii(text[:SHOWN])[1:-1] + "…" * (len(text) > SHOWN)


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: a key is for the host it was given for."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _base() -> str:
    base = (os.environ.get(BASE) or DEFAULT).rstrip("/")
    if base == DEFAULT and not os.environ.get(KEY, "").strip():
        raise OptionError(f"set {KEY} to your key for {DEFAULT}, or {BASE} to another endpoint, as https://HOST/v1")
    parts = urlsplit(base) if base.isprintable() else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise OptionError(f"set {BASE} to your endpoint, as https://HOST/v1 (and {KEY} to its key)")
    if parts.username is not None or parts.password is not None:
        raise OptionError(f"{BASE} holds a user or password: leave them out, and give the key in {KEY}")
    return base


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not key.isascii() or not key.isprintable():
        raise OptionError(f"{KEY} holds characters that no key has: copy it again")
    return key


def _hint(code: int) -> str:
    if code in (401, 403):
        return f": is {KEY} right?"
    return f": redirects are not followed, set {BASE} to where the endpoint is" if 300 <= code < 400 else ""


def _pause(asked: str | None, tried: int) -> float:
    """Seconds to wait: what the server asks for, within bounds, or 1, 2, 4, … ."""
    return min(float(asked), LONGEST_PAUSE) if asked and asked.isdecimal() else float(2 ** (tried - 1))
