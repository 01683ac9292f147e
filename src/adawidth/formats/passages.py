"""Documents cut into passages: at headings first, then between paragraphs, then between sentences, and between words only where one
sentence is longer than a passage.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

from ..errors import OptionError

BETWEEN = " › "  # a document's title and a heading
SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]»”])\s+|(?<=[。！？])")  # where one ends and the next begins


@dataclass(frozen=True)
class Cut:
    """How long a passage may be, and how much it repeats of the one before, in characters."""

    passage: int = 1_000
    overlap: int = 0  # whole sentences, as many as fit

    def __post_init__(self) -> None:
        if self.passage < 1:
            raise OptionError(f"a passage of {self.passage} characters: give at least 1 (--passage)")
        if not 0 <= self.overlap < self.passage:
            raise OptionError(f"an overlap of {self.overlap} is not between 0 and the {self.passage} characters of a passage (--overlap)")


class Block(NamedTuple):
    """A paragraph; or, with `lines`, code, a list or a table, whose lines stay as they are."""

    text: str
    lines: bool = False


@dataclass(frozen=True)
class Section:
    """What stands below a heading; `metadata` is known of this part of the document alone, as a page's number."""

    heading: str
    blocks: Sequence[Block]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A document as its file has it."""

    sections: Sequence[Section]
    title: str = ""  # where the file says so
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Passage(NamedTuple):
    """A part of a document, with the title and the heading that it stands under."""

    title: str
    text: str
    metadata: Mapping[str, Any]


def passages(page: Page, name: str, cut: Cut) -> list[Passage]:
    """The passages of a document. Without a title of its own, it has that of its first heading, or of its file's name."""
    title = page.title or next((section.heading for section in page.sections if section.heading), "") or PurePath(name).stem
    return [
        Passage(title if section.heading in ("", title) else title + BETWEEN + section.heading, text, {**page.metadata, **section.metadata})
        for section in page.sections
        for text in packed(section.blocks, cut)
    ]


def packed(blocks: Sequence[Block], cut: Cut) -> Iterator[str]:
    """Blocks joined up to a passage's length. A block that fits into one passage is not torn."""
    filling = _Filling(cut)
    for block in blocks:
        pieces = _pieces(block, cut.passage)
        if _length(pieces) <= cut.passage and not filling.has_room(pieces):
            yield from filling.emptied()
        for piece in pieces:
            if not filling.has_room([piece]):
                yield from filling.emptied()
            filling.take(piece)
    yield from filling.emptied()


class _Piece(NamedTuple):
    """A sentence or a line, and what stands between it and the one before."""

    text: str
    space: str


class _Filling:
    """The passage that is being filled. It may begin with what it repeats of the one before."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self._repeated: list[_Piece] = []
        self._new: list[_Piece] = []

    def has_room(self, pieces: Sequence[_Piece]) -> bool:
        """Whether these fit; there is always room in an empty one."""
        return not self._new or _length([*self._repeated, *self._new, *pieces]) <= self._cut.passage

    def take(self, piece: _Piece) -> None:
        """Adds a piece. What is repeated makes room for it."""
        while not self._new and self._repeated and _length([*self._repeated, piece]) > self._cut.passage:
            self._repeated.pop(0)
        self._new.append(piece)

    def emptied(self) -> Iterator[str]:
        """The passage, if there is anything new in it; the next one begins with its last sentences."""
        if not self._new:
            return
        pieces = [*self._repeated, *self._new]
        yield pieces[0].text + "".join(piece.space + piece.text for piece in pieces[1:])
        first = len(pieces)
        while first and _length(pieces[first - 1 :]) <= self._cut.overlap:
            first -= 1
        self._repeated, self._new = pieces[first:], []


def _pieces(block: Block, longest: int) -> list[_Piece]:
    """A block's sentences or lines, none longer than a passage; the first begins a paragraph."""
    if block.lines:
        parts, space = [line.rstrip() for line in block.text.splitlines() if line.strip()], "\n"
    else:
        parts, space = SENTENCES.split(" ".join(block.text.split())), " "
    short = (piece for part in parts for piece in ([part] if len(part) <= longest else textwrap.wrap(part, longest)))
    return [_Piece(text, space if place else "\n\n") for place, text in enumerate(filter(str.strip, short))]


def _length(pieces: Sequence[_Piece]) -> int:
    return sum(len(piece.text) + len(piece.space) for piece in pieces) - (len(pieces[0].space) if pieces else 0)
