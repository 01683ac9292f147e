"""Texts in every kind of file, with the columns a user names, and what is wrong with a file said in one line."""

import datetime
import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from adawidth.errors import DataError, OptionError
from adawidth.formats import Columns, Text, read_texts, write_texts
from adawidth.formats.texts import read_corpus

TEXTS = [Text("a", "first, with a comma", "One"), Text("b", 'says "hello"\nand goes on', ""), Text("c", "日本語 text", "Drei")]


def test_json_lines_come_back(tmp_path: Path) -> None:
    pictured = [Text("0", "without a title"), *TEXTS, Text("d", "what is this?", image="pictures/1.jpg")]
    write_texts(tmp_path / "corpus.jsonl", pictured)
    assert list(read_texts(tmp_path / "corpus.jsonl")) == pictured
    assert list(read_texts(tmp_path)) == pictured  # a dataset folder's corpus
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress((tmp_path / "corpus.jsonl").read_bytes()))
    assert list(read_texts(tmp_path / "corpus.jsonl.gz")) == pictured


def test_what_is_encoded_is_title_and_text() -> None:
    assert [text.whole for text in TEXTS[:2]] == ["One first, with a comma", TEXTS[1].text]


def test_csv_and_tsv(tmp_path: Path) -> None:
    quoted = ["id,title,text", 'a,One,"first, with a comma"', 'b,,"says ""hello""\nand goes on"', "", "c,Drei,日本語 text"]
    (tmp_path / "t.csv").write_text("\ufeff" + "\r\n".join(quoted), encoding="utf-8")
    assert list(read_texts(tmp_path / "t.csv")) == TEXTS
    (tmp_path / "t.tsv").write_text("id\ttext\n7\tseven\n", encoding="utf-8")
    assert list(read_texts(tmp_path / "t.tsv")) == [Text("7", "seven")]


def test_a_long_field_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text\n" + "x" * 200_000 + "\n")
    assert len(next(read_texts(tmp_path / "t.csv")).text) == 200_000


