"""POST /v1/search: what an index in this process answers, over HTTP, with how it came about."""

import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from adawidth import open_index
from adawidth.serve.run import Running
from small_service import FILL, KEY, THINGS

RAIN, FLOUR = "something against rain", "where flour is used"


def found(http: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    response = http.post("/v1/search", json=asked)
    assert response.status_code == 200, response.text
    return response.json()["results"]


def test_texts_and_vectors_get_the_answers_of_an_index(http: httpx.Client, things: Path) -> None:
    with open_index(things) as index:
        vectors = index.encoder.encode([RAIN, FLOUR], "query")
        wanted = index.search(vectors, k=5)
    packed = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
    for asked in ({"text": [RAIN, FLOUR]}, {"vector": vectors.tolist()}, {"vector": packed}):
        results = found(http, k=5, **asked)
        assert [[hit["id"] for hit in result["hits"]] for result in results] == wanted.ids
        np.testing.assert_allclose([[hit["score"] for hit in result["hits"]] for result in results], wanted.scores, atol=1e-6)
        assert [result["mean_width"] for result in results] == pytest.approx(wanted.widths.tolist())
    (one,) = found(http, text=RAIN, k=1)
    assert one["query"] == RAIN
    assert one["hits"][0] == {"id": "umbrella", "score": one["hits"][0]["score"], "title": "Umbrella", "text": THINGS["umbrella"]}
    assert found(http, vector=vectors[0].tolist(), k=1, fields=[])[0]["hits"][0].keys() == {"id", "score"}


@pytest.mark.parametrize(
    "options",
    [{}, {"budget": 48}, {"width": 64}, {"width": "full"}, {"policy": "certify"}, {"quality": 0.9, "offset": 2}, {"hybrid": True}],
    ids=str,
)
def test_an_explained_query_gets_the_same_answer_and_every_step(http: httpx.Client, options: dict[str, Any]) -> None:
    (plain,) = found(http, text=RAIN, **options)
    (told,) = found(http, text=RAIN, explain=True, **options)
    assert [hit["id"] for hit in told["hits"]] == [hit["id"] for hit in plain["hits"]]
    assert told["mean_width"] == pytest.approx(plain["mean_width"])
    way = told["explain"]
    assert way["documents"] == FILL + len(THINGS)
    assert way["curve"] == sorted(way["curve"], reverse=True)
    assert len(way["curve"]) == way["steps"][0]["candidates"] == 500
    for step, following in zip(way["steps"], way["steps"][1:], strict=False):
        assert following["width"] > step["width"]
        assert following["candidates"] == step["survivors"] <= step["candidates"]
        assert following["bytes"] > step["bytes"]
        assert following["coordinates"] - step["coordinates"] == step["survivors"] * (following["width"] - step["width"])
    assert way["steps"][0]["width"] == way["start_width"]
    assert way["steps"][-1]["width"] == way["end_width"]
    assert way["mean_width"] == pytest.approx(told["mean_width"])
    assert way["full_bytes"] == way["documents"] * way["full_width"] * 2  # float16
    assert way["seconds"].keys() == {"encode", "scan", "rescoring"}
    assert all(spent >= 0 for spent in way["seconds"].values())


def test_filters_of_both_kinds(http: httpx.Client) -> None:
    document = {"id": "canoe", "text": "A canoe floats on the river.", "metadata": {"kind": "boat", "seats": 2}}
    assert http.post("/v1/documents", json={"documents": [document]}).json()["added"] == 1
    for condition in ("kind = 'boat' AND seats >= 2", {"kind": "boat", "seats": 2}):
        (result,) = found(http, text=RAIN, filter=condition)
        assert [hit["id"] for hit in result["hits"]] == ["canoe"]
        assert result["hits"][0]["metadata"] == document["metadata"]


@pytest.mark.parametrize(
    ("asked", "status", "code", "named"),
    [
        ({}, 422, "invalid_option", "either text or vector"),
        ({"text": "a", "vector": [1.0]}, 422, "invalid_option", "either text or vector"),
        ({"text": " "}, 422, "invalid_data", "empty"),
        ({"text": "a", "k": 0}, 400, "invalid_request", "k"),
        ({"text": "a", "K": 3}, 400, "invalid_request", "K"),
        ({"text": "a", "k": 1_001}, 422, "invalid_option", "1000"),
        ({"text": "a", "shortlist": 10_001}, 422, "invalid_option", "10000"),
        ({"text": "a" * 20_001}, 422, "invalid_option", "20000"),
        ({"text": ["a"] * 257}, 422, "invalid_option", "256"),
        ({"text": ["a"] * 33, "explain": True}, 422, "invalid_option", "32"),
        ({"text": "a", "filter": "x = 1 " * 400}, 422, "invalid_option", "2000"),
        ({"text": "a", "filter": "x ="}, 422, "invalid_option", "the filter"),
        ({"text": "a", "budget": 20, "quality": 0.9}, 422, "invalid_option", "one of budget, quality and width"),
        ({"text": "a", "nprobe": 8}, 422, "invalid_option", "storage ivf"),
        ({"text": "a", "task": "none of ours"}, 422, "invalid_option", "none of ours"),
        ({"text": "a", "policy": "guess"}, 400, "invalid_request", "policy"),
        ({"vector": [0.5] * 255}, 422, "invalid_data", "255"),
        ({"vector": [0.0] * 256}, 422, "invalid_data", "row 0"),
        ({"vector": [[0.1] * 256, [0.1] * 3]}, 422, "invalid_data", "one length"),
        ({"vector": "AAAA"}, 422, "invalid_data", "1024"),
        ({"vector": [1e300] * 256}, 422, "invalid_data", "row 0"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_can_not_be_answered_is_a_problem_with_a_code(http: httpx.Client, asked: Any, status: int, code: str, named: str) -> None:
    response = http.post("/v1/search", json=asked)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert named in response.json()["detail"]
    assert response.json()["status"] == status


def test_many_at_once_get_their_own_answers_and_share_scans(serving: Callable[..., Running], things: Path) -> None:
    service = serving(rate=0)
    with open_index(things) as index:
        vectors = index.vectors([f"x{i}" for i in range(200)]) @ index.model.rotation.matrix
        wanted = [ids[0] for ids in index.search(vectors, k=1).ids]
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as http, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda vector: found(http, vector=vector, k=1, fields=[])[0]["hits"][0]["id"], vectors.tolist()))
        stats = http.get("/v1/stats").json()
    assert answers == wanted
    assert stats["queries"] == 200
    assert stats["batches"] <= 200


def test_the_index_describes_itself(http: httpx.Client) -> None:
    index = http.get("/v1/index").json()
    assert (index["name"], index["documents"], index["encoder"]) == ("things.index", FILL + len(THINGS), "wordllama")
    assert (index["encoder_width"], index["text"], index["writable"]) == (256, True, True)
    card = http.get("/v1/index/card").json()
    assert card["chosen"] == "pca"
    assert card["taper"][0]["points"][0]["mean_width"] >= index["start_width"]
    examples = http.get("/v1/index/examples", params={"count": 5}).json()["examples"]
    assert len(examples) == 5
    for example in examples:
        assert example["document"] in [hit["id"] for hit in found(http, text=example["text"], k=20)[0]["hits"]]
    width = http.get("/v1/width", params={"documents": 1e6, "k": 10}).json()
    assert (width["documents"], width["k"], width["full_width"]) == (1_000_000, 10, 256)
    assert (width["width"] is None) == (width["reason"] is not None)
    found(http, text=[RAIN, FLOUR], width=64)
    recent = http.get("/v1/stats", params={"last": 2}).json()["recent"]
    assert [(one["policy"], one["end_width"], one["mean_width"]) for one in recent] == [("fixed", 64, 64.0)] * 2
