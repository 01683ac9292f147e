"""The model folder: config.json, model.safetensors and a README.md card. Written whole or not at all; nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from . import __version__
from .errors import ArtifactError
from .formats import Kind, atomic_folder
from .types import Array

FORMAT = "adawidth-model"
VERSION = 1
MODEL = Kind("a model folder", "config.json", "format", FORMAT, ("model.safetensors", "README.md", "SHA256SUMS"))

Config = dict[str, Any]
Tensors = dict[str, Array]


def write_model(path: str | Path, config: Config, tensors: Mapping[str, Array], card: str, *, force: bool = False) -> None:
    """Writes the folder; an existing one is replaced only with `force`."""
    packed = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    head = {"format": FORMAT, "version": VERSION, "adawidth": __version__, "sha256": hashlib.sha256(packed).hexdigest()}
    with atomic_folder(path, MODEL, force=force) as folder:
        (folder / "model.safetensors").write_bytes(packed)
        (folder / "config.json").write_text(json.dumps({**head, **config}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / "README.md").write_text(card, encoding="utf-8")


def read_model(path: str | Path) -> tuple[Config, Tensors]:
    """What `write_model` wrote, checked: the kind of folder, its version and the checksum of its numbers."""
    folder = Path(path)
    config = _read_config(folder)
    file = folder / "model.safetensors"
    try:
        packed = file.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{file}: can't be read ({error.strerror}): the model folder is not whole; save it again") from None
    found = hashlib.sha256(packed).hexdigest()
    if found != config.get("sha256"):
        raise ArtifactError(
            f"{file}: damaged or another model's: checksum {found[:12]}…, config.json says {str(config.get('sha256'))[:12]}…; save it again"
        )
    try:
        return config, load(packed)
    except SafetensorError as error:
        raise ArtifactError(f"{file}: not a safetensors file ({error})") from None


def _read_config(folder: Path) -> Config:
    file = folder / "config.json"
    if not folder.is_dir():
        raise ArtifactError(f"{folder}: no such model folder; make one with `adawidth fit … --out {folder.name}`")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(f"{file}: can't be read ({error.strerror}): this is no model folder") from None
    except ValueError as error:
        raise ArtifactError(f"{file}: damaged ({error}): save the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ArtifactError(f"{file}: not an AdaWidth model; expected format {FORMAT!r}")
    version = config.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ArtifactError(f"{file}: format version {version}, this AdaWidth ({__version__}) reads up to {VERSION}: upgrade adawidth")
    return config
