"""The model folder: config.json, model.safetensors, a README.md card and SHA256SUMS. Written whole or not at all; nothing is unpickled.

A folder may come from anywhere: no file is followed, waited for or read beyond what a model can be, damage is found by checksum,
and what the numbers say is checked, field by field, where they are read (policies.stored). Folders of 0.1 have no SHA256SUMS.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from . import __version__
from .errors import ArtifactError
from .formats import Kind, atomic_folder
from .formats.files import json_of, regular_bytes
from .rotation import Rotation
from .types import Array

FORMAT = "adawidth-model"
VERSION = 1
CONFIG, WEIGHTS, CARD, SUMS = "config.json", "model.safetensors", "README.md", "SHA256SUMS"
MB = 1_000_000
LARGEST_CONFIG = 64 * MB
WIDEST = 16_384  # coordinates
BESIDE = 256 * MB  # what a rotation or a query map has beside it: trees, curves, scores of known queries
MODEL = Kind("a model folder", CONFIG, "format", FORMAT, (WEIGHTS, CARD, SUMS))

Config = dict[str, Any]
Tensors = dict[str, Array]


def write_model(path: str | Path, config: Config, tensors: Mapping[str, Array], card: str, *, force: bool = False) -> None:
    """Writes the folder; an existing one is replaced only with `force`."""
    packed = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    head = {"format": FORMAT, "version": VERSION, "adawidth": __version__, "sha256": _sum(packed), "checksums": SUMS}
    text = json.dumps({**head, **config}, indent=1, ensure_ascii=False) + "\n"
    files = {CONFIG: text.encode(), WEIGHTS: packed, CARD: card.encode()}
    with atomic_folder(path, MODEL, force=force) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        (folder / SUMS).write_text("".join(f"{_sum(content)}  {name}\n" for name, content in files.items()))


def read_model(path: str | Path) -> tuple[Config, Tensors]:
    """What `write_model` wrote, checked: the kind of folder, its version and the checksums. The card may be edited."""
    folder = Path(path)
    if not folder.is_dir():
        raise ArtifactError(f"{folder}: no such model folder; make one with `adawidth fit … --out {folder.name}`")
    sums = _read_sums(folder)
    config = _config(folder / CONFIG, _read(folder / CONFIG, LARGEST_CONFIG, sums))
    if config.get("checksums") is not None and not sums:
        raise ArtifactError(f"{folder / SUMS}: there is no such file: the model folder is not whole; save it again")
    file = folder / WEIGHTS
    packed = _read(file, _most(folder, config), sums or {WEIGHTS: config.get("sha256")}, SUMS if sums else CONFIG)
    try:
        return config, load(packed)
    except Exception as error:  # the library's own kind, KeyError for a dtype that NumPy lacks, and others
        raise ArtifactError(f"{file}: not a safetensors file of NumPy's types ({error!r}): save the model again") from None


def limits(folder: Path) -> dict[str, int]:
    """Bytes that each file of a model folder can have at most."""
    config = _config(folder / CONFIG, _read(folder / CONFIG, LARGEST_CONFIG, {}))
    return {CONFIG: LARGEST_CONFIG, CARD: LARGEST_CONFIG, SUMS: MB, WEIGHTS: _most(folder, config)}


def stored_rotation(config: Config, tensors: Mapping[str, Array]) -> Rotation:
    """The rotation of a model folder."""
    kind = config.get("rotation")
    kind = kind.get("kind") if isinstance(kind, dict) else None
    if not isinstance(kind, str) or "rotation" not in tensors:
        raise ArtifactError("rotation: expected its kind in config.json and its matrix in model.safetensors")
    rotation = Rotation(tensors["rotation"], kind)
    if config.get("width", rotation.width) != rotation.width:
        raise ArtifactError(f"width: {config['width']!r}, but the rotation is {rotation.width} wide")
    return rotation


def _read(file: Path, limit: int, sums: Mapping[str, Any], by: str = SUMS) -> bytes:
    """A file of the folder, whole and, where there are checksums (`by` says where), as it was written."""
    try:
        content = regular_bytes(file, limit)
    except OSError as error:
        raise ArtifactError(f"{file}: can't be read ({error.strerror}): this is no model folder, or not a whole one") from None
    if sums and (found := _sum(content)) != sums.get(file.name):
        expected = ascii(str(sums.get(file.name))[:12])[1:-1]
        raise ArtifactError(f"{file}: damaged or another model's: checksum {found[:12]}…, {by} says {expected}…; save it again")
    return content


def _read_sums(folder: Path) -> dict[str, str]:
    """The checksum of each file, in the form that sha256sum writes; none where there is no such file."""
    if not (folder / SUMS).exists():
        return {}
    lines = _read(folder / SUMS, MB, {}).decode(errors="replace").splitlines()
    sums = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    if not {CONFIG, WEIGHTS} <= sums.keys():
        raise ArtifactError(f"{folder / SUMS}: damaged: expected a line each for {CONFIG} and {WEIGHTS}; save the model again")
    return sums


def _config(file: Path, content: bytes) -> Config:
    try:
        config = json_of(content.decode())
    except ValueError as error:
        raise ArtifactError(f"{file}: damaged ({error}): save the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ArtifactError(f"{file}: not an AdaWidth model; expected format {FORMAT!r}")
    version = config.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        found = ascii(version)[:20]
        raise ArtifactError(f"{file}: format version {found}, this AdaWidth ({__version__}) reads up to {VERSION}: upgrade adawidth")
    return config


def _most(folder: Path, config: Config) -> int:
    """The most bytes that a model's arrays can have: a square matrix for the rotation and for each task, and smaller arrays."""
    width, tasks = config.get("width", WIDEST), config.get("tasks", [])
    if type(width) is not int or not 1 <= width <= WIDEST:
        found = ascii(width)[:20]
        raise ArtifactError(f"{folder / CONFIG}: width {found} is not a whole number from 1 to {WIDEST}: save the model again")
    return (1 + (len(tasks) if isinstance(tasks, list) else 0)) * (4 * width * width + BESIDE)


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
