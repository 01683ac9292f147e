"""Crafted trees and types of a model folder are refused by name; damage of all kinds: test_mutations.py."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from adawidth import AdaWidth
from adawidth.errors import ArtifactError
from adawidth.policies.router import DEEPEST, Head, Router, Trees
from faults import model_fuzz
from small_model import save_small_model, trees


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("models") / "sound.model")


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(sound, tmp_path / "a.model"))


def chain(length: int) -> dict[str, np.ndarray]:
    """One tree as deep as it has splits."""
    children = [pair for i in range(0, 2 * length, 2) for pair in ([i + 1, i + 2], [i + 1, i + 1])] + [[2 * length] * 2]
    nodes = len(children)
    return trees(feature=[0] * nodes, threshold=[0.0] * nodes, children=children, value=[1.0] * nodes, roots=[0], depths=[length])


CRAFTED = {
    "a node that leads back to its root": (trees(children=[[0, 2], [1, 1], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "a circle of two nodes": (trees(children=[[1, 2], [0, 0], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "a half leaf": (trees(children=[[1, 2], [1, 2], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "a child behind the last node": (trees(children=[[1, 6], [1, 1], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "a child before the first": (trees(children=[[1, -1], [1, 1], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "a child far away": (trees(children=[[1, 2**31 - 1], [1, 1], [2, 2], [4, 5], [4, 4], [5, 5]]), "children"),
    "children of another shape": (trees(children=[1, 2, 1, 1, 2, 2]), "children: expected int32, 6 × 2"),
    "a root behind the last node": (trees(roots=[0, 6]), "roots"),
    "a root before the first": (trees(roots=[-1, 3]), "roots"),
    "roots whose difference is too large for 32 bits": (trees(roots=[2_000, -(2**31) + 9]), "roots"),
    "roots that fall by more than 32 bits": (trees(roots=[900_000_000, 5, -900_000_000], depths=[1] * 3), "roots"),
    "one root many times": (trees(roots=[0] * 50, depths=[1] * 50), "roots"),
    "depths for another number of trees": (trees(depths=[1]), "depths: expected int32, 2"),
    "a huge depth": (trees(depths=[1, 900_000_000]), "depths: expected 1 for tree 1"),
    "a depth that ends above the leaves": (trees(depths=[0, 1]), "depths: expected 1 for tree 0, found 0"),
    "a negative depth": (trees(depths=[-1, 1]), "depths"),
    "a feature that there is not": (trees(feature=[18, 0, 0, 17, 0, 0]), "feature: expected numbers below 18"),
    "a negative feature": (trees(feature=[-1, 0, 0, 17, 0, 0]), "feature"),
    "64-bit features": (trees(feature=np.zeros(6, np.int64)), "feature: expected int32, 6, found int64, 6"),
    "too few values": (trees(value=[0.0]), "value: expected float64, 6"),
    "a value that is none": (trees(value=[0.0, np.nan, 1.0, 0.0, 2.0, 3.0]), "value"),
    "an infinite value": (trees(value=[0.0, np.inf, 1.0, 0.0, 2.0, 3.0]), "value"),
    "a threshold that is none": (trees(threshold=[np.nan] * 6), "threshold"),
    "a tree too deep": (chain(DEEPEST + 1), f"children: expected leaves at most {DEEPEST} steps from a root"),
    "a chain of 100,000 nodes": (chain(50_000), f"children: expected leaves at most {DEEPEST} steps from a root"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_trees_are_refused(name: str, folder: Path) -> None:
    crafted, words = CRAFTED[name]
    file = folder / "model.safetensors"
    tensors = safetensors.numpy.load(file.read_bytes())
    file.write_bytes(safetensors.numpy.save(tensors | {f"router.0.{part}": np.ascontiguousarray(value) for part, value in crafted.items()}))
    model_fuzz.seal(folder)
    with pytest.raises(ArtifactError, match=rf"model\.safetensors do not make a model: router\.0\.{words}"):
        AdaWidth.load(folder)


def test_trees_that_are_sound_walk() -> None:
    low, high = np.zeros((1, 18)), np.ones((1, 18))
    assert Trees(**trees()).predict(np.concatenate([low, high])).tolist() == [1.0, 4.0]
    assert Trees(**chain(DEEPEST)).predict(low).tolist() == [1.0]


@pytest.mark.parametrize(
    ("widths", "start"), [((), 1), ((-5, 64), 1), ((64, 32), 1), ((32, 32), 1), ((32, 64), 0), ((32, 64), -7), ((32, 64), 65)]
)
def test_a_router_made_by_hand_is_checked_too(widths: tuple[int, ...], start: int) -> None:
    with pytest.raises(ArtifactError, match="expected"):
        Router(Head(widths, "paper", Trees(**trees()), np.zeros(1), np.zeros((1, len(widths)))), start, 0.1, 0.0)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "I32"])
def test_types_that_are_not_numpys_or_not_the_models_are_refused(dtype: str, folder: Path) -> None:
    file = folder / "model.safetensors"
    packed = file.read_bytes()
    length = int.from_bytes(packed[:8], "little")
    head = json.loads(packed[8 : 8 + length])
    size = {"BF16": 2, "F8_E4M3": 1, "I32": 4}[dtype]
    head["rotation"] |= {"dtype": dtype, "shape": [64, 64 * 4 // size]}
    text = json.dumps(head).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + packed[8 + length :])
    model_fuzz.seal(folder)
    with pytest.raises(ArtifactError, match=r"model\.safetensors"):
        AdaWidth.load(folder)
