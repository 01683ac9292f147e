"""`adawidth serve --engine URL`: a collection in an engine behind the service, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from adawidth import Client
from adawidth.data.vectors import unit
from engine_places import START, WIDTH, Corpus, Place
from small_service import KEY, Process

# one engine in a folder and one behind a socket: the service knows only the contract of all
pytestmark = [pytest.mark.engines, pytest.mark.parametrize("place", ["lancedb", "pgvector"], indirect=True)]
HELD = 400  # documents at first


@pytest.fixture
def served(place: Place, corpus: Corpus) -> Iterator[Process]:
    place.made(corpus, slice(0, HELD)).close()
    assert place.url is not None
    process = Process("--engine", place.url, "--collection", place.collection)
    yield process
    process.running.kill()
    process.running.communicate()


def test_the_service_answers_as_the_engine_does(served: Process, place: Place, corpus: Corpus) -> None:
    with place.again() as direct:
        wanted = direct.search(corpus.queries[:20], k=5)
        narrowed = direct.search(corpus.queries[0], k=5, where={"lang": "en"}).ids
    client = Client(served.url, KEY)
    found = client.search(corpus.queries[:20], k=5)
    assert found.ids == wanted.ids
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-5)
    assert client.search(corpus.queries[0], k=5, where={"lang": "en"}).ids == narrowed
    asked = {"vector": corpus.queries[0].tolist(), "k": 5, "explain": True}
    (told,) = answered(served.http.post("/v1/search", json=asked))["results"]
    assert [hit["id"] for hit in told["hits"]] == wanted.ids[0]
    assert told["explain"]["documents"] == HELD
    assert told["explain"]["steps"][0]["width"] >= START


def test_what_is_written_through_the_service_is_in_the_engine(served: Process, place: Place, corpus: Corpus) -> None:
    new = {"id": "new", "title": "New", "text": "A new one.", "vector": corpus.documents[HELD].tolist(), "metadata": {"lang": "en"}}
    assert answered(served.http.post("/v1/documents", json={"documents": [new]})) == {"added": 1, "replaced": 0, "documents": HELD + 1}
    with place.again() as direct:
        assert direct.get("new").title == "New"
    assert Client(served.url, KEY).search(corpus.documents[HELD], k=1).ids == [["new"]]
    assert answered(served.http.delete("/v1/documents/new"))["removed"] == 1
    assert served.http.get("/v1/documents/new").status_code == 404
    with place.again() as direct:
        assert "new" not in direct


def test_what_the_page_asks_for_is_there(served: Process, place: Place, corpus: Corpus) -> None:
    index = answered(served.http.get("/v1/index"))
    assert (index["documents"], index["width"], index["encoder_width"]) == (HELD, WIDTH, WIDTH)
    assert (index["numbered"], index["hybrid"], index["writable"]) == (False, False, True)
    assert set(index["fields"]) == set(corpus.metadata[1])
    for path in ("/v1/index/card", "/v1/index/examples?count=4", "/v1/documents?limit=1&offset=7", "/v1/stats"):
        answered(served.http.get(path))
    vector = answered(served.http.post("/v1/vectors", json={"document": "doc-7"}))["vector"]
    np.testing.assert_allclose(vector, unit(corpus.documents[7]), atol=2e-3)
    assert f"adawidth_documents {HELD}" in served.http.get("/metrics").text


def answered(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found
