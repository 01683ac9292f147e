"""An encoder by its name, or the very one that vectors were made with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..errors import ArtifactError, OptionError
from .base import Encoder, Prompts
from .endpoint import PREFIX, Endpoint
from .presets import INSTRUCTION, preset_of
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


def encoder_of(encoding: Mapping[str, Any], name: str | None = None) -> Encoder:
    """The encoder that meta.json, or a model's record, names, with its prompts; one of another fingerprint is refused.

    `name` says where it is found now, when that has changed.
    """
    wanted = name or encoding.get("encoder")
    if not wanted:
        raise OptionError("it is not recorded which encoder made these vectors: name it (--encoder)")
    prompts = encoding.get("prompts") or {}
    encoder = load_encoder(wanted, query_prompt=prompts.get("query"), document_prompt=prompts.get("document"))
    expected = encoding.get("fingerprint")
    if expected is None:
        log.info("%s: no fingerprint was recorded, so nothing tells whether it is the encoder that made the vectors", encoder.name)
    elif encoder.fingerprint != expected:
        raise ArtifactError(
            f"{wanted} has fingerprint {encoder.fingerprint}, the documents were encoded by {encoding.get('encoder')} with {expected}: "
            "use that one, or encode, fit and index again"
        )
    return encoder
