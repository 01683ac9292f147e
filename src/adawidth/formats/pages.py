"""Documents in files, as sections of text: Markdown, reStructuredText, HTML, plain text, PDF and Word files.

Files may come from anywhere: what a library raises on one becomes an error of one line, and nothing in it is run or fetched.
"""

from __future__ import annotations

import logging
import re
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ..errors import DataError, need
from .files import PLAUSIBLE, RATIO, as_json, lines, told
from .passages import Block, Page, Section

BYTE_ORDER_MARK = "\ufeff"
FRONT = {"---": "yaml", "+++": "toml"}  # how front matter begins and ends
LONGEST_FRONT = 65_536  # characters
UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1+\s*")  # of a heading in reStructuredText
DIRECTIVE = re.compile(r"^\s*\.\. (?:[\w:-]+::|_[^:]*:.*)\s*")
LITERAL = re.compile(r"^\s*::\s*$|(?<=:):\s*$")  # announces an indented block
HIDDEN = {"script", "style", "template", "noscript", "svg", "nav", "head"}
INLINE = {"a", "abbr", "b", "cite", "code", "em", "i", "kbd", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "u", "var"}
HEADING = re.compile(r"h[1-6]")


class _Sections:
    """Sections as they are read: a heading begins the next one."""

    def __init__(self) -> None:
        self.found: list[Section] = []
        self._heading, self._blocks = "", list[Block]()

    def heading(self, text: str) -> None:
        self.end()
        self._heading = " ".join(text.split())

    def block(self, text: str, *, lines: bool = False) -> None:
        if text.strip():
            self._blocks.append(Block(text, lines))

    def end(self, **metadata: Any) -> list[Section]:
        """Ends a section; all that were found."""
        if self._blocks or self._heading:
            self.found.append(Section(self._heading, self._blocks, metadata))
        self._heading, self._blocks = "", []
        return self.found


def text_of(path: Path) -> str:
    """All of a UTF-8 file."""
    return "\n".join(line for _, line in lines(path)).removeprefix(BYTE_ORDER_MARK)


def _plain(path: Path) -> Page:
    return Page([Section("", [Block(part) for part in re.split(r"\n\s*\n", text_of(path)) if part.strip()])])


def _markdown(path: Path) -> Page:
    from markdown_it import MarkdownIt

    metadata, body = _front_matter(path, text_of(path))
    source, found = body.split("\n"), _Sections()
    with told(path):
        tokens = MarkdownIt("commonmark").enable("table").parse(body)
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        if token.type == "heading_open" and following is not None:
            found.heading(_inline(following))
        elif token.type == "paragraph_open" and following is not None:
            found.block(_inline(following))
        elif token.type == "html_block":
            for section in _html_sections(token.content):
                for block in section.blocks:
                    found.block(block.text, lines=block.lines)
        elif token.type in ("fence", "code_block"):
            found.block(token.content, lines=True)
        elif token.type != "hr":
            found.block("\n".join(source[token.map[0] : token.map[1]]), lines=True)
    return Page(found.end(), str(metadata.pop("title", "")), metadata)


def _inline(token: Any) -> str:
    """The words of a paragraph, without marks of emphasis and addresses of links."""
    return "".join(child.content or " " * (child.type in ("softbreak", "hardbreak")) for child in token.children or ())


def _front_matter(path: Path, text: str) -> tuple[dict[str, Any], str]:
    """What stands between two lines of --- (YAML) or +++ (TOML) at the beginning, and the rest."""
    first, _, rest = text.partition("\n")
    kind = FRONT.get(first.rstrip())
    found = re.search(rf"^{re.escape(first.rstrip())}\s*$", rest[:LONGEST_FRONT], re.MULTILINE) if kind else None
    if found is None:
        return {}, text
    front = rest[: found.start()]
    if kind == "yaml":
        need("yaml")
    with told(path):
        known = tomllib.loads(front) if kind == "toml" else _yaml(front)
    if known is not None and not isinstance(known, dict):  # a line between two rules
        return {}, text
    plain = {str(key): as_json(value) for key, value in (known or {}).items()}
    return {key: value for key, value in plain.items() if value is not None}, rest[found.end() :]


