"""An encoder by its name."""

from __future__ import annotations

from ..errors import OptionError
from .base import Encoder, Prompts
from .endpoint import PREFIX, Endpoint
from .presets import INSTRUCTION, preset_of
from .transformer import Transformer
from .wordllama import WordLlama


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
