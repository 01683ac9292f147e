"""What a manifest may hold, how long it may be asked, and which index it belongs to."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adawidth.errors import ArtifactError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine
from adawidth.index.store import connection
from adawidth.index.store.manifest import checksum_of
from small_index import DOCUMENTS, ROTATION, empty, fill, head_of, vectors, write_head


def sql(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "manifest.sqlite", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TRIGGER "sqlite.autoindex.x" AFTER INSERT ON documents BEGIN DELETE FROM removed; END',
        'CREATE VIEW "sqlite autoindex x" AS SELECT 1',
        'CREATE INDEX "sqliteXautoindexXx" ON documents (title)',
    ],
)
def test_a_name_like_one_of_sqlites_own_hides_nothing(filled: Path, statement: str) -> None:
    sql(filled, statement)
    with pytest.raises(ArtifactError, match="its tables are not those of an AdaWidth index"):
        IndexFolder(filled)


def test_a_table_in_other_words_is_refused(filled: Path) -> None:
    """The same columns, but ids need not be unique."""
    sql(
        filled,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'number INTEGER PRIMARY KEY)', 'number  INTEGER PRIMARY KEY)') WHERE name = 'removed'",
    )
    with pytest.raises(ArtifactError, match="its tables are not those of an AdaWidth index"):
        IndexFolder(filled)


def test_verifying_finds_damage_in_the_index_of_ids(filled: Path) -> None:
    """An id that its index does not have is not found, and could be added again."""
    database = filled / "manifest.sqlite"
    with closing(sqlite3.connect(database)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE sql IS NULL AND tbl_name = 'documents'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray(database.read_bytes())
    place = data.index(b"d123", (root - 1) * size)
    data[place : place + 4] = b"d12x"
    database.write_bytes(data)
    assert any("manifest.sqlite: damaged" in line for line in examine(filled))
    with IndexFolder(filled) as index, pytest.raises(ArtifactError, match="damaged"):
        index.snapshot(filled.parent / "copy.index")


def pages(database: Path) -> tuple[int, int]:
    """The size of a page, and how many there are."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute("PRAGMA page_size").fetchone()[0], db.execute("PRAGMA page_count").fetchone()[0]


SCRIPT = """
import sys
from adawidth.errors import AdaWidthError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine
for call in (lambda: len(examine(sys.argv[1])), lambda: IndexFolder(sys.argv[1]).view.where("year > 2000 OR NOT lang = 'x'")):
    try:
        call()
    except AdaWidthError:
        pass
print("done")
"""


def test_no_two_swapped_pages_make_a_query_endless(tmp_path: Path) -> None:
    """An inner page in place of one of its leaves is its own child: a scan goes round for ever, unless it is stopped."""
    path = tmp_path / "i"
    with empty(path) as index:
        rows = range(3_000)
        index.add(vectors(3_000), [f"d{i}" for i in rows], texts=["x" * 300] * 3_000, metadata=[{"year": 2000 + i % 30} for i in rows])
    database = path / "manifest.sqlite"
    size, count = pages(database)
    original = database.read_bytes()
    inner = [page for page in range(1, count) if original[page * size] == 5]  # of tables
    assert inner
    for page in inner:
        leaf = int.from_bytes(original[(page + 1) * size - 4 : (page + 1) * size])  # the child of its last cell, most often
        offset = int.from_bytes(original[page * size + 12 : page * size + 14])
        child = int.from_bytes(original[page * size + offset : page * size + offset + 4])
        for other in {child - 1, leaf - 1} & set(range(1, count)):
            data = bytearray(original)
            data[other * size : (other + 1) * size], data[page * size : (page + 1) * size] = (
                original[page * size : (page + 1) * size],
                original[other * size : (other + 1) * size],
            )
            database.write_bytes(data)
            done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False, timeout=60)
            assert done.stdout == "done\n", done.stderr[-2000:]


def test_a_query_that_does_not_end_is_damage(filled: Path) -> None:
    with IndexFolder(filled) as index:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        with pytest.raises(ArtifactError, match=r"manifest.sqlite: damaged: a query takes more than \d+ steps"):
            index.view.manifest.query(endless)
        assert len(index.view.where("year > 0")) == DOCUMENTS


