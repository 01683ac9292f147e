"""What is LanceDB's own: the IVF index above so many rows, and versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adawidth.errors import ArtifactError
from adawidth.model.collections import connect
from engine_places import START, WIDTH, Corpus, Place

pytestmark = pytest.mark.engines
engine = pytest.importorskip("adawidth.engines.lancedb", reason="needs lancedb: make test-engines installs it", exc_type=ImportError)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("lancedb", tmp_path, f"lancedb://{tmp_path / 'lake'}")


def test_many_rows_are_found_by_an_index_that_new_ones_join(place: Place, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "INDEXED", 300)
    monkeypatch.setattr(engine, "PARTITION", 100)
    index = place.made(corpus, slice(0, 400))
    store: Any = index.store
    assert store.facts()["indexed"] == ["id", "prefix"]
    assert index.search(corpus.documents[350], k=1).ids == [["doc-350"]]
    index.add(corpus.documents[400:410], corpus.ids[400:410])
    assert index.search(corpus.documents[405], k=1, start=START, width=WIDTH).ids == [["doc-405"]]
    place.made(corpus)
    assert place.again().search(corpus.documents[599], k=1).ids == [["doc-599"]]


def test_few_rows_are_scanned(place: Place, corpus: Corpus) -> None:
    store: Any = place.made(corpus, slice(0, 50)).store
    assert store.facts()["indexed"] == ["id"]


def test_every_write_is_a_version(place: Place, corpus: Corpus) -> None:
    index = place.made(corpus, slice(0, 50))
    store: Any = index.store
    before = store.facts()["table_version"]
    index.remove("doc-3")
    assert store.facts()["table_version"] == before + 1


def test_looking_for_a_collection_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="adawidth push"):
        connect(f"lancedb://{tmp_path / 'none'}")
    assert not (tmp_path / "none").exists()