def test_parquet(tmp_path: Path) -> None:
    columns = {"_id": [text.id for text in TEXTS], "title": [text.title or None for text in TEXTS], "text": [text.text for text in TEXTS]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    assert list(read_texts(tmp_path / "t.parquet")) == TEXTS


def test_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sku,name,blurb,text\n17,Lamp,bright,no\n", encoding="utf-8")
    assert list(read_texts(tmp_path / "t.csv", Columns("blurb", "name", "sku"))) == [Text("17", "bright", "Lamp", metadata={"text": "no"})]
    assert list(read_texts(tmp_path / "t.csv")) == [
        Text("1", "no", metadata={"sku": 17, "name": "Lamp", "blurb": "bright"})
    ]  # rows are numbered where there is no id


def test_plain_text_is_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("first\n\n  third \n")
    assert list(read_texts(tmp_path / "t.txt")) == [Text("1", "first"), Text("3", "third")]


def test_a_folder_is_cut_into_passages(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for hidden in (".git", "notes.adawidth"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "no.md").write_text("hidden")
    (tmp_path / "a.txt").write_text("one\ntwo\n\nthree\n")
    (tmp_path / "b.py").write_text("not a text")
    long = [f"{word} " * 100 for word in ("alpha", "beta", "gamma")]  # 600, 500 and 600 characters
    (tmp_path / "sub" / "b.md").write_text("# The title\n\n" + "\n\n".join(long) + "\n\n## Further\n\nAn end.\n")
    found = list(read_texts(tmp_path))
    assert found[0] == Text("a.txt", "one two\n\nthree", "a", metadata={"file": "a.txt"})
    assert [text.id for text in found[1:]] == [f"sub/b.md#{number}" for number in range(1, 5)]
    assert [text.title for text in found[1:]] == ["The title"] * 3 + ["The title › Further"]
    assert {text.metadata["file"] for text in found[1:]} == {"sub/b.md"}
    assert [word for text in found[1:] for word in text.text.split()] == [*" ".join(long).split(), "An", "end."]


def test_further_columns_are_metadata(tmp_path: Path) -> None:
    rows = ["id,title,text,year,zip,price,open,note", "a,A,one,2019,01234,1.50,true,", "b,B,two,,99999,2,False,x"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    first, second = read_texts(tmp_path / "t.csv")
    assert first.metadata == {"year": 2019, "zip": "01234", "price": 1.5, "open": True}  # a column with leading zeros is no number
    assert second.metadata == {"zip": "99999", "price": 2, "open": False, "note": "x"}
    entry = {"_id": "a", "text": "x", "tags": ["p", "q"], "at": None, "metadata": {"lang": "en"}}
    (tmp_path / "t.jsonl").write_text(json.dumps(entry) + "\n")
    assert next(read_texts(tmp_path / "t.jsonl")).metadata == {"lang": "en", "tags": ["p", "q"]}
    columns = {"text": ["x"], "day": [datetime.date(2024, 2, 1)], "raw": [b"0"], "share": [float("nan")]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    assert next(read_texts(tmp_path / "t.parquet")).metadata == {"day": "2024-02-01"}


@pytest.mark.parametrize(
    "value",
    [[{"id": "a", "text": "x", "n": 1}], {"items": [{"id": "a", "text": "x", "n": 1}], "count": 1}, {"id": "a", "text": "x", "n": 1}],
    ids=["list", "inner list", "object"],
)
def test_json(tmp_path: Path, value: object) -> None:
    (tmp_path / "t.json").write_text(json.dumps(value))
    assert list(read_texts(tmp_path / "t.json")) == [Text("a", "x", metadata={"n": 1})]


def test_rows_without_ids_are_named_after_their_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text\nx\n")
    (tmp_path / "u.txt").write_text("y\n")
    assert [text.id for name in ("t.csv", "u.txt") for text in read_corpus(tmp_path / name)] == ["t.csv#1", "u.txt#1"]
    (tmp_path / "u.txt").unlink()
    assert list(read_texts(tmp_path)) == [Text("t.csv#1", "x", metadata={"file": "t.csv"})]


def test_a_file_that_can_not_be_read_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.md").write_text("fine")
    (tmp_path / "b.md").write_bytes("Stra\xdfe".encode("latin-1"))
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 cut off")
    (tmp_path / "d.csv").write_text("x,y\n1,2\n")
    (tmp_path / "e.md").write_text("")
    assert [text.id for text in read_texts(tmp_path)] == ["a.md"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    for name, line in zip(
        ("b.md:1: expected UTF-8", "c.pdf: this .pdf file is damaged", "d.csv: expected a column", "e.md: there is no text"),
        said,
        strict=True,
    ):
        assert f"{tmp_path}/{name}" in line
    (tmp_path / "a.md").unlink()
    with pytest.raises(DataError, match=r"none of its 4 files can be read; the first: .*b\.md:1"):
        list(read_texts(tmp_path))


def test_empty_texts_are_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"_id": "a", "text": "x"}, {"_id": "b", "text": None}, {"_id": "c", "text": " "}, {"_id": "d", "title": "T", "text": ""}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [text.id for text in read_corpus(tmp_path / "t.jsonl")] == ["a", "d"]
    assert "t.jsonl: 2 of 4 texts are empty and are left out: b, c" in caplog.text
    assert [text.id for text in read_texts(tmp_path / "t.jsonl")] == ["a", "b", "c", "d"]  # a corpus with labels stays whole
    (tmp_path / "t.jsonl").write_text('{"_id": "a", "text": ""}\n')
    with pytest.raises(DataError, match="there are no texts in it"):
        list(read_corpus(tmp_path / "t.jsonl"))


def test_an_id_that_stands_twice_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\n1,a\n1,b\n")
    with pytest.raises(DataError, match=r"t\.csv: id '1' stands twice: .*--id-column"):
        list(read_corpus(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.jsonl", '{"_id": "a", "text": "x"}\n\n[1]\n', "t.jsonl:3: expected a JSON object, found '[1]'"),
        ("t.jsonl", '{"_id": "a", "words": "x"}\n', "found _id, words: choose one (--text-column)"),
        ("t.jsonl", '{"_id": "", "text": "x"}\n', "t.jsonl:1: column '_id' is empty"),
        ("t.jsonl", '{"_id": "a", "text": ["x"]}\n', "t.jsonl:1: column 'text' holds a list"),
        ("t.csv", "id,text\n1,a\n2,b,c\n", "t.csv:3: found 3 columns, the header has 2"),
        ("t.csv", 'id,text\n1,"a\n', "this is no CSV"),
        ("t.parquet", "no parquet", "damaged or cut off (10 bytes)"),
        ("t.doc", "x", "files and folders, this is .doc"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as error:
        list(read_texts(tmp_path / name))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_columns_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": "x"}) + "\n")
    with pytest.raises(DataError, match=r"expected a column 'title', found text: choose one \(--title-column\)"):
        list(read_texts(tmp_path / "t.jsonl", Columns(title="title")))
    (tmp_path / "t.txt").write_text("x\n")
    with pytest.raises(OptionError, match="columns can be named in"):
        read_texts(tmp_path / "t.txt", Columns(text="x"))


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder"):
        read_texts(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"there are no \.md, .* files"):
        list(read_texts(tmp_path))
