"""What is Qdrant's own: shards that bring their share, requests of bounded size, and folders with one owner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth.data import Document
from adawidth.engines.base import Row
from engine_places import Corpus, Place

pytestmark = pytest.mark.engines
engine = pytest.importorskip("adawidth.engines.qdrant", reason="needs qdrant-client: make test-engines installs it", exc_type=ImportError)
OPEN = "import sys; from adawidth import connect; connect(sys.argv[1], sys.argv[2])"


@pytest.mark.parametrize(("k", "shards", "wanted"), [(500, 1, 500), (100, 6, 100), (128, 2, 160), (500, 6, 625)])
def test_collections_of_several_shards_are_asked_for_more(k: int, shards: int, wanted: int) -> None:
    assert engine.asked(k, shards) == wanted


def test_shards_that_bring_their_share_bring_all_of_the_best() -> None:
    rng = np.random.default_rng(0)
    k, shards = 500, 4
    share = 1.2 * engine.asked(k, shards) / shards
    most = [np.bincount(rng.integers(0, shards, k)).max() for _ in range(2_000)]
    assert max(most) <= share


def test_requests_are_bounded_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "REQUEST", 10_000)
    rows = [Row(Document(str(n), text="x" * 500 * (n % 7)), np.ones(8, np.float32), np.ones(1, np.float32)) for n in range(40)]
    parts: list[list[Any]] = list(engine._requests(rows))
    assert [row for part in parts for row in part] == rows
    assert len(parts) > 1
    assert all(sum(4 * len(row.document.text) for row in part) <= 10_000 or len(part) == 1 for part in parts)


@pytest.mark.parametrize("scheme", ["qdrant", "qdrant-edge"])
def test_a_folder_that_another_process_has_open(scheme: str, tmp_path: Path, corpus: Corpus) -> None:
    pytest.importorskip("qdrant_edge", reason="needs qdrant-edge-py: make test-engines installs it")
    place = Place(scheme, tmp_path, f"{scheme}://{tmp_path / 'folder'}")
    index = place.made(corpus, slice(0, 5))
    done = subprocess.run([sys.executable, "-c", OPEN, str(place.url), place.collection], capture_output=True, text=True)
    assert done.returncode == 1
    assert "EngineError" in done.stderr.splitlines()[-1]
    index.close()
    again = subprocess.run([sys.executable, "-c", OPEN, str(place.url), place.collection], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
