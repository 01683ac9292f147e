"""Logs for machines: one JSON object per line, with names and numbers, never with the text of a query or a document."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

FIELDS = ("method", "path", "status", "seconds", "code", "client")


class Structured(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["error"] = f"{record.exc_info[0].__name__}: {record.exc_info[1]}"
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def to_stderr(requests: bool) -> None:
    """Sends the service's records there; every request's only with `requests`, else those that failed."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Structured())
    for name in ("adawidth", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").handlers = []
    logging.getLogger("uvicorn.error").propagate = True
    logging.getLogger("adawidth.serve").setLevel(logging.DEBUG if requests else logging.INFO)
