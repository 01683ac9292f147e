"""Folders made by released versions still open and answer as they did. tools/make_compat.py made them, and says how."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, AdaWidthError, open_index
from adawidth.cli.app import app
from adawidth.index.store.manifest import VERSION
from small_index import head_of, write_head

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
STORAGES = ("flat", "int8", "pq4", "ivf", "graph")


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a release made: opening an index may write to its folder."""
    storage = request.node.callspec.params.get("storage", "flat")
    if not (request.param / "indexes" / storage).is_dir():
        pytest.skip(f"{request.param.name} had no storage {storage}")
    return Path(shutil.copytree(request.param, tmp_path / "release"))


def expected(release: Path) -> dict[str, Any]:
    """What the release answered."""
    found: dict[str, Any] = json.loads((release / "expected.json").read_text(encoding="utf-8"))
    return found


def check(index: Any, queries: np.ndarray, wanted: list[dict[str, Any]]) -> None:
    """The same ids and, but for rounding, the same scores."""
    for answer in wanted:
        hits = index.search(queries, k=5, **answer["options"])
        assert [list(row) for row in hits.ids] == answer["ids"], answer["options"]
        np.testing.assert_allclose(hits.scores, answer["scores"], atol=1e-3)


def run(*arguments: str | Path) -> None:
    """Runs a command, which must succeed."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


def damage(file: Path, how: str) -> None:
    """Cuts a file in half, or changes a byte in the middle of it."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data if how == "flipped" else data[: len(data) // 2])


@pytest.mark.parametrize("storage", STORAGES)
def test_an_index_answers_as_it_did(release: Path, storage: str) -> None:
    wanted = expected(release)["indexes"][storage]
    index = open_index(release / "indexes" / storage)
    check(index, np.load(release / "queries-64.npy"), wanted["answers"])


@pytest.mark.parametrize("storage", STORAGES)
def test_an_index_is_whole_and_can_be_changed(release: Path, storage: str) -> None:
    folder, queries = release / "indexes" / storage, np.load(release / "queries-64.npy")
    full = expected(release)["indexes"][storage]["answers"][1]
    gone = full["ids"][0][0]
    run("info", folder, "--verify")
    run("remove", folder, gone)
    run("compact", folder)
    hits = open_index(folder).search(queries, k=5, **full["options"])
    for found, before in zip(hits.ids, full["ids"], strict=True):
        left = [document for document in before if document != gone]
        assert list(found)[: len(left)] == left
        assert gone not in found


def hybrid(release: Path, storage: str) -> bool:
    """Whether the release made this index with words."""
    return any("hybrid" in answer["options"] for answer in expected(release)["indexes"][storage]["answers"])


@pytest.mark.parametrize("storage", ["flat", "int8"])
def test_an_index_without_words_gains_them(release: Path, storage: str) -> None:
    if hybrid(release, storage):
        pytest.skip("it has them: test_an_index_answers_as_it_did")
    folder, query = release / "indexes" / storage, np.load(release / "queries-64.npy")[:1]
    with open_index(folder) as index, pytest.raises(AdaWidthError, match=f"compact {storage} --hybrid"):
        index.search(query, text="ünïcode", hybrid=True)
    with open_index(folder) as index:
        before = index.search(query, k=5).ids
        index.add(query, ["more"], texts=["ünïcode again"])
        index.remove(["more"])
        index.update(np.roll(query, 1, axis=1), [before[0][4]], texts=["ünïcode"])
    run("compact", folder, "--hybrid")
    with open_index(folder) as index:
        assert index.search(query, k=4).ids[0] == before[0][:4]
        assert before[0][4] in index.search(query, k=5, text="unicode", hybrid=True).ids[0]


def test_words_outlive_later_changes(release: Path) -> None:
    if not hybrid(release, "flat"):
        pytest.skip("it has no words: test_an_index_without_words_gains_them")
    folder, query = release / "indexes" / "flat", np.load(release / "queries-64.npy")[:1]
    with open_index(folder) as index:
        index.add(np.roll(query, 1, axis=1), ["more"], texts=["ünïcode again"])
        index.remove(["near 0"])
        index.compact()
        (found,) = index.search(query, k=10, text="unicode", hybrid=True).ids
    assert "more" in found
    assert "near 0" not in found


def test_the_last_format_is_among_them(tmp_path: Path) -> None:
    """Whoever changes the format makes folders of it with tools/make_compat.py."""
    assert VERSION in [head_of(shutil.copytree(folder / "indexes" / "flat", tmp_path / folder.name))["version"] for folder in RELEASES]


def test_a_newer_index_is_refused(release: Path) -> None:
    """What an older version says of an index of this one."""
    folder = release / "indexes" / "flat"
    write_head(folder, head_of(folder) | {"version": VERSION + 1})
    with pytest.raises(AdaWidthError, match=f"format version {VERSION + 1}, this AdaWidth reads up to {VERSION}: upgrade"):
        open_index(folder)


def test_a_model_with_a_router_and_a_query_map_answers_as_it_did(release: Path) -> None:
    documents = np.load(release / "documents-128.npy").astype(np.float32)
    index = AdaWidth.load(release / "models" / "routed").index(documents)
    check(index, np.load(release / "queries-128.npy"), expected(release)["routed"]["answers"])


def test_a_model_searches_an_index_that_it_made(release: Path) -> None:
    index = open_index(release / "indexes" / "pq4", AdaWidth.load(release / "models" / "pca"))
    check(index, np.load(release / "queries-64.npy"), expected(release)["indexes"]["pq4"]["answers"])


@pytest.mark.parametrize("how", ["halved", "flipped"])
@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_damaged_model_is_refused(release: Path, file: str, how: str) -> None:
    damage(release / "models" / "routed" / file, how)
    with pytest.raises(AdaWidthError, match=file):
        AdaWidth.load(release / "models" / "routed")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("file", ["manifest.sqlite", "*.segment", "model/config.json", "model/model.safetensors"])
def test_a_damaged_index_is_refused(release: Path, storage: str, file: str) -> None:
    folder = release / "indexes" / storage
    damage(next(folder.glob(file)), "halved")
    with pytest.raises(AdaWidthError, match=str(folder)):
        open_index(folder)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_flipped_byte_of_a_segment_is_found(release: Path, storage: str) -> None:
    folder = release / "indexes" / storage
    damage(next(folder.glob("*.segment")), "flipped")
    done = CliRunner().invoke(app, ["info", str(folder), "--verify"])
    assert done.exit_code == 1
    assert ".segment" in done.stderr
