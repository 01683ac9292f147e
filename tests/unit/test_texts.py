"""Texts in every kind of file, with the columns a user names, and what is wrong with a file said in one line."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from adawidth.errors import DataError, OptionError
from adawidth.formats import Columns, Text, read_texts, write_texts
from adawidth.formats.texts import PASSAGE

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
    assert list(read_texts(tmp_path / "t.csv", Columns("blurb", "name", "sku"))) == [Text("17", "bright", "Lamp")]
    assert list(read_texts(tmp_path / "t.csv")) == [Text("1", "no")]  # rows are numbered where there is no id


def test_plain_text_is_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("first\n\n  third \n")
    assert list(read_texts(tmp_path / "t.txt")) == [Text("1", "first"), Text("3", "third")]


def test_a_folder_is_cut_into_passages(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "no.md").write_text("hidden")
    (tmp_path / "a.txt").write_text("one\ntwo\n\nthree\n")
    (tmp_path / "b.py").write_text("not a text")
    long = [f"{word} " * 100 for word in ("alpha", "beta", "gamma")]  # 600, 500 and 600 characters
    (tmp_path / "sub" / "b.md").write_text("# The title\n\n" + "\n\n".join(long) + "\n\n## Further\n")
    found = list(read_texts(tmp_path))
    assert found[0] == Text("a.txt", "one two three", "a")
    assert [text.id for text in found[1:]] == ["sub/b.md#1", "sub/b.md#2", "sub/b.md#3"]
    assert {text.title for text in found[1:]} == {"The title"}
    assert all(len(text.text) <= PASSAGE for text in found)
    assert [word for text in found[1:] for word in text.text.split()] == [*" ".join(long).split(), "##", "Further"]


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
        ("t.docx", "x", "texts are read from .jsonl, .csv, .tsv, .parquet, .md, .txt files and folders, this is .docx"),
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
    with pytest.raises(DataError, match=r"no \.md or \.txt files"):
        list(read_texts(tmp_path))
