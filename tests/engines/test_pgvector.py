"""What only PostgreSQL has: a write is one transaction, which searches in other threads do not see into."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from adawidth.data import Vectors
from adawidth.errors import DataError
from adawidth.formats.documents import Batch, Source, of_vectors
from adawidth.model.collections import connect, layout_of, push
from engine_places import START, WIDTH, Corpus

pytestmark = pytest.mark.engines


def test_other_threads_search_beside_a_write_and_see_it_once_it_is_committed(postgres: str, corpus: Corpus) -> None:
    layout = layout_of(corpus.model, widths=(START, 64))
    push(corpus.model, of_vectors(Vectors.of(corpus.documents[:30], corpus.ids[:30])), postgres, "beside", layout=layout)
    index = connect(postgres, "beside")
    parts = [of_vectors(Vectors.of(corpus.documents[rows], corpus.ids[rows])) for rows in (slice(30, 60), slice(60, 90))]
    seen: list[list[list[str | int]]] = []

    def batches() -> Iterator[Batch]:
        yield from parts[0].batches()
        with ThreadPoolExecutor(1) as other:
            seen.append(other.submit(lambda: index.search(corpus.documents[40], k=1).ids).result())
        yield from parts[1].batches()

    index.write(Source("two parts", 60, WIDTH, batches))
    assert seen
    assert seen[0] != [["doc-40"]]
    assert index.search(corpus.documents[40], k=1).ids == [["doc-40"]]


@pytest.mark.parametrize("known", [{"texts": ["a\0b"]}, {"titles": ["\0"]}, {"metadata": [{"a": "\0"}]}])
def test_what_postgresql_can_not_keep_is_refused_by_name(postgres: str, corpus: Corpus, known: dict[str, list[object]]) -> None:
    push(
        corpus.model,
        of_vectors(Vectors.of(corpus.documents[:1], ["x"])),
        postgres,
        "nul",
        layout=layout_of(corpus.model, widths=(START, 64)),
    )
    index = connect(postgres, "nul")
    with pytest.raises(DataError, match="'y' has a NUL character"):
        index.add(corpus.documents[1:2], ["y"], **known)  # type: ignore[arg-type]
    assert len(connect(postgres, "nul")) == 1
