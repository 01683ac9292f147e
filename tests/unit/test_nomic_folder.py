"""The model folder of nomic-embed-text: a small file of its kind, converted, against the architecture written out in NumPy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth.encoders import load_encoder

gguf = pytest.importorskip("gguf", reason="needs the package gguf: make test installs it")

WIDTH, HEADS, LAYERS, INNER, BASE, EPSILON = 16, 2, 2, 24, 1000.0, 1e-12
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁the", "▁cat", "▁sat", "s", "▁search", "_", "▁query", "▁:"]
SIZES = {
    "attn_qkv.weight": (3 * WIDTH, WIDTH),
    "attn_output.weight": (WIDTH, WIDTH),
    "ffn_gate.weight": (INNER, WIDTH),
    "ffn_up.weight": (INNER, WIDTH),
    "ffn_down.weight": (WIDTH, INNER),
}

Weights = dict[str, np.ndarray]


def random_weights() -> Weights:
    rng = np.random.default_rng(0)
    drawn = {"token_embd.weight": rng.normal(size=(len(TOKENS), WIDTH)), "token_types.weight": rng.normal(size=(2, WIDTH))}
    for layer in range(LAYERS):
        drawn |= {f"blk.{layer}.{name}": rng.normal(size=size) / 4 for name, size in SIZES.items()}
    norms = ["token_embd_norm", *(f"blk.{layer}.{name}" for layer in range(LAYERS) for name in ("attn_output_norm", "layer_output_norm"))]
    for norm in norms:
        drawn |= {f"{norm}.weight": rng.normal(size=WIDTH), f"{norm}.bias": rng.normal(size=WIDTH)}
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def write(path: Path, weights: Weights) -> None:
    file = gguf.GGUFWriter(path, "nomic-bert")
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_head_count(HEADS)
    file.add_feed_forward_length(INNER)
    file.add_context_length(64)
    file.add_layer_norm_eps(EPSILON)
    file.add_rope_freq_base(BASE)
    file.add_token_list(TOKENS)
    for name, value in weights.items():
        file.add_tensor(name, value)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def expected(weights: Weights, tokens: list[str]) -> np.ndarray:
    """One text through the architecture: rotary attention, gated layers, norms behind each, the mean of all tokens."""
    w: Any = {name: value.astype(np.float64) for name, value in weights.items()}

    def normed(x: np.ndarray, name: str) -> np.ndarray:
        spread = np.sqrt(x.var(axis=1, keepdims=True) + EPSILON)
        return (x - x.mean(axis=1, keepdims=True)) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    x = normed(w["token_embd.weight"][[TOKENS.index(token) for token in tokens]] + w["token_types.weight"][0], "token_embd_norm")
    size = WIDTH // HEADS
    angle = np.outer(np.arange(len(tokens)), BASE ** (-np.arange(0, size, 2) / size))
    turn = np.exp(1j * angle)
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        heads = (x @ w[f"{at}attn_qkv.weight"].T).reshape(len(tokens), 3, HEADS, size)
        found = []
        for head in range(HEADS):
            q, k, v = heads[:, 0, head], heads[:, 1, head], heads[:, 2, head]
            q, k = ((part[:, : size // 2] + 1j * part[:, size // 2 :]) * turn for part in (q, k))
            scores = (q @ k.conj().T).real / np.sqrt(size)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            found.append(shares / shares.sum(axis=1, keepdims=True) @ v)
        x = normed(x + np.concatenate(found, axis=1) @ w[f"{at}attn_output.weight"].T, f"{at}attn_output_norm")
        gate = x @ w[f"{at}ffn_gate.weight"].T
        inner = gate / (1 + np.exp(-gate)) * (x @ w[f"{at}ffn_up.weight"].T)
        x = normed(x + inner @ w[f"{at}ffn_down.weight"].T, f"{at}layer_output_norm")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_a_converted_file_encodes_as_the_architecture_says(tmp_path: Path) -> None:
    tool = Path(__file__).parents[2] / "tools" / "nomic_folder.py"
    spec = importlib.util.spec_from_file_location("nomic_folder", tool)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    weights = random_weights()
    write(tmp_path / "nomic.gguf", weights)
    module.convert(tmp_path / "nomic.gguf", tmp_path / "nomic-embed-text-v1.5")
    encoder = load_encoder(str(tmp_path / "nomic-embed-text-v1.5"))
    assert encoder.prompts["query"] == "search_query: "  # the preset is found by the folder's name
    found = encoder.encode(["The cats sat", "cat"], "query")
    prompt = ["▁search", "[UNK]", "▁query", "▁:"]
    for text, vector in zip((["▁the", "▁cat", "s", "▁sat"], ["▁cat"]), found, strict=True):
        assert vector @ expected(weights, ["[CLS]", *prompt, *text, "[SEP]"]) > 1 - 1e-5
