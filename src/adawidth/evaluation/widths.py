"""Widths as a user names them: numbers, "full", and "auto" where a policy chooses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import OptionError

Width = int | str  # a number, "full" or "auto"; results also have "frozen"

FULL, AUTO, FROZEN = "full", "auto", "frozen"


def parse_widths(text: str) -> tuple[Width, ...]:
    """Widths with commas or spaces between them: "32,64,full"."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"[\s,]+", text.strip(" ,")))


def usable_widths(
    asked: Sequence[Width] | None, default: Sequence[Width], encoder_width: int, words: Sequence[str] = (FULL,)
) -> tuple[Width, ...]:
    """The widths asked for, each once, or the default ones that the encoder has. One above the encoder width is an error when asked for."""
    if asked is None:
        return tuple(m for m in default if isinstance(m, str) or m < encoder_width)
    for m in asked:
        if isinstance(m, str):
            if m not in words:
                raise OptionError(f"there is no width {m!r}; a width is a number{''.join(f' or {word}' for word in words)}")
        elif not 1 <= m <= encoder_width:
            raise OptionError(f"width {m} is not between 1 and the encoder width {encoder_width}")
    return tuple(dict.fromkeys(asked))


def in_numbers(width: Width, encoder_width: int) -> int:
    """A fixed width as a number: "full" and "frozen" are the encoder width."""
    return encoder_width if isinstance(width, str) else width
