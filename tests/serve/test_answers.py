"""How hits become JSON: what is kept of documents changes no answer, and stays small."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from adawidth.data import Document, Documents
from adawidth.hits import Hits
from adawidth.serve import answers
from adawidth.serve.answers import Renderer

FIELDS = ("title", "text")


class Counted(Documents):
    """Documents that count how often one is looked up."""

    def __init__(self, count: int, text: str = "") -> None:
        super().__init__([f"d{row}" for row in range(count)])
        self.looked_up: list[int] = []
        self._text = text

    def describe(self, rows: Iterable[int]) -> list[Document]:
        self.looked_up += (rows := list(rows))
        return [Document(f"d{row}", f"Title {row}", self._text) for row in rows]


def hits_of(documents: Documents, *rows: list[int]) -> Hits:
    found = np.array(rows)
    return Hits(found, np.full(found.shape, 0.5, np.float32), np.full(len(found), 40.0), documents)


def answered(renderer: Renderer, documents: Documents, *rows: list[int], fields: tuple[str, ...] = FIELDS) -> list[dict[str, Any]]:
    return [json.loads(b"{%b}" % members) for members in renderer.rendered(hits_of(documents, *rows), fields)]


def titles(renderer: Renderer, documents: Documents, *rows: list[int]) -> list[list[str]]:
    return [[hit["title"] for hit in answer["hits"]] for answer in answered(renderer, documents, *rows)]


def test_a_document_is_looked_up_once() -> None:
    renderer, documents = Renderer(), Counted(10)
    assert titles(renderer, documents, [3, 1, -1], [1, 2, 3]) == [["Title 3", "Title 1"], ["Title 1", "Title 2", "Title 3"]]
    assert titles(renderer, documents, [2, 9, 3]) == [["Title 2", "Title 9", "Title 3"]]
    assert documents.looked_up == [1, 2, 3, 9]
    assert answered(renderer, documents, [3, 4], fields=()) == [
        {"mean_width": 40.0, "hits": [{"id": f"d{i}", "score": 0.5} for i in (3, 4)]}
    ]
    assert titles(renderer, Counted(4, "of another commit"), [3]) == [["Title 3"]]


def test_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer, documents, long = Renderer(), Counted(10), Counted(10, "x" * 1_000)
    monkeypatch.setattr(answers, "KEPT", 100)  # bytes: three of the first documents, none of the long ones
    for rows in ([0, 1], [1, 2], [0, 3], [4, 5, 6, 7, 8]):
        assert titles(renderer, documents, rows) == [[f"Title {row}" for row in rows]]
        for kept in renderer._kept[1].values():
            assert kept.size == sum(map(len, kept.values())) <= 100
    for _ in range(2):
        assert titles(renderer, long, [1, 2]) == [["Title 1", "Title 2"]]
    assert long.looked_up == [1, 2, 1, 2]
