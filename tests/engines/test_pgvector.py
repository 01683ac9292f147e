"""What only PostgreSQL has: a write is one transaction, which searches in other threads do not see into."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from adawidth import AdaWidth
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


@pytest.mark.parametrize(("width", "storage"), [(1_536, "p"), (3_072, "e")])
def test_wide_vectors_lie_with_their_row_where_they_fit(postgres: str, width: int, storage: str) -> None:
    """Also beside a long id and text: what is too long of these is what moves out."""
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg: make test-engines installs it")
    rows = np.random.default_rng(0).standard_normal((3, width)).astype(np.float32)
    ids, name = ["x" * 500, "y", "z"], f"wide{width}"
    model = AdaWidth.fit(rows, recipe="identity")
    noise = [np.random.default_rng(i).bytes(9_000).hex() for i in range(3)]
    push(model, of_vectors(Vectors.of(rows, ids), texts=noise), postgres, name, layout=layout_of(model, widths=(64,)))
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT attstorage FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'v'", [name]).fetchone()
    assert found == (storage,)
    hits = connect(postgres, name).search(rows, k=1)
    assert hits.ids == [[one] for one in ids]
    assert [answer[0].text for answer in hits] == noise