def _yaml(text: str) -> Any:
    """Plain values. Aliases are refused: a few lines of them can stand for any amount of data."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise DataError("front matter with aliases is not read: write the values out")
            return super().compose_node(parent, index)

    return yaml.load(text, Loader)


def _restructured(path: Path) -> Page:
    source, found, block = [*text_of(path).split("\n"), ""], _Sections(), list[str]()
    heading = re.compile(r"\S.*")
    place = 0
    while place < len(source):
        line, below = source[place], source[place + 1] if place + 1 < len(source) else ""
        under = UNDERLINE.fullmatch(below) if heading.fullmatch(line) and not UNDERLINE.fullmatch(line) else None
        if under and len(below.rstrip()) >= len(line.rstrip()) and not block:
            found.heading(line)
            place += 2
            continue
        line = "" if UNDERLINE.fullmatch(line) and len(line.rstrip()) > 3 else LITERAL.sub("", DIRECTIVE.sub("", line))
        if line.strip():
            block.append(line)
        elif block:
            found.block("\n".join(block), lines=block[0][0] in " \t-*+|")
            block = []
        place += 1
    return Page(found.end())


class _Html(HTMLParser):
    """Headings and blocks of text; what no one sees is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections, self.title = _Sections(), ""
        self._text, self._hidden, self._within = list[str](), list[str](), ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "title" and not self.title:
            self._flush()
            self._within = tag
        elif tag in HIDDEN:
            self._flush()
            self._hidden.append(tag)
        elif tag == "br":
            self._text.append("\n" if self._within == "pre" else " ")
        elif tag not in INLINE:
            self._flush()
            if tag == "pre" or HEADING.fullmatch(tag):
                self._within = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        if tag not in INLINE:
            self._flush()

    def handle_data(self, data: str) -> None:
        if not self._hidden or self._within == "title":
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._flush()

    def _flush(self) -> None:
        text, within = "".join(self._text), self._within
        self._text, self._within = [], ""
        if within == "title":
            self.title = " ".join(text.split())
        elif HEADING.fullmatch(within):
            self.sections.heading(text)
        else:
            self.sections.block(text, lines=within == "pre")


def _html_sections(text: str) -> list[Section]:
    parser = _Html()
    parser.feed(text)
    parser.close()
    return parser.sections.end()


def _html(path: Path) -> Page:
    parser = _Html()
    with told(path):
        parser.feed(text_of(path))
        parser.close()
    return Page(parser.sections.end(), parser.title)


def _pdf(path: Path) -> Page:
    need("pypdf")
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with told(path):
        reader = PdfReader(path)
        title = (reader.metadata.title if reader.metadata else None) or ""
        pages = [page.extract_text() for page in reader.pages]
    sections = [Section("", [Block(text)], {"page": number}) for number, text in enumerate(pages, 1) if text.strip()]
    return Page(sections, str(title).strip())


def _word(path: Path) -> Page:
    need("docx")
    from docx import Document
    from docx.table import Table

    with told(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > max(PLAUSIBLE, RATIO * path.stat().st_size):
            raise DataError(f"{path}: unpacks to {size} bytes: that is no text, write it again")
        document, found, title = Document(str(path)), _Sections(), ""
        for part in document.iter_inner_content():
            if isinstance(part, Table):
                found.block("\n".join(" | ".join(cell.text for cell in row.cells) for row in part.rows), lines=True)
                continue
            style = str(getattr(part.style, "name", "") or "")
            if style == "Title":
                title = title or part.text.strip()
            elif style.startswith("Heading"):
                found.heading(part.text)
            else:
                found.block(part.text)
        return Page(found.end(), title or (document.core_properties.title or "").strip())


PAGES: Mapping[str, Callable[[Path], Page]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _plain,
    ".rst": _restructured,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
    ".docx": _word,
}
