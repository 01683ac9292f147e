"""Labels that users give: one JSON object per line, appended and synced."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ..errors import OptionError
from ..types import Id


class Feedback:
    """A file of labels. Several processes may append to it: a line is written at once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._recorded = 0

    def add(self, query: str | list[float], document: Id, grade: float) -> int:
        """Appends a label; returns how many this process has appended."""
        if self._path is None:
            raise OptionError("an engine has no folder to keep labels beside: start the service with --feedback FILE")
        given = {"query": query} if isinstance(query, str) else {"vector": query}
        line = json.dumps({"time": round(time.time(), 3), **given, "document": str(document), "grade": grade}, ensure_ascii=False) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        self._recorded += 1
        return self._recorded
