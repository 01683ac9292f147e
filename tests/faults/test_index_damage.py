"""Damaged, crafted and older index folders: an error that names the file, or the right answer; never a crash, never a wrong answer."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from adawidth.errors import ArtifactError, DataError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine, repair
from small_index import DOCUMENTS, ROTATION, empty, fill, head_of, kept, vectors, write_head

QUERIES = ROTATION.apply(vectors(6, seed=9))


def answers(folder: Path) -> list[object]:
    """All that an index can be asked for."""
    with IndexFolder(folder) as index:
        view = index.view
        hits = view.search(QUERIES, 32, 20)
        some = view.where("lang = 'en' AND year < 2010").search(QUERIES, 48, 10)
        found = [[str(view.documents.ids[row]) for row in rows if row >= 0] for rows in (*hits.candidates, *some.candidates)]
        every = [f"d{i}" for i in range(0, DOCUMENTS, 7)]
        return [found, index.documents(every), index.vectors(every).tolist(), index.rotation.fingerprint]


@pytest.fixture
def three(filled: Path) -> Path:
    """An index with three segments and some removals."""
    with IndexFolder(filled) as index:
        index.add(vectors(50, seed=3), [f"e{i}" for i in range(50)], titles=["e"] * 50)
        index.add(vectors(9, seed=4), [f"f{i}" for i in range(9)])
        index.remove(["d3", "e3", "f3"])
    return filled


def test_a_flipped_row_is_named_and_repaired(three: Path) -> None:
    with IndexFolder(three) as index:
        entry = index.view.segments[0].entry
    flip(three / entry.name, entry.arrays["rows"].offset + 2 * 64 * 70)  # row 70: rows 64 to 71 are under one checksum
    with IndexFolder(three) as index, pytest.raises(ArtifactError, match=rf"{entry.name}: damaged: rows 64 to 71"):
        index.view.scan(QUERIES, 64, 300)
    assert len(examine(three)) == 1
    assert entry.name in examine(three)[0]
    with IndexFolder(three) as index:
        with pytest.raises(ArtifactError, match="adawidth repair"):
            index.compact()
        with pytest.raises(ArtifactError, match="adawidth repair"):
            index.snapshot(three.parent / "copy")
    assert not (three.parent / "copy").exists()

    done = repair(three)
    assert done.segments == [entry.name]
    assert done.saved == DOCUMENTS - 1 - 8
    assert done.lost == [f"d{i}" for i in range(64, 72)]
    assert examine(three) == []
    assert repair(three).segments == []
    with IndexFolder(three) as index:
        assert len(index) == DOCUMENTS + 59 - 3 - 8
        np.testing.assert_array_equal(index.vectors(["d2", "d63", "d128", "d299"]), kept(vectors())[[2, 63, 128, 299]])
        assert index.documents(["d4"])[0].title == "title 4"
        with pytest.raises(DataError, match="there is no document 'd64'"):
            index.documents(["d64"])
        index.add(vectors()[64:72], [f"d{i}" for i in range(64, 72)])
        assert (index.view.scan(QUERIES, 64, 1000).candidates >= 0).sum(axis=1).tolist() == [DOCUMENTS + 59 - 3] * 6


@pytest.mark.parametrize("damage", ["missing", "empty", "half", "codes", "ids"])
def test_what_is_left_of_a_segment_is_saved(three: Path, damage: str) -> None:
    with IndexFolder(three) as index:
        entry = index.view.segments[0].entry
    file = three / entry.name
    match damage:
        case "missing":
            file.unlink()
        case "empty":
            os.truncate(file, 0)
        case "half":
            os.truncate(file, entry.arrays["rows"].offset + 2 * 64 * 150)
        case "codes":
            flip(file, next(place for name, place in entry.arrays.items() if name.startswith("codes.")).offset)
        case "ids":
            flip(file, entry.arrays["names"].offset)
    with pytest.raises(ArtifactError, match=f"{entry.name}: .*adawidth repair"):
        IndexFolder(three)
    done = repair(three)
    assert len(done.lost) == {"missing": 299, "empty": 299, "half": 300 - 144, "codes": 0, "ids": 0}[damage]
    with IndexFolder(three) as index:
        assert len(index) == DOCUMENTS + 59 - 3 - len(done.lost)
        np.testing.assert_allclose(index.vectors(["e7", "f7"]), kept(np.stack([vectors(50, 3)[7], vectors(9, 4)[7]])), atol=1e-4)
        if done.saved:
            np.testing.assert_array_equal(index.vectors(["d0", "d127"]), kept(vectors())[[0, 127]])
        index.add(vectors(1, seed=8), ["again"])
        index.compact()


def test_a_lost_log_is_noticed(filled: Path, tmp_path: Path) -> None:
    """A commit that was acknowledged can't vanish quietly, not even with SQLite's write-ahead log."""
    reader = IndexFolder(filled)
    before = shutil.copytree(filled, tmp_path / "before")
    reader.add(vectors(5, seed=3), list("abcde"))
    reader.view.manifest.close()
    for name in ("manifest.sqlite", "manifest.sqlite-wal", "manifest.sqlite-shm"):
        (filled / name).unlink(missing_ok=True)
        if (before / name).exists():
            shutil.copy(before / name, filled / name)
    with pytest.raises(ArtifactError, match=r"manifest.sqlite: damaged: it is at commit 1, but commit 2 was made; .*adawidth repair"):
        IndexFolder(filled)
    orphan = ({file.name for file in filled.glob("*.segment")} - {file.name for file in before.glob("*.segment")}).pop()
    assert repair(filled, dry_run=True).aside == repair(filled).aside == [orphan]
    with IndexFolder(filled) as index:
        assert len(index) == DOCUMENTS
        index.add(vectors(1, seed=4), ["later"])
    assert (filled / "aside" / orphan).exists(), "the only copy of documents that were acknowledged"


def test_a_damaged_copy_of_the_model_is_named(filled: Path) -> None:
    config = filled / "model" / "config.json"
    config.write_text(config.read_text().replace("random", "learned"))
    with pytest.raises(ArtifactError, match=r"model/config.json: damaged"):
        IndexFolder(filled)
    config.unlink()
    with pytest.raises(ArtifactError, match=r"model/config.json: can't be read"):
        IndexFolder(filled)


def test_folders_that_are_no_index(filled: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="there is no such index; make one with `adawidth index"):
        IndexFolder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"there is no manifest.sqlite in it"):
        IndexFolder(tmp_path / "empty")
    (filled / "manifest.sqlite").write_bytes(b"something else entirely, and not a database at all" * 50)
    with pytest.raises(ArtifactError, match=r"manifest.sqlite: damaged"):
        IndexFolder(filled)


@pytest.mark.parametrize("place", ["segment", "manifest.sqlite", "model/config.json", "stranger"])
def test_links_are_not_followed(filled: Path, tmp_path: Path, place: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    name = next(file.name for file in filled.glob("*.segment")) if place == "segment" else place
    (filled / name).unlink(missing_ok=True)
    (filled / name).symlink_to(secret)
    with pytest.raises(ArtifactError, match="this is a link"):
        IndexFolder(filled)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE more (a)",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON documents BEGIN DELETE FROM removed; END",
        "CREATE INDEX more ON documents (title)",
        "DROP TABLE removed",
    ],
)
def test_a_manifest_with_other_tables_is_refused(filled: Path, statement: str) -> None:
    sql(filled, statement)
    with pytest.raises(ArtifactError, match="its tables are not those of an AdaWidth index"):
        IndexFolder(filled)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 6, "format version 6, this AdaWidth reads up to 5: upgrade"),
        ("format", "other", "expected format 'adawidth-index'"),
        ("documents", "many", "damaged|does not describe"),
        ("more", 1, "does not describe an index"),
        ("settings", {"width": 5}, "does not describe an index"),
    ],
)
def test_a_crafted_head_with_a_right_checksum(filled: Path, key: str, value: object, message: str) -> None:
    write_head(filled, {**head_of(filled), key: value})
    with pytest.raises(ArtifactError, match=message):
        answers(filled)


def test_an_index_of_the_first_version_is_read(tmp_path: Path) -> None:
    """Its head does not say how many coordinates were coded: as many as the start width has."""
    path = tmp_path / "i"
    with empty(path, storage="pq4", target=48) as index:
        fill(index)
    before, head = answers(path), head_of(path)
    assert head["settings"].pop("coded") == 32
    write_head(path, {**head, "version": 1})
    assert answers(path) == before
    with IndexFolder(path) as index:
        assert index.facts()["coded"] == 32


@pytest.mark.parametrize("place", ["segment", "model/config.json", "lock"])
def test_a_pipe_in_place_of_a_file_does_not_hang(filled: Path, place: str) -> None:
    name = next(file.name for file in filled.glob("*.segment")) if place == "segment" else place
    (filled / name).unlink()
    os.mkfifo(filled / name)
    if place == "lock":
        assert len(IndexFolder(filled)) == DOCUMENTS
        return
    with pytest.raises(ArtifactError, match=name):
        IndexFolder(filled)


@pytest.mark.parametrize("name", ["../../../../etc/passwd", "/etc/passwd", "x.segment"])
def test_a_crafted_segment_name_leads_nowhere(filled: Path, name: str) -> None:
    db = sqlite3.connect(filled / "manifest.sqlite")
    head, segment = (db.execute(f"SELECT value FROM {table}").fetchone()[0] for table in ("head", "segments"))
    text = json.dumps({**json.loads(segment), "name": name})
    db.execute("UPDATE segments SET value = ?", (text,))
    db.execute("UPDATE head SET checksum = ?", (zlib.crc32("\0".join([head, text]).encode()),))
    db.commit()
    db.close()
    with pytest.raises(ArtifactError, match="does not describe an index"):
        IndexFolder(filled)


@pytest.mark.parametrize("column", ["title", "text", "metadata", "id"])
def test_a_changed_document_is_found_out(filled: Path, column: str) -> None:
    sql(filled, f"UPDATE documents SET {column} = '{{}}' WHERE number = 14")
    with IndexFolder(filled) as index:
        with pytest.raises(ArtifactError, match=r"document .* does not have its checksum"):
            index.view.documents.describe([14])
        with pytest.raises(ArtifactError, match=r"document .* does not have its checksum"):
            index.view.where("year > 2000")
    assert len(examine(filled)) == 1


@pytest.mark.parametrize("statement", ["DELETE FROM documents WHERE number = 14", "INSERT INTO removed VALUES (7)"])
def test_a_row_too_few_or_too_many_is_found_out(filled: Path, statement: str) -> None:
    sql(filled, statement)
    with pytest.raises(ArtifactError, match="are not the"):
        answers(filled)


@pytest.mark.parametrize("limit", [3_000, 20_000, 40_000, 60_000, 90_000])
def test_a_full_disk_changes_nothing(filled: Path, limit: int) -> None:
    """Files that may not grow beyond a limit stand in for the disk: adding fails with one line, and the index is as it was."""
    expected = answers(filled)
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from small_index import vectors
from adawidth.errors import DataError
from adawidth.index import IndexFolder
import resource
index = IndexFolder({str(filled)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
new, old = [f"n{{i}}" for i in range(600)], [f"d{{i}}" for i in range(300)]
for verb, arguments in ((index.add, (vectors(600, seed=2), new)), (index.update, (vectors(), old))):
    try:
        verb(*arguments, texts=["x" * 400] * len(arguments[1]))
        print("written")
    except DataError as error:
        assert "not written" in str(error) and "\\n" not in str(error), error
        print("refused")
assert len(index) == 300
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", "refused"]
    assert answers(filled) == expected
    with IndexFolder(filled) as index:
        index.add(vectors(1, seed=2), ["new"])
    assert len(list(filled.glob("*.segment"))) == 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_no_verb_changes_a_segment_file(three: Path, tmp_path: Path) -> None:
    """Readers map these files: one that shrank would end them."""

    def state() -> dict[str, tuple[int, int, bytes]]:
        return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns, file.read_bytes()) for file in three.glob("*.segment")}

    seen = state()
    with IndexFolder(three) as index:
        for verb in (
            lambda: index.add(vectors(5, seed=5), list("abcde")),
            lambda: index.update(vectors(2, seed=6), ["d5", "a"]),
            lambda: index.remove(["d6", "b"]),
            lambda: index.snapshot(tmp_path / "copy"),
            index.compact,
            lambda: repair(three),
        ):
            verb()
            now = state()
            assert all(now[name] == before for name, before in seen.items() if name in now)
            seen |= now
    assert len(seen) > 4


def test_documents_whose_pages_lead_in_a_circle_are_counted_no_further(filled: Path) -> None:
    """A number that is not above the one before makes the next look begin where this one did."""
    with IndexFolder(filled) as index:
        asked = []

        def query(statement: str, values: tuple[int, int]) -> list[tuple[object, ...]]:
            asked.append(values)
            return rows

        rows = index.view.manifest.query("SELECT * FROM documents WHERE number < 5")
        index.view.manifest.query = query  # type: ignore[method-assign, assignment]
        with pytest.raises(ArtifactError, match=f"there are more documents than the {DOCUMENTS} that were written"):
            index.view.manifest.check_documents()
        assert len(asked) == DOCUMENTS // 5 + 1


def test_a_model_file_of_a_terabyte_is_not_read(filled: Path) -> None:
    os.truncate(filled / "model" / "model.safetensors", 2**40)
    with pytest.raises(ArtifactError, match=r"model.safetensors: can't be read \(1099511627776 bytes, at most \d+ are expected\)"):
        IndexFolder(filled)


def sql(folder: Path, statement: str) -> None:
    db = sqlite3.connect(folder / "manifest.sqlite")
    db.execute(statement)
    db.commit()
    db.close()


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 8
    file.write_bytes(data)
