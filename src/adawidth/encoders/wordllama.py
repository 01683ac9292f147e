"""WordLlama: the mean of static token vectors. Small, quick, and all of it is in the package wordllama.

The package's own loader looks for the tokenizer in another folder than the one it comes in and then wants the network; so the two
files are read here. Nothing of the package is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from ..data import unit
from ..errors import DataError, OptionalDependencyError
from ..types import F32
from .base import Input, Prompts, Role, fingerprint_of

WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
UNKNOWN = 0  # the token that stands for a text without any


class WordLlama:
    """256 coordinates, trained so that the leading ones carry most. No prompts, no limit of length."""

    name = "wordllama"
    max_length: int | None = None
    batch = 256

    def __init__(self, batch: int = batch) -> None:
        folder = _package()
        from tokenizers import Tokenizer

        self.batch = batch
        self.prompts: Prompts = {"query": "", "document": ""}
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        (table,) = load_file(folder / WEIGHTS).values()
        self._table = np.asarray(table, np.float32)  # (tokens, 256)
        self.width = int(self._table.shape[1])
        self.fingerprint = fingerprint_of(["wordllama"], [self._table])

    def encode(self, inputs: Sequence[Input], role: Role) -> F32:
        """The mean of the tokens' vectors, brought to unit length; the unknown token's where a text has none."""
        texts = [text for text in inputs if isinstance(text, str)]
        if len(texts) != len(inputs):
            raise DataError("wordllama reads no images: choose an encoder that does (--model), as qwen3-vl")
        tokens = [found.ids or [UNKNOWN] for found in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        if not tokens:
            return np.empty((0, self.width), np.float32)
        counts = np.array([len(ids) for ids in tokens])
        flat = np.minimum(np.concatenate([np.asarray(ids, np.int64) for ids in tokens]), len(self._table) - 1)
        sums = np.add.reduceat(self._table[flat], np.cumsum(counts) - counts, axis=0)  # (n, 256)
        return unit(sums / counts[:, None])

    def modules(self) -> list[Any]:
        """The same as a module of sentence-transformers."""
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        return [StaticEmbedding(self._tokenizer, embedding_weights=self._table)]

    def tokens(self, texts: Sequence[str]) -> int:
        """How many tokens these texts have."""
        return sum(len(found.ids) for found in self._tokenizer.encode_batch(list(texts), add_special_tokens=False))


def _package() -> Path:
    """The folder of the package, which must hold both files."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations or find_spec("tokenizers") is None:
        raise OptionalDependencyError("wordllama", "encode")
    folder = Path(found.submodule_search_locations[0])
    for file in (WEIGHTS, TOKENIZER):
        if not (folder / file).is_file():
            raise DataError(f"{folder / file}: the package wordllama lacks this file: pip install --force-reinstall wordllama")
    return folder
