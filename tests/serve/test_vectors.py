"""Vectors to search with again, and what recent queries tell."""

import httpx
import numpy as np
import pytest

from small_service import THINGS


def vector_of(http: httpx.Client, **asked: object) -> list[float]:
    answer = http.post("/v1/vectors", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["vector"]


def test_the_vector_of_a_text_finds_what_the_text_finds(http: httpx.Client) -> None:
    by_text, by_vector = (
        http.post("/v1/search", json={**query, "k": 5}).json()["results"][0]["hits"]
        for query in ({"text": "light to read by"}, {"vector": vector_of(http, text="light to read by")})
    )
    assert [hit["id"] for hit in by_text] == [hit["id"] for hit in by_vector]
    assert np.allclose([hit["score"] for hit in by_text], [hit["score"] for hit in by_vector], atol=1e-5)


@pytest.mark.parametrize("name", THINGS)
def test_a_document_is_nearest_to_its_own_vector(http: httpx.Client, name: str) -> None:
    (hit,) = http.post("/v1/search", json={"vector": vector_of(http, document=name), "k": 1}).json()["results"][0]["hits"]
    assert hit["id"] == name
    assert hit["score"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"document": "nothing"}, 404, "document_not_found"),
        ({"document": "lamp", "text": "a lamp"}, 422, "invalid_option"),
        ({}, 422, "invalid_option"),
        ({"text": " "}, 422, "invalid_data"),
    ],
)
def test_what_has_no_vector_is_a_problem(http: httpx.Client, asked: dict, status: int, code: str) -> None:
    answer = http.post("/v1/vectors", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_recent_queries_tell_how_long_encoding_took_and_where_they_settled(http: httpx.Client) -> None:
    explained = http.post("/v1/search", json={"text": "rain", "explain": True}).json()["results"][0]["explain"]
    http.post("/v1/search", json={"vector": vector_of(http, document="lamp")})
    by_text, by_vector = http.get("/v1/stats").json()["recent"]
    assert by_text["seconds"]["encode"] == explained["seconds"]["encode"] > 0
    assert by_text["settled_width"] == explained["settled_width"]
    assert by_vector["seconds"]["encode"] == 0
    assert by_vector["settled_width"] is None
