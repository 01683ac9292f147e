"""Texts, or vectors, by id: as evaluators and benchmarks keep them in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DataError, OptionError
from ..types import Id
from .vectors import Vectors


def encoded(given: Mapping[Id, Any], encoder: Any, role: str, name: str) -> Vectors:
    """The vectors of a dictionary. Values are vectors already; or texts, or BEIR's {"title", "text"}, for the encoder."""
    if not isinstance(given, Mapping) or not given:
        raise DataError(f"{name}: expected a dictionary of texts or vectors by id, found {type(given).__name__} with {len(given)} entries")
    first = next(iter(given.values()))
    if not isinstance(first, str | Mapping):
        return Vectors.of(list(given.values()), list(given), name=name)
    texts = [_whole(text, identifier, name) for identifier, text in given.items()]
    if encoder is None:
        raise OptionError(f"{name}: these are texts: give the encoder that turns them into vectors")
    return Vectors.of(_vectors(encoder, texts, role), list(given), name=name)


def _vectors(encoder: Any, texts: list[str], role: str) -> Any:
    """By an encoder of AdaWidth, a SentenceTransformer, or a function from texts to vectors."""
    if hasattr(encoder, "fingerprint"):
        return encoder.encode(texts, role)
    if hasattr(encoder, f"encode_{role}"):
        return getattr(encoder, f"encode_{role}")(texts)
    if not callable(encoder):
        raise OptionError(f"{type(encoder).__name__} is no encoder: give a SentenceTransformer, load_encoder(…), or a function")
    return encoder(texts)


def _whole(text: Any, identifier: Id, name: str) -> str:
    parts = [text.get("title") or "", text.get("text") or ""] if isinstance(text, Mapping) else [text]
    if not all(isinstance(part, str) for part in parts):
        raise DataError(f"{name}: the text of {identifier!r} is {str(text)[:60]!r}: expected a string, as the others are")
    return " ".join(part for part in parts if part)


def encoding_of(encoder: Any) -> dict[str, Any]:
    """What is recorded of an encoder of AdaWidth, so that a model finds it again; nothing of others."""
    if not hasattr(encoder, "fingerprint"):
        return {}
    return {"encoder": encoder.name, "fingerprint": encoder.fingerprint, "dimensions": encoder.width, "prompts": dict(encoder.prompts)}
