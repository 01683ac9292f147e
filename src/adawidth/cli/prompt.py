"""Answers as a person reads them, and the search prompt."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import AdaWidthError
from .output import say

if TYPE_CHECKING:
    from ..hits import Answer
    from ..model import Index

QUIT, HELP = ":quit", ":help"
COMMANDS = f"""\
Type what you look for, in words. Or:
  :k N           show N documents
  :filter TEXT   only documents that meet a filter, such as  lang = 'en' AND year >= 2020
  :filter        all documents again
  :hybrid        search by words as well as by meaning, and fuse both; again, by meaning alone
  {HELP}          this text
  {QUIT}          end (so does Ctrl-D)"""
SNIPPET = 160  # characters …
LONGEST = 20_000  # … of so many
INDENT = " " * 12


def show_answer(answer: Answer, encoder_width: int, query: str = "") -> None:
    """Title, snippet and score of each document, and the width that the query took."""
    for rank, found in enumerate(answer, 1):
        say(f"{rank:3}  {found.score:.3f}  {found.title or found.id}{f'  ({found.id})' if found.title else ''}")
        if found.text:
            say(_wrapped(snippet(found.text, query)))
    say(f"     read at a mean width of {answer.mean_width:.1f} of {encoder_width} coordinates")


def ask(index: Index, k: int, **options: Any) -> None:
    """Answers queries, one per line, until `:quit` or the end of the input."""
    say(f"{len(index):,} documents. Type a query, {HELP} or {QUIT}.")
    for line in _typed():
        try:
            if line.startswith(":"):
                k = _commanded(line, index, k, options)
                continue
            (answer,) = index.search(k=k, text=line, **options)
        except AdaWidthError as error:
            say(f"error: {error}")
        else:
            show_answer(answer, int(index.facts()["encoder_width"]), line)


def _commanded(line: str, index: Index, k: int, options: dict[str, Any]) -> int:
    """Does what a line with a colon asks for; returns how many documents to show from now on."""
    word, _, rest = line.partition(" ")
    if word == ":k" and rest.strip().isdecimal() and int(rest) > 0:
        return int(rest)
    if word == ":filter":
        where = rest.strip() or None
        if where is not None:
            index.store.where(where)  # refused now if it can't be read, or names a field that no document has
        options["where"] = where
    elif line == ":hybrid":
        options["hybrid"] = not options.get("hybrid")
        say(f"     by {'words and ' * options['hybrid']}meaning")
    else:
        say(COMMANDS if word == HELP else f"there is no {line}\n{COMMANDS}")
    return k


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


def snippet(text: str, query: str = "") -> str:
    """The part of a text that has most of the query's words, from the beginning of a sentence if it can be; without any, its beginning."""
    words = text[:LONGEST].split() or [""]
    asked = {_stem(word) for word in re.findall(r"\w+", query.casefold())}
    met = [asked & {_stem(part) for part in re.findall(r"\w+", word.casefold())} for word in words]

    def end(start: int) -> int:
        stop, size = start + 1, len(words[start])
        while stop < len(words) and size + 1 + len(words[stop]) <= SNIPPET:
            size, stop = size + 1 + len(words[stop]), stop + 1
        return stop

    def merit(start: int) -> tuple[int, bool, int]:
        here = met[start : end(start)]
        before = next((place for place, found in enumerate(here) if found), 0)
        # long words tell more
        return sum(map(len, set[str]().union(*here))), start == 0 or words[start - 1][-1] in ".!?", -before

    first = max(range(len(words)), key=merit) if any(met) and end(0) < len(words) else 0
    shown = " ".join(words[first : end(first)])[:SNIPPET]
    return f"{'… ' * (first > 0)}{shown}{' …' * (end(first) < len(words))}"


def _stem(word: str) -> str:
    """Enough of a word to know its plural again."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _wrapped(line: str) -> str:
    """Indented; on a terminal, broken between words."""
    if not sys.stdout.isatty():
        return INDENT + line
    width = max(40, shutil.get_terminal_size().columns - 1)
    return textwrap.fill(line, width, initial_indent=INDENT, subsequent_indent=INDENT)
