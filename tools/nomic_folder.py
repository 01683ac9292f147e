"""Makes a model folder of nomic-embed-text-v1.5, one of the paper's encoders, from its GGUF file (needs the package gguf).

    python tools/nomic_folder.py nomic-embed-text-v1.5.f16.gguf nomic-embed-text-v1.5
    adawidth encode DATASET --model nomic-embed-text-v1.5

The folder is an ordinary one of sentence-transformers: transformers has the architecture, the GGUF file the weights and the words.
`benchmarks/nomic.py` compares its vectors with those of another implementation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

NAMES = {  # in the GGUF file -> in transformers
    "token_embd.weight": "embeddings.word_embeddings.weight",
    "token_types.weight": "embeddings.token_type_embeddings.weight",
    "token_embd_norm": "embeddings.LayerNorm",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_output_norm": "post_attention_layernorm",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "layer_output_norm": "post_mlp_layernorm",
}
PIECES = ("q", "k", "v")  # of attn_qkv, one below the other
WORD = "▁"  # opens the tokens that begin a word


def renamed(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """A tensor of the GGUF file under transformers' name, or as the three that it holds."""
    _, layer, part = name.split(".", 2) if name.startswith("blk.") else ("", "", name)
    home = f"layers.{layer}." if layer else ""
    if part == "attn_qkv.weight":
        return {f"{home}self_attn.{piece}_proj.weight": rows.clone() for piece, rows in zip(PIECES, tensor.chunk(3), strict=True)}
    stem, _, kind = part.rpartition(".")
    return {home + (NAMES[part] if part in NAMES else f"{NAMES[stem]}.{kind}"): tensor}


def words(reader: Any) -> dict[str, int]:
    """The vocabulary as WordPiece has it: pieces inside a word begin with ##."""
    field = reader.fields["tokenizer.ggml.tokens"]
    found: dict[str, int] = {}
    for number, token in enumerate(bytes(field.parts[part]).decode() for part in field.data):
        special = token.startswith("[") and token.endswith("]")
        found.setdefault(token.removeprefix(WORD) if token.startswith(WORD) else token if special else f"##{token}", number)
    return found


def convert(source: Path, out: Path) -> None:
    """Writes the folder."""
    import gguf
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertTokenizer, NomicBertConfig, NomicBertModel

    reader = gguf.GGUFReader(source)
    facts = {name.removeprefix("nomic-bert."): field.contents() for name, field in reader.fields.items() if name.startswith("nomic-bert.")}
    weights: dict[str, torch.Tensor] = {}
    for entry in reader.tensors:
        plain = gguf.dequantize(entry.data, entry.tensor_type).reshape([int(size) for size in reversed(entry.shape)])
        weights |= renamed(entry.name, torch.tensor(plain, dtype=torch.float32))
    vocabulary = words(reader)
    config = NomicBertConfig(
        vocab_size=len(weights["embeddings.word_embeddings.weight"]),
        hidden_size=facts["embedding_length"],
        num_hidden_layers=facts["block_count"],
        num_attention_heads=facts["attention.head_count"],
        intermediate_size=facts["feed_forward_length"],
        max_position_embeddings=facts["context_length"],
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=facts["attention.layer_norm_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": facts["rope.freq_base"]},
        pad_token_id=vocabulary["[PAD]"],
    )
    model = NomicBertModel(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]
    model.load_state_dict(weights)
    plain_folder = out / "transformer"
    model.save_pretrained(plain_folder)
    BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=facts["context_length"]).save_pretrained(plain_folder)
    transformer = Transformer(str(plain_folder), max_seq_length=facts["context_length"])
    SentenceTransformer(modules=[transformer, Pooling(facts["embedding_length"], "mean")]).save(str(out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    convert(options.gguf, options.out)
