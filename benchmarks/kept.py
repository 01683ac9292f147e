"""Parts of a long benchmark's result, kept as they come: a run that was stopped, or whose time was up, is taken up where it was left."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CODE = ("src/adawidth/index", "src/adawidth/stages", "src/adawidth/formats", "src/adawidth/artifact.py", "tests/faults", "benchmarks")


class Kept:
    """The parts, one line each in a file beside the result. Parts of other options, or of other code, are dropped."""

    def __init__(self, out: Path, options: Mapping[str, Any], script: str) -> None:
        self.path = out.with_suffix(".jsonl")
        text = self.path.read_text() if self.path.exists() else ""
        first, *lines = text.split("\n")[:-1] or [""]  # a line without its end was being written
        stamp = json.dumps({"options": options, "code": _code(script)})
        self.parts: list[Any] = [json.loads(line) for line in lines] if first == stamp else []
        if not self.parts:
            self.path.write_text(stamp + "\n")
        elif not text.endswith("\n"):
            self.path.write_text("\n".join([stamp, *lines, ""]))

    def add(self, part: Any) -> None:
        """One more part."""
        self.parts.append(part)
        with self.path.open("a") as file:
            file.write(json.dumps(part) + "\n")

    def end(self) -> None:
        """The result is whole: the next run begins anew."""
        self.path.unlink()


def summed(parts: Sequence[Any]) -> Any:
    """Counts, lists, and dictionaries of these, added up."""
    if not isinstance(parts[0], dict):
        return sum(parts[1:], parts[0])
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: summed([part[key] for part in parts if key in part]) for key in keys}


def _code(script: str) -> str:
    """Names what was run: the index, what it stands on, and what attacks it."""
    places = [ROOT / place for place in CODE]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*")) if file.suffix in (".py", ".c")]
    wanted = [file for file in files if file.parent.name != "benchmarks" or file.name == script]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(wanted))).hexdigest()[:16]
