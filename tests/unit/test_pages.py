"""Documents in files: titles, headings, front matter, and passages of a length."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adawidth.errors import DataError, OptionError
from adawidth.formats import Cut, Text, read_texts
from adawidth.formats.passages import Block, packed


def texts(path: Path, content: str | bytes, **cut: int) -> list[Text]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_texts(path, cut=Cut(**cut)))


def test_markdown_is_cut_at_its_headings(tmp_path: Path) -> None:
    source = """Before *any* heading.

# Lamps

A [lamp](https://example.org) gives
light.

## Care

- wipe it
- dry it

```sh
# no heading
wipe --dry
```

Wires
-----

| wire | colour |
|------|--------|
| live | brown  |
"""
    found = texts(tmp_path / "lamp.md", source)
    assert [(text.title, text.text) for text in found] == [
        ("Lamps", "Before any heading."),
        ("Lamps", "A lamp gives light."),
        ("Lamps › Care", "- wipe it\n- dry it\n\n# no heading\nwipe --dry"),
        ("Lamps › Wires", "| wire | colour |\n|------|--------|\n| live | brown  |"),
    ]


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: All about lamps\nyear: 2019\ntags: [a, b]\nday: 2024-02-01\nempty:\n---\n",
        '+++\ntitle = "All about lamps"\nyear = 2019\ntags = ["a", "b"]\nday = 2024-02-01\n+++\n',
    ],
    ids=["yaml", "toml"],
)
def test_front_matter_gives_title_and_metadata(tmp_path: Path, front: str) -> None:
    (found,) = texts(tmp_path / "lamp.md", f"{front}\n# Synopsis\n\nLight.\n")
    assert (found.title, found.text) == ("All about lamps › Synopsis", "Light.")
    assert found.metadata == {"file": "lamp.md", "year": 2019, "tags": ["a", "b"], "day": "2024-02-01"}


def test_front_matter_that_is_none(tmp_path: Path) -> None:
    assert texts(tmp_path / "a.md", "---\nnever closed: x\n\nText.")[0].title == "a"
    assert texts(tmp_path / "a.md", "---\na line\n---\n\nText.")[0].title == "a line"  # a heading between two rules
    with pytest.raises(DataError, match="with aliases"):
        texts(tmp_path / "a.md", "---\na: &x [1, 2]\nb: [*x, *x]\n---\n\nText.")
    with pytest.raises(DataError, match=r"a\.md: this \.md file is damaged"):
        texts(tmp_path / "a.md", "---\na: [1\n---\n\nText.")


def test_restructured_text(tmp_path: Path) -> None:
    source = """=====
Lamps
=====

.. _top:

A lamp gives
light.

Care
----

.. note:: Wipe it.

::

    wipe --dry
"""
    found = texts(tmp_path / "lamp.rst", source)
    assert [(text.title, text.text) for text in found] == [
        ("Lamps", "A lamp gives light."),
        ("Lamps › Care", "Wipe it.\n\n    wipe --dry"),
    ]


def test_html(tmp_path: Path) -> None:
    source = """<!DOCTYPE html><html><head><title>All &amp; lamps</title><style>p {}</style></head><body><nav>Home</nav>
<h1>Lamps</h1><p>A <b>lamp</b> gives<br>light.</p><script>alert(1)</script><ul><li>wipe<li>dry</ul><h2>Code</h2><pre>a
  b</pre></body>"""
    found = texts(tmp_path / "lamp.html", source)
    assert [(text.title, text.text) for text in found] == [
        ("All & lamps › Lamps", "A lamp gives light.\n\nwipe\n\ndry"),
        ("All & lamps › Code", "a\n  b"),
    ]


def test_word(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Lamps", 0)
    document.add_heading("Care", 1)
    document.add_paragraph("Wipe it.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "live", "brown"
    document.save(str(tmp_path / "lamp.docx"))
    (found,) = read_texts(tmp_path / "lamp.docx")
    assert (found.title, found.text) == ("Lamps › Care", "Wipe it.\n\nlive | brown")
    (tmp_path / "lamp.docx").write_bytes(b"PK no zip")
    with pytest.raises(DataError, match=r"lamp\.docx: this \.docx file is damaged"):
        list(read_texts(tmp_path / "lamp.docx"))


def pdf(*pages: str) -> bytes:
    """A PDF file with one line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET".encode() for page in pages]
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for place, stream in enumerate(streams):
        page = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * place} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects += [page.encode(), b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)]
    out, places = b"%PDF-1.4\n", []
    for number, value in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, value)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        size,
        rows,
        size,
        len(out),
    )


def test_pdf(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    found = texts(tmp_path / "lamp.pdf", pdf("A lamp gives light.", "Wipe it."))
    assert [(text.id, text.title, text.text, text.metadata["page"]) for text in found] == [
        ("lamp.pdf#1", "lamp", "A lamp gives light.", 1),
        ("lamp.pdf#2", "lamp", "Wipe it.", 2),
    ]


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("adawidth.errors.find_spec", lambda name: None)
    (tmp_path / "a.pdf").write_bytes(pdf("x"))
    (tmp_path / "b.txt").write_text("y")
    assert [text.id for text in read_texts(tmp_path)] == ["b.txt"]
    assert "a.pdf: this needs the package pypdf, which is not installed: pip install 'adawidth[documents]'" in caplog.text


def test_passages_end_between_sentences_and_repeat_some(tmp_path: Path) -> None:
    source = "One is here. Two is there! Is three? Yes. 四です。五です。"
    assert [text.text for text in texts(tmp_path / "a.md", source, passage=28)] == [
        "One is here. Two is there!",
        "Is three? Yes. 四です。 五です。",
    ]
    found = [text.text for text in texts(tmp_path / "a.md", source, passage=28, overlap=14)]
    assert found == ["One is here. Two is there!", "Two is there! Is three? Yes.", "Is three? Yes. 四です。 五です。"]
    with pytest.raises(OptionError, match="overlap of 28 is not between 0 and the 28"):
        Cut(28, 28)


WORDS = st.lists(st.text("ab .!?\n", max_size=40), max_size=8)


@given(WORDS, st.booleans(), st.integers(1, 30), st.data())
def test_no_word_is_lost_and_no_passage_is_too_long(blocks: list[str], lines: bool, passage: int, data: st.DataObject) -> None:
    cut = Cut(passage, data.draw(st.integers(0, passage - 1)))
    found = list(packed([Block(block, lines) for block in blocks], cut))
    assert all(len(text) <= passage and text.strip() for text in found)
    if not cut.overlap:
        assert "".join("".join(found).split()) == "".join("".join(blocks).split())
    kept = {word for text in found for word in text.split()}
    assert {word for block in blocks for word in block.split() if len(word) <= passage} <= kept
