"""Damaged or crafted words of an index: found before they are used, by verifying, and repaired from the texts."""

from pathlib import Path

import pytest

from adawidth.errors import AdaWidthError, ArtifactError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine, repair
from adawidth.index.store.manifest import Manifest
from small_index import DOCUMENTS, empty, fill, head_of, vectors, write_head

NAMES = ("text", "ends", "starts", "rows", "counts", "lengths")
ASKED = ["text of 7"]


@pytest.fixture
def worded(tmp_path: Path) -> Path:
    """300 documents, with their words, in one segment."""
    with empty(tmp_path / "i") as index:
        index.compact(hybrid=True)
        fill(index)
    return tmp_path / "i"


def best(folder: Path) -> str:
    """The document that words find."""
    with IndexFolder(folder) as index:
        return str(index.view.documents.ids[index.view.lexical(ASKED, 5)[0, 0]])


def flip(folder: Path, name: str) -> None:
    """Changes a byte in the middle of one of the arrays of words."""
    with Manifest(folder) as manifest:
        (entry,) = manifest.segments
    place, file = entry.arrays[f"words.{name}"], folder / entry.name
    data = bytearray(file.read_bytes())
    data[place.offset + place.size // 2] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_byte_is_found_and_repaired(worded: Path, name: str) -> None:
    assert best(worded) == "d7"
    flip(worded, name)
    with IndexFolder(worded) as index:
        assert len(index.view.where("year > 2000")) > 0  # what needs no words goes on
        with pytest.raises(ArtifactError, match=rf"the array 'words\.{name}' does not have its checksum"):
            index.view.lexical(ASKED, 5)
        for change in (index.compact, lambda: index.snapshot(worded.with_name("copy"))):
            index.remove(["d0"]) if change == index.compact else None
            with pytest.raises(ArtifactError, match=f"words.{name}"):
                change()
    (problem,) = examine(worded)
    assert f"words.{name}" in problem
    done = repair(worded)
    assert (done.saved, list(done.lost)) == (DOCUMENTS - 1, [])
    assert examine(worded) == []
    assert best(worded) == "d7"


def test_words_that_a_head_promises_and_no_segment_has(tmp_path: Path) -> None:
    with empty(tmp_path / "i") as index:
        fill(index)
    write_head(tmp_path / "i", {**head_of(tmp_path / "i"), "words": True})
    with IndexFolder(tmp_path / "i") as index, pytest.raises(ArtifactError, match="a segment has no words"):
        index.view.lexical(ASKED, 5)
    write_head(tmp_path / "i", {**head_of(tmp_path / "i"), "words": "yes"})
    with pytest.raises(AdaWidthError, match="damaged"):
        IndexFolder(tmp_path / "i")


def test_a_snapshot_has_the_words(worded: Path) -> None:
    with IndexFolder(worded) as index:
        index.add(vectors(1, seed=5), ["new"], texts=["text of nothing else"])
        index.snapshot(worded.with_name("copy"))
    assert best(worded.with_name("copy")) == "d7"
    assert examine(worded.with_name("copy")) == []
