"""What every encoder is: texts in, unit vectors out, and a fingerprint that tells one encoder from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypedDict

import numpy as np

from ..types import F32, Array

Role = Literal["query", "document"]


class Pictured(TypedDict):
    """A text and an image's file, encoded as one."""

    text: str
    image: str


Input = str | Pictured


class Prompts(TypedDict):
    """What is put in front of a query and of a document."""

    query: str
    document: str


class Encoder(Protocol):
    """Texts to vectors. Two encoders of one fingerprint give a document the same vector."""

    name: str  # what `load_encoder` takes to load it again
    fingerprint: str
    width: int
    prompts: Prompts
    max_length: int | None  # tokens read of a text; None: all, or not known
    batch: int  # texts that go through it together

    def encode(self, inputs: Sequence[Input], role: Role) -> F32:
        """One unit vector per input, in their order."""
        ...


def fingerprint_of(settings: Sequence[Any], weights: Iterable[Array] = ()) -> str:
    """A hash of settings and weights. Each array contributes some of its numbers; names and order of the arrays do not count."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for part in sorted(_digest(array) for array in weights):
        digest.update(part)
    return digest.hexdigest()[:16]


def _digest(array: Array) -> bytes:
    flat = array.reshape(-1)
    some = np.asarray(flat[:: max(1, len(flat) // 1_024)], np.float32)
    return hashlib.sha256(repr(array.shape).encode() + some.tobytes()).digest()
