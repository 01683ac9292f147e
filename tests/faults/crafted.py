"""Folders that someone made on purpose: other things than files, foreign files, names that lead elsewhere, values of every wrong kind.

CRAFTED has each by its name, with the folder of mutations.py that it starts from.
"""

import copy
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from faults import index_fuzz, model_fuzz
from small_index import head_of, write_head
from small_model import trees

DEEP = "[" * 200_000 + "]" * 200_000
SPARSE = 2**40  # bytes
WRONG: tuple[Any, ...] = (None, True, -1, 0, 2**31, 2**63, 10**30, 1.5, float("nan"), float("inf"), "", "x", "64", [], [0], {}, {"a": 1})
INDEX_FILES = (
    "manifest.sqlite",
    "lock",
    "*.segment",
    "model/config.json",
    "model/model.safetensors",
    "model/SHA256SUMS",
    "model/README.md",
)
MODEL_FILES = ("config.json", "model.safetensors", "SHA256SUMS", "README.md")
LOGGED = ("manifest.sqlite-wal", "manifest.sqlite-shm")


@dataclass(frozen=True)
class Crafted:
    """A folder to start from, and what is made of it, with the sound folders at hand."""

    folder: str
    mutate: Callable[[Path, Path], None]
    sealed: bool = False  # whether another answer may be had


def found(folder: Path, name: str) -> Path:
    return min(folder.glob(name))


def in_place(name: str, make: Callable[[Path], object]) -> Callable[[Path, Path], None]:
    """Something else where a file was."""

    def mutate(folder: Path, home: Path) -> None:
        file = found(folder, name)
        file.rename(folder.parent / "former")
        make(file)

    return mutate


def sparse(file: Path) -> None:
    """A file that says it is a terabyte, and begins as the former one."""
    shutil.copy(file.parents[1 if file.parent.name != "model" else 2] / "former", file)
    os.truncate(file, SPARSE)


def listening(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(file.parent, os.O_RDONLY)  # addresses of sockets are short
        try:
            made.bind(f"/proc/self/fd/{here}/{file.name}")
        finally:
            os.close(here)


THINGS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda file: None,
    "an empty file": lambda file: file.touch(),
    "a folder": lambda file: file.mkdir(),
    "a pipe": os.mkfifo,
    "a socket": listening,
    "a link to the file": lambda file: file.symlink_to(file.parents[1 if file.parent.name != "model" else 2] / "former"),
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a link to nothing": lambda file: file.symlink_to("nowhere"),
    "a link to /dev/zero": lambda file: file.symlink_to("/dev/zero"),
    "a link to /etc/passwd": lambda file: file.symlink_to("/etc/passwd"),
    "a terabyte of nothing": sparse,
    "a megabyte of noise": lambda file: file.write_bytes(np.random.default_rng(0).bytes(2**20)),
    "deep JSON": lambda file: file.write_text(DEEP),
}


def swapped(name: str, other: str) -> Callable[[Path, Path], None]:
    """The file of another folder."""

    def mutate(folder: Path, home: Path) -> None:
        mine = found(folder, name)
        mine.unlink()
        shutil.copy(found(home / other, name), mine)

    return mutate


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value of a tree."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield (*path, key)
        if isinstance(tree[key], dict | list):
            yield from paths(tree[key], (*path, key))


