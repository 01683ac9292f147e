"""Encoders behind an OpenAI-compatible endpoint: POST <base>/embeddings. Base URL and key come from the environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np

from ..data import unit
from ..errors import DataError, OptionError
from ..types import F32
from .base import Input, Prompts, Role, fingerprint_of

PREFIX = "openai:"
BASE, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
TRIES = 5
BUSY = (408, 409, 429, 500, 502, 503, 504)
SECONDS = 120


class Endpoint:
    """A model that a server runs. The server's weights can't be seen: the fingerprint names the model and its width."""

    max_length: int | None = None
    batch = 64

    def __init__(self, name: str, *, prompts: Prompts | None = None, batch: int = batch) -> None:
        self.name = name
        self.batch = batch
        self.prompts: Prompts = prompts or {"query": "", "document": ""}
        self._model = name.removeprefix(PREFIX)
        self._url = _base() + "/embeddings"
        self.width = len(self._ask(["width"])[0])
        self.fingerprint = fingerprint_of([self._model, self.width, self.prompts["document"]])

    def encode(self, inputs: Sequence[Input], role: Role) -> F32:
        """Unit vectors; a server that is busy is asked again."""
        texts = [self.prompts[role] + text or " " for text in inputs if isinstance(text, str)]  # an empty text is refused by servers
        if len(texts) != len(inputs):
            raise DataError(f"{self.name} is sent no images: choose an encoder that reads them (--model), as qwen3-vl")
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self.batch):
            vectors += self._ask(texts[start : start + self.batch])
        return unit(np.asarray(vectors, np.float32).reshape(-1, self.width))

    def _ask(self, texts: list[str]) -> list[list[float]]:
        answer = self._post({"model": self._model, "input": texts, "encoding_format": "float"})
        try:
            found = [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: entry["index"])]
        except (KeyError, TypeError):
            raise DataError(f"{self._url}: expected data with index and embedding, found {str(answer)[:80]}") from None
        if len(found) != len(texts):
            raise DataError(f"{self._url}: {len(texts)} texts were sent, {len(found)} vectors came back")
        return found

    def _post(self, body: Mapping[str, Any]) -> Any:
        head = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            head["Authorization"] = f"Bearer {os.environ[KEY]}"
        request = Request(self._url, json.dumps(body).encode(), head)
        for left in reversed(range(TRIES)):
            try:
                with urlopen(request, timeout=SECONDS) as answer:
                    return json.load(answer)
            except HTTPError as error:
                said = " ".join(error.read(200).decode(errors="replace").split())
                if error.code not in BUSY or not left:
                    hint = f": is {KEY} right?" if error.code in (401, 403) else ""
                    raise DataError(f"{self._url}: answered {error.code} {said}{hint}") from None
                time.sleep(_pause(error.headers.get("Retry-After"), TRIES - left))
            except (URLError, HTTPException, OSError) as error:
                raise DataError(f"{self._url}: can't be reached ({error}): is {BASE} right?") from None
            except ValueError:
                raise DataError(f"{self._url}: the answer is no JSON: is {BASE} right?") from None
        raise AssertionError("unreachable")


def _base() -> str:
    base = os.environ.get(BASE, "").rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise OptionError(f"set {BASE} to your endpoint, as https://HOST/v1 (and {KEY} to its key); found {base or 'nothing'!r}")
    return base


def _pause(asked: str | None, tried: int) -> float:
    """Seconds to wait: what the server asks for, or 1, 2, 4, … ."""
    return float(asked) if asked and asked.isdecimal() else float(2 ** (tried - 1))
