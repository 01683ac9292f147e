"""The model folder: what was saved comes back; what is damaged, newer or foreign is refused with a word on how to mend it."""

import hashlib
import json
import os
import re
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
    for trial in model.record.trials:
        assert f"| {trial.recipe} |" in card
    assert f"Shipped: **{model.record.chosen}**" in card


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
    with pytest.raises(ArtifactError, match=r"config\.json: damaged \("):
        AdaWidth.load(folder)


@pytest.mark.parametrize("key", ["rotation", "taper", "record", "seen"])
def test_a_config_without_a_part_is_refused(folder: Path, key: str) -> None:
    change(folder, **{key: ...})
    with pytest.raises(ArtifactError, match="do not make a model"):
        AdaWidth.load(folder)


def test_a_flipped_bit_in_the_config_is_found(folder: Path) -> None:
    file = folder / "config.json"
    file.write_text(file.read_text().replace('"start": 64', '"start": 65'))
    with pytest.raises(ArtifactError, match=r"config\.json: damaged or another model's: checksum .*, SHA256SUMS says"):
        AdaWidth.load(folder)


def test_anyone_can_check_the_sums(folder: Path) -> None:
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("config.json", "model.safetensors", "README.md")}
    assert {name: value for value, name in (line.split("  ") for line in lines)} == found


def test_the_card_may_be_edited(folder: Path, model: AdaWidth) -> None:
    (folder / "README.md").write_text("# Mine\n")
    assert AdaWidth.load(folder).record == model.record


def test_a_folder_whose_sums_are_missing_or_damaged_is_refused(folder: Path) -> None:
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text().partition("\n")[0])
    with pytest.raises(ArtifactError, match=r"SHA256SUMS: damaged: expected a line each for config\.json and model\.safetensors"):
        AdaWidth.load(folder)
    sums.unlink()
    with pytest.raises(ArtifactError, match=r"SHA256SUMS: there is no such file"):
        AdaWidth.load(folder)


def test_a_folder_of_the_first_version_has_no_sums(folder: Path, model: AdaWidth) -> None:
    change(folder)
    assert not (folder / "SHA256SUMS").exists()
    assert AdaWidth.load(folder).record == model.record


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 48}, "width: 48, but the rotation is 64 wide"),
        ({"width": 10**9}, "config.json: width 1000000000 is not a whole number from 1 to 16384"),
        ({"seen": [["d1"]]}, "seen: expected a list of ids"),
        ({"record": []}, "record: expected an object"),
        ({"tasks": {}}, "tasks: expected a list"),
        ({"tasks": [{"name": "none"}]}, "tasks.0.name: 'none' can't name a task"),
        ({"rotation": {"kind": 3}}, "rotation: expected its kind"),
        ({"taper": {"target": 64, "ladders": [[32, 48, 40, 64]]}}, "taper.ladders.0: expected whole numbers that rise within 1 to 64"),
        ({"taper": {"target": 64, "ladders": [[-32, 64]]}}, "taper.ladders.0: expected whole numbers that rise within 1 to 64"),
        ({"taper": {"target": 64, "ladders": [[32, 96]]}}, "found [32, 96]"),
        ({"taper": {"target": 48, "ladders": [[32, 64]]}}, "taper.ladders: expected the target width 48 last"),
        ({"taper": {"target": [64], "ladders": [[32, 64]]}}, "taper.target: expected a whole number from 1 to 64, found [64]"),
        ({"router": {"start": 0}}, "router.start: expected a whole number from 1 to 64, found 0"),
        ({"router": {"start": True}}, "router.start: expected a whole number"),
        ({"router": {"start": 32, "widths": [64, 32]}}, "router.widths: expected whole numbers that rise"),
    ],
)
def test_what_a_config_says_is_checked(folder: Path, changes: dict[str, object], words: str) -> None:
    change(folder, **changes)
    with pytest.raises(ArtifactError, match=re.escape(words)):
        AdaWidth.load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "SHA256SUMS"])
def test_pipes_links_and_huge_files_are_refused_and_not_read(folder: Path, name: str, tmp_path: Path) -> None:
    file = folder / name
    kept = file.rename(tmp_path / "kept")
    file.symlink_to(kept)
    with pytest.raises(ArtifactError, match=f"{name}: can't be read"):
        AdaWidth.load(folder)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ArtifactError, match=rf"{name}: can't be read \(not a regular file\)"):
        AdaWidth.load(folder)
    file.unlink()
    file.touch()
    os.truncate(file, 2**40)  # sparse: it takes no room on the disk
    with pytest.raises(ArtifactError, match=rf"{name}: can't be read \(1099511627776 bytes, at most \d+ are expected\)"):
        AdaWidth.load(folder)


def test_deep_json_is_refused(folder: Path) -> None:
    change(folder)
    (folder / "config.json").write_text('{"format": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ArtifactError, match=r"config\.json: damaged \(it is nested too deeply\)"):
        AdaWidth.load(folder)


def change(folder: Path, **changes: object) -> None:
    """Another config, without what is `...`, in a folder like those of 0.1, which have no checksum of it."""
    config = {**json.loads((folder / "config.json").read_text()), **changes, "checksums": ...}
    (folder / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not ...}))
    (folder / "SHA256SUMS").unlink(missing_ok=True)


def test_a_record_of_0_1_is_read_and_a_wrong_type_is_refused(folder: Path) -> None:
    change(folder, record={"chosen": "pca", "trials": [{"recipe": "pca", "dev": {"32": 0.5, "64": 0.7}}], "forgotten": 1})
    record = AdaWidth.load(folder).record
    assert (record.chosen, record.dataset, record.labels, record.train_queries) == ("pca", "arrays", False, 0)
    assert record.trials[0].mean == pytest.approx(0.6)
    wrongs: list[object] = [{"seed": "0"}, {"trials": [{"recipe": "pca", "dev": [1]}]}, {"trials": [{}]}, {"trials": 3}, 5]
    for wrong in wrongs:
        change(folder, record=wrong)
        with pytest.raises(ArtifactError, match="do not make a model: record: expected"):
            AdaWidth.load(folder)
