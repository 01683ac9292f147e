"""Documents over HTTP, and labels for refit."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, open_index
from adawidth.cli.app import app
from adawidth.serve.run import Running
from adawidth.training import refit
from small_service import FILL, THINGS

COUNT = FILL + len(THINGS)
BICYCLE = {"id": "toys/bicycle no. 1?", "title": "Bicycle", "text": "A bicycle has two wheels and no motor.", "metadata": {"wheels": 2}}


def test_a_document_is_added_found_changed_and_removed(http: httpx.Client, things: Path) -> None:
    assert http.post("/v1/documents", json={"documents": [BICYCLE]}).json() == {"added": 1, "replaced": 0, "documents": COUNT + 1}
    place = f"/v1/documents/{BICYCLE['id'].replace('/', '%2F').replace('?', '%3F')}"  # type: ignore[attr-defined]
    assert http.get(place).json() == BICYCLE
    asked = {"text": "riding on two wheels", "k": 1}
    assert http.post("/v1/search", json=asked).json()["results"][0]["hits"][0]["id"] == BICYCLE["id"]
    with open_index(things) as index:  # on disk when it was answered
        assert index.get(str(BICYCLE["id"])).title == "Bicycle"
    changed = {**BICYCLE, "text": "A bicycle has two wheels, and this one a motor."}
    assert http.post("/v1/documents", json={"documents": [changed]}).json()["replaced"] == 1
    unknown = http.post("/v1/search", json={"text": "rain", "filter": "colour = 'red'"})
    assert "things.index" in unknown.json()["detail"]
    assert str(things.parent) not in unknown.text  # where the folder lies is not told
    again = http.post("/v1/documents", json={"documents": [BICYCLE], "mode": "add"})
    assert (again.status_code, again.json()["code"]) == (409, "id_exists")
    assert http.get(place).json() == changed
    assert http.delete(place).json() == {"removed": 1, "documents": COUNT}
    for gone in (http.get(place), http.delete(place)):
        assert (gone.status_code, gone.json()["code"]) == (404, "document_not_found")
    assert BICYCLE["id"] not in [hit["id"] for hit in http.post("/v1/search", json={**asked, "k": 100}).json()["results"][0]["hits"]]


def test_several_are_fetched_listed_and_removed(http: httpx.Client) -> None:
    fetched = http.post("/v1/documents:fetch", json={"ids": ["lamp", "bread"], "vectors": True}).json()["documents"]
    assert [(one["id"], one["text"], len(one["vector"])) for one in fetched] == [(n, THINGS[n], 256) for n in ("lamp", "bread")]
    names = [one["id"] for at in (0, 500) for one in http.get("/v1/documents", params={"offset": at, "limit": 500}).json()["documents"]]
    assert len(names) == len(set(names)) == COUNT
    assert http.post("/v1/documents:known", json={"ids": ["lamp", "nothing"]}).json() == {"known": [True, False]}
    missing = http.post("/v1/documents:remove", json={"ids": ["lamp", "nothing"]})
    assert (missing.status_code, missing.json()["code"]) == (404, "document_not_found")
    assert http.post("/v1/documents:remove", json={"ids": ["lamp", "bread"]}).json()["removed"] == 2
    assert http.get("/v1/documents", params={"limit": 1}).json()["total"] == COUNT - 2


@pytest.mark.parametrize(
    ("documents", "code", "named"),
    [
        ([{"id": "a"}], "invalid_data", "neither a vector nor a text"),
        ([{"id": "a", "vector": [1.0] * 255}], "invalid_data", "255"),
        ([{"id": "a", "vector": [0.0] * 256}], "invalid_data", "documents"),
        ([{"text": "no id"}], "invalid_data", "ids"),
        ([{"id": "a", "text": "a"}, {"text": "b"}], "invalid_data", "2 of 3 documents have an id"),
        ([{"id": "a", "text": "a"}, {"id": "a", "text": "b"}], "invalid_data", "'a'"),
        ([{"id": "a", "text": "a", "metadata": {"x": "\ud800"}}], "invalid_data", "'a'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_can_not_be_written_is_refused_as_a_whole(http: httpx.Client, documents: Any, code: str, named: str) -> None:
    good = {"id": "good", "text": "This one alone could be written."}
    body = json.dumps({"documents": [good, *documents] if documents[0].get("id") else documents})
    response = http.post("/v1/documents", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert named in response.json()["detail"]
    assert http.get("/v1/documents/good").status_code == 404


def test_without_a_key_nothing_is_written(serving: Callable[..., Running], things: Path) -> None:
    with httpx.Client(base_url=serving(key=None).url) as http:
        assert http.get("/v1/index").json()["writable"] is False
        label = {"query": "rain", "document": "umbrella", "grade": 1}
        attempts = [
            http.post("/v1/documents", json={"documents": [BICYCLE]}), http.delete("/v1/documents/lamp"),
            http.post("/v1/documents:remove", json={"ids": ["lamp"]}), http.post("/v1/feedback", json=label),
        ]  # fmt: skip
        assert [(one.status_code, one.json()["code"]) for one in attempts] == [(403, "read_only")] * 4
        assert http.post("/v1/search", json={"text": "rain"}).status_code == 200
    assert not things.with_name("things.index.feedback.jsonl").exists()


def test_labels_are_kept_in_a_file(http: httpx.Client, things: Path) -> None:
    labels = [("rain", "umbrella", 1.0), ("rain", "lamp", 0.0), ([0.5] * 256, "bread", 2.0)]
    for place, (query, document, grade) in enumerate(labels, 1):
        asked = {"query": query, "document": document, "grade": grade}
        assert http.post("/v1/feedback", json=asked).json() == {"recorded": place}
    unknown = http.post("/v1/feedback", json={"query": "rain", "document": "nothing", "grade": 1})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "document_not_found")
    lines = [json.loads(line) for line in things.with_name("things.index.feedback.jsonl").read_text().splitlines()]
    assert [(line.get("query", line.get("vector")), line["document"], line["grade"]) for line in lines] == labels


def test_refit_takes_the_labels(http: httpx.Client, things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("adawidth"), "handlers", [])
    monkeypatch.setattr(refit, "RECIPES", tuple(replace(recipe, steps=5) for recipe in refit.RECIPES))
    for place in range(40):
        for query, document, grade in ((f"number {place} of the list", f"x{place}", 1), (f"number {place} of the list", "lamp", 0)):
            assert http.post("/v1/feedback", json={"query": query, "document": document, "grade": grade}).status_code == 200
    assert http.delete("/v1/documents/x39").status_code == 200
    labels, made = things.with_name("things.index.feedback.jsonl"), tmp_path / "two.model"
    command = ["refit", str(things / "model"), str(things), "--feedback", str(labels), "--out", str(made), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert "1 labels are of documents that are not in the index any more" in done.stderr
    (task,) = AdaWidth.load(made).tasks.values()
    assert task.record.train_queries + task.record.dev_queries == 40
    labels.write_text(labels.read_text() + "no label\n")
    refused = CliRunner().invoke(app, [*command, "--force"])
    assert (refused.exit_code, "line 81 is no label" in refused.stderr) == (1, True)


def test_answers_show_a_document_as_it_is_now(http: httpx.Client) -> None:
    """What was told of it before a write is not told again."""
    asked = {"text": "a canoe on the river", "k": 1}
    for title in ("Canoe", "Kayak"):
        document = {"id": "canoe", "text": "A canoe floats on the river.", "title": title, "metadata": {"name": title}}
        assert http.post("/v1/documents", json={"documents": [document]}).status_code == 200
        for _ in range(2):
            (hit,) = http.post("/v1/search", json=asked).json()["results"][0]["hits"]
            assert (hit["id"], hit["title"], hit["metadata"]) == ("canoe", title, {"name": title})
        assert http.post("/v1/search", json={**asked, "fields": ["text"]}).json()["results"][0]["hits"][0].keys() == {"id", "score", "text"}
