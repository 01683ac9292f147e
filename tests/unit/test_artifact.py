"""The model folder: what was saved comes back; what is damaged, newer or foreign is refused with a word on how to mend it."""

import json
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset
from adawidth.errors import AdaWidthError, ArtifactError


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="kyfan")


@pytest.fixture
def folder(model: AdaWidth, tmp_path: Path) -> Path:
    model.save(tmp_path / "a.model")
    return tmp_path / "a.model"


def test_round_trip(model: AdaWidth, folder: Path, collection: Dataset) -> None:
    again = AdaWidth.load(folder)
    assert np.array_equal(again.rotation.matrix, model.rotation.matrix)
    assert again.rotation.fingerprint == model.rotation.fingerprint
    assert again.record == model.record
    assert again.seen == model.seen
    queries = collection.queries_of("test")
    for options in ({}, {"budget": 40}, {"policy": "router", "quality": 0.95}, {"policy": "certify"}, {"width": 48, "start": 32}):
        first, second = (m.index(collection.documents).search(queries, k=10, **options) for m in (model, again))
        assert np.array_equal(first.rows, second.rows)
        assert np.array_equal(first.widths, second.widths)


def test_the_card_says_what_was_tried(folder: Path, model: AdaWidth) -> None:
    card = (folder / "README.md").read_text()
    for trial in model.record["trials"]:
        assert f"| {trial['recipe']} |" in card
    assert f"Shipped: **{model.record['chosen']}**" in card


def test_an_existing_folder_is_replaced_only_with_force(folder: Path, model: AdaWidth) -> None:
    with pytest.raises(AdaWidthError, match="--force"):
        model.save(folder)
    model.save(folder, force=True)
    assert AdaWidth.load(folder).record == model.record


def test_a_flipped_bit_is_found(folder: Path) -> None:
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    with pytest.raises(ArtifactError, match=r"model\.safetensors: damaged"):
        AdaWidth.load(folder)


@pytest.mark.parametrize("keep", [0, 7, 1000])
def test_a_truncated_file_is_found(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ArtifactError, match=r"model\.safetensors: damaged"):
        AdaWidth.load(folder)


def test_a_newer_version_is_refused_with_both_numbers(folder: Path) -> None:
    change(folder, version=99)
    with pytest.raises(ArtifactError, match=r"format version 99, this AdaWidth .* reads up to 1: upgrade"):
        AdaWidth.load(folder)


def test_foreign_and_missing_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"no such model folder; make one with `adawidth fit"):
        AdaWidth.load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match="this is no model folder"):
        AdaWidth.load(tmp_path / "empty")
    change(folder, format="something-else")
    with pytest.raises(ArtifactError, match="expected format 'adawidth-model'"):
        AdaWidth.load(folder)
    (folder / "config.json").write_text("{not json")
    with pytest.raises(ArtifactError, match=r"config\.json: damaged"):
        AdaWidth.load(folder)
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("key", ["rotation", "taper", "record", "seen"])
def test_a_config_without_a_part_is_refused(folder: Path, key: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArtifactError, match="do not make a model"):
        AdaWidth.load(folder)


def change(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
