"""Documents that no index takes: refused before anything is written."""

from pathlib import Path
from typing import Any

import pytest

from adawidth.data import Document
from adawidth.errors import DataError
from adawidth.index import IndexFolder
from adawidth.index.store.commit import change
from small_index import DOCUMENTS

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document(None), r"no text \(None\)"),  # type: ignore[arg-type]
        (Document(b"x"), r"no text \(b'x'\)"),  # type: ignore[arg-type]
        (Document(""), "has an empty id"),
        (Document("x", metadata=[1]), "metadata must be a dictionary, not list"),  # type: ignore[arg-type]
        (Document("x", metadata=[]), "metadata must be a dictionary, not list"),  # type: ignore[arg-type]
        (Document("x", metadata=None), "metadata must be a dictionary, not NoneType"),  # type: ignore[arg-type]
        (Document("x", metadata={"a": float("nan")}), "must be plain text and JSON"),
        (Document("x", metadata={"a": b"x"}), "must be plain text and JSON"),
        (Document("x", metadata={"a": DEEP}), "must be plain text and JSON"),
        (Document("x", title=None), "must be plain text and JSON"),  # type: ignore[arg-type]
        (Document("\udcff"), "must be plain text and JSON"),
    ],
)
def test_a_document_that_is_refused(filled: Path, document: Document, message: str) -> None:
    with pytest.raises(DataError, match=message), change(filled) as changing:
        changing.insert([document])
    with IndexFolder(filled) as index:
        assert len(index) == DOCUMENTS
