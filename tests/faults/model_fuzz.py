"""Ways to damage the files of a model folder: bytes of any of them, values of config.json, arrays of model.safetensors.

Unless a change is to be found by its checksum, `seal` makes the checksums right again.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

Rng = np.random.Generator
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 33, 63, 65, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 64.0, 1e-320, 1e300,
    float("nan"), float("inf"), -float("inf"), "", "64", "none", "paper", "query", "scale-free", "\ud800", "x" * 5_000,
    [], [0], [-1, 64], [64], [32, 64], [64, 32], [[]], {}, {"0": 1.0}, {"-5": 1.0}, [{}], [None],
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 5.0, 1e-310, 1e10, 1e38, -1e300, 2**31 - 1, -(2**31), 18, 64, 100_000)
PARTS = {
    "rotation": ("rotation",),
    "router trees": ("children", "roots", "depths", "feature", "threshold", "value"),
    "router curves": ("knots", "curves", "scores", "values"),
    "taper": ("beta", "sigma", "z", "widths", "errors", "quality"),
    "query map": ("matrix", "bias"),
}  # arrays by the last part of their names


def seal(folder: Path) -> None:
    """Makes the checksums right, as far as the files can still be read."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        config["sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        (folder / "config.json").write_text(json.dumps(config))
    except (ValueError, TypeError, RecursionError):
        pass
    names = ("config.json", "model.safetensors", "README.md")
    sums = "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (folder / "SHA256SUMS").write_text(sums)


def damaged_bytes(given: bytes, rng: Rng) -> bytes:
    """One change, half of them near the beginning, where formats keep their structure."""
    data = bytearray(given)
    size = max(1, len(data))
    place = int(rng.integers(min(size, 4_000) if rng.random() < 0.5 else size))
    length = int(rng.integers(1, 200))
    match int(rng.integers(8)):
        case 0:
            data[place : place + 1] = bytes([(data[place] if data else 0) ^ (1 << int(rng.integers(8)))])
        case 1:
            data[place : place + 1] = rng.bytes(1)
        case 2:
            del data[place:]
        case 3:
            del data[place : place + length]
        case 4:
            data[place:place] = rng.bytes(length)
        case 5:
            data[place:place] = data[place : place + length]
        case 6:
            data[place : place + length] = bytes(len(data[place : place + length]))
        case _:
            data[place : place + 8] = b"\xff" * 8
    return bytes(data)


def structure(folder: Path, rng: Rng) -> None:
    """A value of config.json or an array of any part, with right checksums."""
    (config if rng.random() < 0.5 else arrays(list(PARTS)[int(rng.integers(len(PARTS)))]))(folder, rng)


def crafted(tree: Any, rng: Rng) -> None:
    """Changes one leaf of a tree of dictionaries and lists: another value, none, twice, or a number near it."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(tree[key], dict | list) or not tree[key] or rng.random() < 0.1:
            break
        tree = tree[key]
    match int(rng.integers(5)):
        case 0:
            del tree[key]
        case 1 if isinstance(tree, list):
            tree.append(tree[key])
        case 2 if type(tree[key]) is int:
            tree[key] += int(rng.integers(-40, 40))
        case _:
            tree[key] = HOSTILE[int(rng.integers(len(HOSTILE)))]


def config(folder: Path, rng: Rng) -> None:
    """One value of config.json, rarely of the record; now and then the whole is nested deeply."""
    file = folder / "config.json"
    found = json.loads(file.read_bytes())
    apart = {key: found.pop(key) for key in ("record", "seen", "format", "sha256", "adawidth") if rng.random() < 0.95}
    crafted(found, rng)
    text = json.dumps(apart | found)
    if rng.random() < 0.02:
        text = '{"deep": ' + "[" * 100_000 + "]" * 100_000 + f", {text[1:]}"
    file.write_text(text)
    seal(folder)


def arrays(part: str) -> Callable[[Path, Rng], None]:
    """Arrays of one of the PARTS."""
    return lambda folder, rng: _arrays(folder, rng, PARTS[part])


def _arrays(folder: Path, rng: Rng, part: tuple[str, ...]) -> None:
    """Some numbers, the shape or the type of one array become others; or it goes, or another takes its place."""
    file = folder / "model.safetensors"
    tensors = load(file.read_bytes())
    names = sorted(name for name in tensors if name.rpartition(".")[2] in part)
    name = names[int(rng.integers(len(names)))]
    found = tensors[name].copy()
    match int(rng.integers(6)):
        case 0 | 1 | 2 if found.size:
            places = rng.integers(found.size, size=int(rng.choice([1, 1, 3, found.size])))
            with warnings.catch_warnings(action="ignore"):
                found.flat[places] = np.asarray(rng.choice(NUMBERS, size=len(places))).astype(found.dtype)
        case 3:
            shapes = (
                found.reshape(-1),
                found.reshape(1, -1),
                found[:0],
                found[: len(found) // 2],
                np.concatenate([found, found]),
                found[0:1].reshape(-1)[:1],
            )
            found = shapes[int(rng.integers(len(shapes)))]
        case 4:
            with warnings.catch_warnings(action="ignore"):
                found = found.astype(rng.choice(["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4", "?"]))
        case _:
            found = tensors[names[int(rng.integers(len(names)))]]
    tensors[name] = np.ascontiguousarray(found)
    if rng.random() < 0.05:
        del tensors[name]
    packed = save(tensors)
    if rng.random() < 0.03:
        packed = packed.replace(b'"F32"', b'"I32"') if rng.random() < 0.5 else packed.replace(b'"F32","', b'"BF16","')
    file.write_bytes(packed)
    seal(folder)
