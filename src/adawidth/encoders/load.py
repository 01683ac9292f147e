"""Loads an encoder by its name, or the one that made some vectors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ArtifactError, OptionError
from .base import Encoder, Prompts
from .endpoint import PREFIX, Endpoint
from .presets import ALIASES, INSTRUCTION, preset_of
from .transformer import Transformer
from .wordllama import WordLlama

log = logging.getLogger("adawidth")


def load_encoder(
    name: str,
    *,
    instruction: str | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    device: str | None = None,
    batch: int | None = None,
    trust_remote_code: bool = False,
) -> Encoder:
    """A preset's name (minilm, bge-large-en-v1.5), a model folder, a model on the hub, or openai:MODEL for an endpoint.

    `instruction` fills the query prompts that take one; the two prompts replace those of the preset or the model.
    """
    if batch is not None and batch < 1:
        raise OptionError(f"batch {batch} is not at least 1")
    preset = preset_of(name.removeprefix(PREFIX))
    if preset is not None and preset.model == WordLlama.name:
        if query_prompt or document_prompt:
            raise OptionError("wordllama takes no prompts: leave them out, or choose another encoder")
        return WordLlama(batch or WordLlama.batch)
    prompts: Prompts | None = None
    if preset is not None:
        prompts = {"query": preset.query.format(instruction=instruction or INSTRUCTION), "document": preset.document}
    if query_prompt is not None or document_prompt is not None:
        given = prompts or {"query": "", "document": ""}
        prompts = {
            "query": given["query"] if query_prompt is None else query_prompt,
            "document": given["document"] if document_prompt is None else document_prompt,
        }
    if name.startswith(PREFIX):
        return Endpoint(name, prompts=prompts, batch=batch or Endpoint.batch)
    return Transformer(name, preset, prompts=prompts, device=device, batch=batch or Transformer.batch, trust_remote_code=trust_remote_code)


def encoder_of(encoding: Any, name: str | None = None, *, trusted: bool = False) -> Encoder:
    """The encoder that meta.json, or a model's record, names, with its prompts; one of another fingerprint is refused.

    `name` says where the encoder is now, if it has moved. The record may come from anywhere, so without a `name` only encoders of
    installed packages are loaded, unless the record is `trusted`.
    """
    stored, prompts, expected = _recorded(encoding)
    wanted = name or stored
    if not wanted:
        raise OptionError("it is not recorded which encoder made these vectors: name it (--encoder)")
    if name is None and not trusted and not comes_packaged(wanted):
        raise OptionError(
            f"these vectors say that {wanted[:100]!r} made them, which does not come with AdaWidth: if you trust it, "
            "add --trust-encoder (in Python: trust_encoder=True), or name your own copy with --encoder"
        )
    encoder = load_encoder(wanted, query_prompt=prompts.get("query"), document_prompt=prompts.get("document"))
    if not expected:
        log.info("%s: no fingerprint was recorded, so nothing tells whether it is the encoder that made the vectors", encoder.name)
    elif encoder.fingerprint != expected:
        raise ArtifactError(
            f"{wanted} has fingerprint {encoder.fingerprint}, the documents were encoded by {stored} with {expected}: "
            "use that one, or encode, fit and index again"
        )
    return encoder


def comes_packaged(name: str) -> bool:
    """Whether this names an encoder whose weights are in an installed package; a folder or repository of the same name does not count."""
    preset = preset_of(name)
    if preset is None or ALIASES.get(name, name) not in (preset.model, preset.short):
        return False
    packaged = bool(preset.package) and find_spec(preset.package) is not None and not Path(name).exists()
    return preset.model == WordLlama.name or packaged


def _recorded(encoding: Any) -> tuple[str, Mapping[str, str], str]:
    """Name, prompts and fingerprint; empty where there is none."""
    stored = encoding if isinstance(encoding, Mapping) else {"": encoding}
    prompts = stored.get("prompts") or {}
    known = (stored.get("encoder") or "", stored.get("fingerprint") or "", *(prompts.values() if isinstance(prompts, Mapping) else [None]))
    if "" in stored or not all(isinstance(text, str) for text in known):
        raise ArtifactError(f"the record of the encoder is damaged, found {ascii(encoding)[:80]}: name it with --encoder, or fit again")
    return known[0], prompts, known[1]
