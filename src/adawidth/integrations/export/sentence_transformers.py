"""An ordinary sentence-transformers folder: the encoder, and the rotation as one of that library's own Dense modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import __version__
from ...encoders import Encoder, encoder_of
from ...errors import OptionError, need
from ...formats import Kind, atomic_folder, refuse_out
from ...model import AdaWidth
from ...types import StrPath
from .side import Side

MARK = "adawidth.json"
FOLDER = Kind("an exported encoder", MARK, "adawidth", entries=("*.json", "*.txt", "*.model", "*.safetensors", "*.onnx*", "[0-9]*_*"))


def export_encoder(
    model: AdaWidth,
    path: StrPath,
    *,
    width: int | None = None,
    queries: bool = False,
    task: str | None = None,
    encoder: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """A folder for `SentenceTransformer(path, truncate_dim=64)`, which needs no AdaWidth. With `width`, vectors come out cut.

    The encoder is the one that made the model's vectors; `encoder` says where it is, if it is not recorded or has moved.
    """
    need("sentence_transformers")
    side = Side.of(model, width, queries=queries, task=task)
    refuse_out(path, FOLDER, force=force, inputs=[encoder])
    found = local_encoder(model, encoder)
    from sentence_transformers import SentenceTransformer

    prompts: dict[str, str] = {**found.prompts}  # type: ignore[dict-item]
    whole = SentenceTransformer(modules=modules(found, side), prompts=prompts, similarity_fn_name="cosine", device="cpu")
    facts = {**side.facts(), "encoder": found.name}
    with atomic_folder(path, FOLDER, force=force, inputs=[encoder]) as folder:
        whole.save_pretrained(str(folder), create_model_card=False)
        write_mark(folder, {"export": "sentence-transformers", **facts})
    return facts


def local_encoder(model: AdaWidth, name: str | None) -> Encoder:
    """The model's encoder, if it runs on this machine; one of another width is refused. Whoever exports a model trusts its record."""
    encoder = encoder_of(model.record.encoding, name, trusted=True)
    if not hasattr(encoder, "modules"):
        raise OptionError(f"{encoder.name} runs on a server, so there are no weights to export: export the rotation alone (onnx, npy, sql)")
    if encoder.width != model.width:
        raise OptionError(f"{encoder.name} is {encoder.width} wide, the model {model.width}: use the encoder the model was fitted for")
    return encoder


def modules(encoder: Encoder, side: Side) -> list[Any]:
    """The encoder's own modules; unit length; the map; and unit length again, where it is lost."""
    import torch
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Normalize

    biased = side.bias is not None
    dense = Dense(
        side.encoder_width,
        side.width,
        bias=biased,
        activation_function=torch.nn.Identity(),
        init_weight=torch.from_numpy(side.matrix.copy()),
        init_bias=torch.from_numpy(side.bias.copy()) if side.bias is not None else None,
    )
    own: list[Any] = encoder.modules()  # type: ignore[attr-defined]
    if not isinstance(own[-1], Normalize):
        own.append(Normalize())
    return [*own, dense, Normalize()]


def write_mark(folder: Path, facts: dict[str, Any]) -> None:
    """What the folder was made from, and by which version; AdaWidth replaces no folder without it."""
    (folder / MARK).write_text(json.dumps({"adawidth": __version__, **facts}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
