"""A model in a form that other programs open without AdaWidth. One file a target; each writes whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from ...errors import OptionError
from ...model import AdaWidth
from ...types import StrPath

TARGETS = {
    "sentence-transformers": "sentence_transformers:export_encoder",
    "faiss": "faiss:export_faiss",
    "onnx": "onnx:export_onnx",
    "npy": "matrix:export_npy",
    "sql": "matrix:export_sql",
}  # name -> module and function, imported on use


def export(model: AdaWidth, to: str, path: StrPath, **options: Any) -> dict[str, Any]:
    """Writes the model in the form that `to` names, at `path`, and returns what was written. `None` stands for an option's default.

    All take `width` (all coordinates by default) and `force`. All but faiss take `queries`, for the query side of a model with query
    maps, and `task`. `sentence-transformers` and `onnx` take `encoder`, the place of the encoder; `faiss` takes `factory` and
    `vectors`, `onnx` `tokens`, `sql` the function's `name`.

    >>> import numpy as np
    >>> from adawidth import AdaWidth
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> model = AdaWidth.fit(documents, recipe="pca")
    >>> export(model, "npy", "rotation.npy", width=16)["width"]
    16
    >>> np.load("rotation.npy").shape
    (16, 64)
    """
    if to not in TARGETS:
        raise OptionError(f"there is no target {to!r}; there are {', '.join(TARGETS)}")
    module, _, name = TARGETS[to].partition(":")
    write: Callable[..., dict[str, Any]] = getattr(import_module(f".{module}", __name__), name)
    given = {option: value for option, value in options.items() if value is not None}
    taken = list(signature(write).parameters)[2:]
    for option in given:
        if option not in taken:
            raise OptionError(f"{to} takes no {option}; it takes {', '.join(taken)}")
    return {"to": to, "path": str(path), **write(model, path, **given)}
