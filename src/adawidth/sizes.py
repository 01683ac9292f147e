"""Bytes in words: 2GB."""

from __future__ import annotations

import re
from contextlib import suppress

from .errors import OptionError

MOST = 2.0**63
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def in_words(count: float) -> str:
    """From 2,100,000,000: 2.1 GB."""
    unit, scale = next(((unit, scale) for unit, scale in reversed(UNITS.items()) if count >= scale), ("K", 1e3))
    return f"{count / max(scale, 1e3):.1f} {unit or 'K'}B"


def in_bytes(size: str | float) -> float:
    """From 2GB, 500 MB or 1.5e9."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e\+?[0-9]+)?)\s*([KMGT]?)i?B?\s*", str(size), re.IGNORECASE)
    with suppress(ValueError):
        if match and 0 < (found := float(match[1]) * UNITS[match[2].upper()]) < MOST:
            return found
    raise OptionError(f"memory {size!r} is no size: give one like 2GB or 500MB")
