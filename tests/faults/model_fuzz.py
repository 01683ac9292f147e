"""Damages copies of a model folder, one way a seed, and searches with what can still be loaded; run by test_model_damage.py.

Mutations know what a folder is made of: bytes of any file, values of config.json, arrays of model.safetensors. Unless a mutation is to be
found by its checksum, the checksums are made right again. Prints one JSON line a seed before it begins and one when it has ended, so
that a seed which ends the process is known.
"""

import faulthandler
import hashlib
import json
import shutil
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from adawidth import AdaWidth
from adawidth.errors import AdaWidthError
from adawidth.index import IndexFolder
from adawidth.model import Index
from small_index import DOCUMENTS, vectors

SECONDS = 20  # a case may take before the process is ended
K = 5
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 33, 63, 65, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 64.0, 1e-320, 1e300,
    float("nan"), float("inf"), -float("inf"), "", "64", "none", "paper", "query", "scale-free", "\ud800", "x" * 5_000,
    [], [0], [-1, 64], [64], [32, 64], [64, 32], [[]], {}, {"0": 1.0}, {"-5": 1.0}, [{}], [None],
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 5.0, 1e-310, 1e10, 1e38, -1e300, 2**31 - 1, -(2**31), 18, 64, 100_000)
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"quality": 0.9, "task": "none"}, {"budget": 40}, {"policy": "router"}, {"policy": "router", "budget": 50, "task": "none"},
    {"policy": "certify"}, {"policy": "fixed", "quality": 0.95}, {"width": 48, "start": 32},
)  # fmt: skip


def mutate(folder: Path, rng: np.random.Generator) -> str:
    """Damages the folder in one way, and says which."""
    kind = rng.choice(["bytes", "bytes, right checksums", "config", "config", "arrays", "arrays"])
    if kind == "bytes":
        return f"{kind}: {_bytes(folder, rng)}"
    said = {"bytes, right checksums": _bytes, "config": _config, "arrays": _arrays}[kind](folder, rng)
    seal(folder)
    return f"{kind}: {said}"


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


def _bytes(folder: Path, rng: np.random.Generator) -> str:
    file = folder / str(rng.choice(["config.json", "model.safetensors", "model.safetensors", "SHA256SUMS", "README.md"]))
    data = bytearray(file.read_bytes())
    head = rng.random() < 0.5  # of a safetensors file the head is where structure is
    place = int(rng.integers(min(len(data), 4_000) if head else len(data)))
    match int(rng.integers(6)):
        case 0:
            data[place] ^= 1 << int(rng.integers(8))
        case 1:
            data[place] = int(rng.integers(256))
        case 2:
            del data[place:]
        case 3:
            del data[place : place + int(rng.integers(1, 100))]
        case 4:
            data[place:place] = rng.bytes(int(rng.integers(1, 100)))
        case _:
            data[place : place + 8] = b"\xff" * 8
    file.write_bytes(data)
    return f"{file.name} at {place}"


def _config(folder: Path, rng: np.random.Generator) -> str:
    """One value, anywhere in the tree but rarely in the record, becomes another, goes, or stands twice."""
    file = folder / "config.json"
    config = json.loads(file.read_bytes())
    node: Any = config
    path: list[Any] = []
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not path and rng.random() < 0.95:
            keys = [key for key in keys if key not in ("record", "seen", "format", "sha256", "adawidth")]
        key = keys[int(rng.integers(len(keys)))]
        path.append(key)
        below = node[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.15:
            break
        node = below
    value = HOSTILE[int(rng.integers(len(HOSTILE)))]
    match int(rng.integers(5)):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.append(node[key])
        case 2 if type(node[key]) is int:
            node[key] += int(rng.integers(-40, 40))
        case _:
            node[key] = value
    text = json.dumps(config)
    if rng.random() < 0.02:
        text = '{"deep": ' + "[" * 100_000 + "]" * 100_000 + f", {text[1:]}"
    file.write_text(text)
    return f"{path} := {str(value)[:30]}"


def _arrays(folder: Path, rng: np.random.Generator) -> str:
    """Some numbers, the shape or the type of one array become others; or it goes, or another takes its place."""
    file = folder / "model.safetensors"
    tensors = load(file.read_bytes())
    names = sorted(tensors)
    if rng.random() < 0.6:
        names = [
            name for name in names if name.rpartition(".")[2] in ("children", "roots", "depths", "feature", "beta", "sigma", "z", "knots")
        ]
    name = names[int(rng.integers(len(names)))]
    found = tensors[name].copy()
    what = int(rng.integers(6))
    match what:
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
    return f"{name}, {what}"


def searched(folder: Path, index: IndexFolder) -> str:
    """What a search with this model gives, over an index on disk where the rotation is its own and in memory; a fault is told."""
    model = AdaWidth.load(folder)
    asked = vectors(7, seed=5)
    places: list[Any] = [model.index(vectors())] if model.width == asked.shape[1] else []
    if model.rotation.fingerprint == index.fingerprint:
        places.append(Index(model, index))
    done = 0
    for place in places:
        for options in OPTIONS:
            try:
                hits = place.search(asked, K, **options)
            except AdaWidthError:
                continue
            done += 1
            assert hits.rows.shape == hits.scores.shape == (len(asked), K), (options, hits.rows.shape)
            assert np.isfinite(hits.scores).all(), (options, hits.scores)
            assert ((hits.widths >= 1) & (hits.widths <= 64)).all(), (options, hits.widths)
            assert all(len(set(row)) == K for row in hits.rows.tolist()), (options, hits.rows)
            assert ((hits.rows >= 0) & (hits.rows < DOCUMENTS)).all(), (options, hits.rows)
    return f"searched {done}"


def main(source: Path, index: Path, scratch: Path, first: int, last: int) -> None:
    """The cases of these seeds."""
    with IndexFolder(index) as opened:
        for seed in range(first, last):
            folder = Path(shutil.copytree(source, scratch / str(seed)))
            print(json.dumps({"seed": seed, "what": mutate(folder, np.random.default_rng(seed))}), flush=True)  # noqa: T201
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                outcome = searched(folder, opened)
            except AdaWidthError as error:
                outcome = f"refused: {error}"
            except BaseException:
                outcome = f"FAULT: {traceback.format_exc(limit=-4)}"
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps({"seed": seed, "outcome": outcome}), flush=True)  # noqa: T201
            shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