def test_an_index_rebuilt_in_place_is_noticed(filled: Path, tmp_path: Path) -> None:
    """It has as many commits, the same rotation and the same documents, but it is another one."""
    with IndexFolder(filled) as reader:
        filled.rename(tmp_path / "former")
        with empty(filled) as other:
            fill(other)
        with pytest.raises(ArtifactError, match="another index is here now than the one that was opened: open it again"):
            reader.refresh()
        for change in (lambda: reader.add(vectors(1), ["new"]), lambda: reader.remove(["d1"]), reader.compact):
            with pytest.raises(ArtifactError, match="another index is here now"):
                change()
    with IndexFolder(filled) as again:
        assert len(again) == DOCUMENTS


def test_a_snapshot_is_an_index_of_its_own(filled: Path, tmp_path: Path) -> None:
    with IndexFolder(filled) as index:
        index.snapshot(tmp_path / "copy.index")
        assert head_of(filled)["identity"] != head_of(tmp_path / "copy.index")["identity"] != ""
        index.add(vectors(1, seed=5), ["new"])
        shutil.rmtree(filled)
        (tmp_path / "copy.index").rename(filled)
        with pytest.raises(ArtifactError, match="another index is here now"):
            index.refresh()
    assert examine(filled) == []


def test_an_index_without_an_identity_is_read_and_changed(filled: Path) -> None:
    head = head_of(filled)
    del head["identity"]
    write_head(filled, {**head, "version": 2})
    with IndexFolder(filled) as index, IndexFolder(filled) as reader:
        index.add(vectors(1, seed=5), ["new"])
        assert reader.refresh()
        assert len(reader) == DOCUMENTS + 1
    assert head_of(filled)["identity"] == ""


def test_a_refreshed_reader_checks_changed_documents_before_a_filter(filled: Path) -> None:
    with IndexFolder(filled) as reader:
        reader.view.where("year > 0")
        with IndexFolder(filled) as writer:
            writer.add(vectors(1, seed=5), ["new"], metadata=[{"year": 2001}])
        sql(filled, "UPDATE documents SET metadata = '{\"year\": 3000}' WHERE id = 'd5'")
        reader.refresh()
        with pytest.raises(ArtifactError, match="document 'd5' does not have its checksum"):
            reader.view.where("year = 3000")


@pytest.mark.parametrize("metadata", ["", "{", "[]", "null", "7", pytest.param("[" * 100_000 + "]" * 100_000, id="deep")])
def test_crafted_metadata_with_right_checksums_are_refused(filled: Path, metadata: str) -> None:
    with closing(sqlite3.connect(filled / "manifest.sqlite")) as db:
        row = db.execute("SELECT * FROM documents WHERE id = 'd5'").fetchone()
        checksum = checksum_of(*row[:4], metadata)
        db.execute("UPDATE documents SET metadata = ?, checksum = ? WHERE id = 'd5'", (metadata, checksum))
        db.commit()
    head = head_of(filled)
    write_head(filled, {**head, "documents_sum": head["documents_sum"] + checksum - row[5]})
    with IndexFolder(filled) as index, pytest.raises(ArtifactError, match="the metadata of document 'd5' are no JSON object"):
        index.documents(["d4", "d5"])


def test_what_can_not_be_read_is_not_called_damaged(filled: Path) -> None:
    """A reader that can't read says so, and advises no snapshot."""
    with IndexFolder(filled) as index:
        (filled / "manifest.sqlite").rename(filled / "elsewhere")
        (filled / "manifest.sqlite").mkdir()
        with pytest.raises(ArtifactError, match="can't be read") as caught:
            index.refresh()
        assert "snapshot" not in str(caught.value)


def test_a_filter_of_many_values_is_answered(filled: Path) -> None:
    with IndexFolder(filled) as index:
        years = list(range(2003, 12_000))
        text = f"year IN ({', '.join(map(str, years))})"
        for wanted in (text, {"year": years}):
            found = index.view.where(wanted).search(ROTATION.apply(vectors(1)), 32, DOCUMENTS).candidates
            assert (found >= 0).sum() == DOCUMENTS * 27 // 30


@pytest.mark.parametrize("kind", ["reader", "writer", "copy"])
def test_a_connection_trusts_nothing_in_the_file(filled: Path, kind: str) -> None:
    db = connection._copied(filled) if kind == "copy" else connection.connected(filled, writing=kind == "writer")
    with closing(db):
        assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert db.execute("PRAGMA cell_size_check").fetchone() == (1,)
        if sys.version_info >= (3, 12):  # before, the module has no way to set it
            assert db.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
