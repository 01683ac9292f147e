"""Answers as a person reads them, and the search prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import AdaWidthError
from .output import say

if TYPE_CHECKING:
    from ..hits import Answer
    from ..model import Index

QUIT = ":quit"
SNIPPET = 160  # characters


def show_answer(answer: Answer, encoder_width: int) -> None:
    """Title, snippet and score of each document, and the width that the query took."""
    for rank, found in enumerate(answer, 1):
        say(f"{rank:3}  {found.score:.3f}  {found.title or found.id}{f'  ({found.id})' if found.title else ''}")
        if found.text:
            say(f"            {_snippet(found.text)}")
    say(f"     read at a mean width of {answer.mean_width:.1f} of {encoder_width} coordinates")


def ask(index: Index, k: int, **options: Any) -> None:
    """Answers queries, one per line, until `:quit` or the end of the input."""
    say(f"{len(index):,} documents. Type a query, or {QUIT}.")
    for query in _typed():
        try:
            (answer,) = index.search(k=k, text=query, **options)
        except AdaWidthError as error:
            say(f"error: {error}")
        else:
            show_answer(answer, int(index.facts()["encoder_width"]))


def _typed() -> Iterator[str]:
    if sys.stdin.isatty():
        import readline  # noqa: F401  for editing and history
    while True:
        try:
            line = input("search> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if line == QUIT:
            return
        if line:
            yield line


def _snippet(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= SNIPPET else plain[:SNIPPET].rsplit(" ", 1)[0] + " …"