def set_at(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def in_head(number: int) -> Callable[[Path, Path], None]:
    """The number-th of all places of the head in turn with the number-th wrong value."""

    def mutate(folder: Path, home: Path) -> None:
        head = head_of(folder)
        places = list(paths(head))
        set_at(head, places[number % len(places)], WRONG[number // len(places) % len(WRONG)])
        write_head(folder, head)

    return mutate


def in_entry(number: int) -> Callable[[Path, Path], None]:
    def mutate(folder: Path, home: Path) -> None:
        entries = index_fuzz.entries_of(folder)
        places = list(paths(entries))
        set_at(entries, places[number * 7 % len(places)], WRONG[number % len(WRONG)])
        index_fuzz.write_entries(folder, entries)

    return mutate


def in_config(number: int) -> Callable[[Path, Path], None]:
    def mutate(folder: Path, home: Path) -> None:
        file = folder / "config.json"
        config = json.loads(file.read_bytes())
        places = list(paths(config))
        set_at(config, places[number * 5 % len(places)], WRONG[number % len(WRONG)])
        file.write_text(json.dumps(config))
        model_fuzz.seal(folder)

    return mutate


def graph(number: int) -> Callable[[Path, Path], None]:
    """Trees whose children are any nodes, circles most often."""

    def mutate(folder: Path, home: Path) -> None:
        rng = np.random.default_rng(number)
        made = trees(
            children=rng.integers(6, size=(6, 2)).tolist(), roots=rng.integers(6, size=2).tolist(), depths=[int(rng.integers(9)), 1]
        )
        file = folder / "model.safetensors"
        task = ("", "tasks.0.", "tasks.1.")[number % 3]
        file.write_bytes(save(load(file.read_bytes()) | {f"{task}router.{number % 2}.{part}": value for part, value in made.items()}))
        model_fuzz.seal(folder)

    return mutate


def in_sums(text: str) -> Callable[[Path, Path], None]:
    def mutate(folder: Path, home: Path) -> None:
        (folder / "SHA256SUMS").write_text(text)

    return mutate


def twice(name: str, key: str, value: Any) -> Callable[[Path, Path], None]:
    """A key that stands twice in an object, the second time with another value."""

    def mutate(folder: Path, home: Path) -> None:
        if name == "head":
            text = json.dumps(head_of(folder))[:-1] + f", {json.dumps(key)}: {json.dumps(value)}}}"
            write_head(folder, text)
            return
        file = folder / name
        file.write_text(file.read_text().rstrip()[:-1] + f", {json.dumps(key)}: {json.dumps(value)}}}")
        model_fuzz.seal(folder)

    return mutate


def named(name: str) -> Callable[[Path, Path], None]:
    """A segment by another name in its entry."""

    def mutate(folder: Path, home: Path) -> None:
        entries = index_fuzz.entries_of(folder)
        some = min(entries)
        entries[some] = copy.deepcopy(entries[some]) | {"name": name}
        index_fuzz.write_entries(folder, entries)

    return mutate


def filed(name: str) -> Callable[[Path, Path], None]:
    """A file of the model by another name in the head."""

    def mutate(folder: Path, home: Path) -> None:
        head = head_of(folder)
        head["settings"]["model"][name] = 0
        write_head(folder, head)

    return mutate


NAMES = (
    "../x",
    "/etc/passwd",
    "",
    ".",
    "..",
    "lock",
    "manifest.sqlite",
    "a/b.segment",
    "x" * 300,
    "\0",
    f"{'0' * 32}.segment",
    f"../{'0' * 32}.segment",
)
SUMS = (
    "",
    "\n" * 1_000,
    "x",
    f"{'0' * 64}  ../../config.json\n",
    f"{'0' * 64}  config.json\n" * 10_000,
    "\xff" * 100,
    "0  config.json\n0  model.safetensors\n",
)
CRAFTED: dict[str, Crafted] = {
    **{
        f"{what} for {name} of an index": Crafted("pq4.index", in_place(name, make))
        for name in INDEX_FILES
        for what, make in THINGS.items()
    },
    **{f"{what} for {name}": Crafted("open.index", in_place(name, make)) for name in LOGGED for what, make in THINGS.items()},
    **{
        f"{what} for {name} of a model": Crafted("sound.model", in_place(name, make))
        for name in MODEL_FILES
        for what, make in THINGS.items()
    },
    **{
        f"{name} of {other}": Crafted("flat.index", swapped(name, other))
        for name in INDEX_FILES
        for other in ("other.index", "pq4.index", "ivf.index", "int8.index", "open.index")
    },
    **{f"{name} of other.model": Crafted("sound.model", swapped(name, "other.model")) for name in MODEL_FILES},
    **{f"head {number}": Crafted("flat.index", in_head(number), sealed=True) for number in range(250)},
    **{f"entry {number}": Crafted("ivf.index", in_entry(number), sealed=True) for number in range(250)},
    **{f"config {number}": Crafted("sound.model", in_config(number), sealed=True) for number in range(200)},
    **{f"trees {number}": Crafted("sound.model", graph(number), sealed=True) for number in range(100)},
    **{f"a segment called {name[:20]!r}": Crafted("flat.index", named(name)) for name in NAMES},
    **{f"a model's file called {name[:20]!r}": Crafted("flat.index", filed(name)) for name in NAMES},
    **{f"checksums {text[:20]!r}": Crafted("sound.model", in_sums(text)) for text in SUMS},
    **{
        f"{key} twice in config.json": Crafted("sound.model", twice("config.json", key, value), sealed=True)
        for key, value in {"width": 63, "format": "x", "taper": {}, "router": 5, "tasks": [], "version": 9, "seen": {}}.items()
    },
    **{
        f"{key} twice in the head": Crafted("flat.index", twice("head", key, value), sealed=True)
        for key, value in {"commit": 0, "documents": 1, "settings": {}, "format": "x", "version": 9, "removed": -1}.items()
    },
}
