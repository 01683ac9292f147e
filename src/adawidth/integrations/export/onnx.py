"""The rotation as an ONNX graph: vectors in; or, with the encoder before it, tokens in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...encoders import Encoder
from ...errors import OptionError, need
from ...formats import atomic_file, atomic_folder, refuse_out
from ...model import AdaWidth
from ...types import StrPath
from .sentence_transformers import FOLDER, local_encoder, modules, write_mark
from .side import Side, refuse_existing

OPSET, IR = 18, 8  # of 2022: what runtimes since then open
LARGEST = 1_900_000_000  # bytes of one protobuf file, with some room
TOKENS = ("input_ids", "attention_mask")


def export_onnx(
    model: AdaWidth,
    path: StrPath,
    *,
    width: int | None = None,
    queries: bool = False,
    task: str | None = None,
    tokens: bool = False,
    encoder: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """A file: `vectors` (n, D) in, `rotated` (n, m) of unit length out. With `tokens`, a folder: model.onnx takes `input_ids` and
    `attention_mask`, tokenizer.json makes them, and adawidth.json has the prompt that stands before a text."""
    side = Side.of(model, width, queries=queries, task=task)
    if encoder is not None and not tokens:
        raise OptionError(f"encoder {encoder!r} goes into the graph only with tokens (--tokens)")
    if not tokens:
        need("onnx")
        out = refuse_existing(path, force)
        with atomic_file(out) as file:
            file.write(_graph(side))
        return side.facts()
    need("sentence_transformers", "onnx", "onnxscript")
    refuse_out(path, FOLDER, force=force, inputs=[encoder])
    found = local_encoder(model, encoder)
    facts = {**side.facts(), "encoder": found.name, "prompt": found.prompts["query" if queries else "document"]}
    with atomic_folder(path, FOLDER, force=force, inputs=[encoder]) as folder:
        _write_tokenizer(folder / "tokenizer.json", found)
        _write_encoder(folder / "model.onnx", found, side)
        write_mark(folder, {"export": "onnx", **facts})
    return facts


def _graph(side: Side) -> bytes:
    """Unit length, the matrix, the bias, unit length."""
    from onnx import TensorProto, checker, helper, numpy_helper

    weights = [numpy_helper.from_array(np.ascontiguousarray(side.matrix.T), "matrix")]
    nodes = [
        helper.make_node("LpNormalization", ["vectors"], ["unit"], axis=1, p=2),
        helper.make_node("MatMul", ["unit", "matrix"], ["product"]),
    ]
    if side.bias is not None:
        weights.append(numpy_helper.from_array(side.bias, "bias"))
        nodes.append(helper.make_node("Add", ["product", "bias"], ["mapped"]))
    nodes.append(helper.make_node("LpNormalization", [nodes[-1].output[0]], ["rotated"], axis=1, p=2))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
        for name, size in (("vectors", side.encoder_width), ("rotated", side.width))
    ]
    graph = helper.make_graph(nodes, "adawidth", ends[:1], ends[1:], weights)
    made = helper.make_model(graph, producer_name="adawidth", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    checker.check_model(made)
    return bytes(made.SerializeToString())


def _write_tokenizer(file: Path, encoder: Encoder) -> None:
    """tokenizer.json as the package tokenizers reads it, with the encoder's padding and longest length."""
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing

    own = encoder.modules()[0].tokenizer  # type: ignore[attr-defined]
    static = isinstance(own, Tokenizer)
    copy = Tokenizer.from_str((own if static else own.backend_tokenizer).to_str())
    if static:  # it is asked for no special tokens
        copy.post_processor = TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    padding = getattr(own, "pad_token", None)
    copy.enable_padding(**({"pad_id": own.pad_token_id, "pad_token": padding} if padding else {}))
    copy.no_truncation()
    if encoder.max_length is not None:
        copy.enable_truncation(encoder.max_length)
    copy.save(str(file))


def _write_encoder(file: Path, encoder: Encoder, side: Side) -> None:
    """Traces the modules on two texts of different lengths."""
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    class Static(torch.nn.Module):
        """The mean of the tokens' vectors, by a mask in place of offsets."""

        def __init__(self, table: Any) -> None:
            super().__init__()
            self.table = table

        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            mask = features["attention_mask"].unsqueeze(-1).to(self.table.dtype)
            rows = self.table[features["input_ids"].clamp(max=len(self.table) - 1)]
            return {**features, "sentence_embedding": (rows * mask).sum(1) / mask.sum(1).clamp(min=1)}

    class Whole(torch.nn.Module):
        def __init__(self, parts: list[Any]) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(parts)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            features = {"input_ids": input_ids, "attention_mask": attention_mask}
            for part in self.parts:
                features = part(features)
            return features["sentence_embedding"]

    parts = [Static(part.embedding.weight) if isinstance(part, StaticEmbedding) else part for part in modules(encoder, side)]
    whole = Whole(parts).to("cpu").eval()
    example = (torch.ones((2, 7), dtype=torch.int64), torch.tensor([[1] * 7, [1] * 3 + [0] * 4]))
    shape = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens", min=1)}
    size = sum(parameter.nbytes for parameter in whole.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            whole,
            example,
            str(file),
            input_names=list(TOKENS),
            output_names=["rotated"],
            dynamic_shapes=dict.fromkeys(TOKENS, shape),
            opset_version=OPSET,
            external_data=size > LARGEST,
            verbose=False,
            dynamo=True,
        )
