"""What a service is told when it starts: where it listens, who may ask, and how much at once."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import OptionError

KEY = "ADAWIDTH_API_KEY"  # environment variable
LARGEST_BATCH = 256
SHORTEST_KEY = 16  # characters


@dataclass(frozen=True)
class Settings:
    """How an index is served. The defaults are safe: this machine only, and nobody writes without a key."""

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    threads: int = 1  # scans at a time in each worker
    key: str | None = field(default=None, repr=False)
    feedback: str | None = None  # file that labels are added to
    log_requests: bool = False  # each of them, not only those that fail
    rate: float = 1_000.0  # requests per second of one client; 0: any number
    largest_body: int = 16_000_000  # bytes
    largest_batch: int = LARGEST_BATCH  # queries, documents or texts in a request
    largest_k: int = 1_000
    largest_shortlist: int = 10_000
    longest_filter: int = 2_000  # characters
    longest_text: int = 20_000  # characters
    body_seconds: float = 10.0  # that a client may take to send a request
    lock_seconds: float = 5.0  # that a write waits for another process
    reload_seconds: float = 0.25  # between two looks for a new commit
    drain_seconds: int = 30  # that running requests get at shutdown

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < SHORTEST_KEY:
            raise OptionError(f"the API key has {len(self.key)} characters: give it {SHORTEST_KEY} or more, as `openssl rand -hex 24` does")
        if self.key is None and not is_loopback(self.host):
            raise OptionError(f"{self.host} can be reached from other machines, and there is no API key: set {KEY}, or give --api-key-file")

    def to_json(self) -> dict[str, Any]:
        """All but the key, for worker processes, which find the key where this process did."""
        return {name: value for name, value in asdict(self).items() if name != "key"}

    def with_key(self, key: str | None) -> Settings:
        """The same with a key."""
        return replace(self, key=key)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_key(file: Path | None) -> str | None:
    """The API key from a file, else from the environment; None where there is neither."""
    if file is None:
        return os.environ.get(KEY) or None
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise OptionError(f"{file}: the API key can't be read ({error}): give a file with one line") from None
    if not key or len(key.split()) != 1:
        raise OptionError(f"{file}: holds {len(key.split())} words: give a file with the API key and nothing else")
    return key
