"""What only Milvus has: filters by facets, widths without a field of their own, partitions, limits; on milvus-lite and on the server."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth import Index
from adawidth.data import Vectors
from adawidth.errors import AdaWidthError, DataError, EngineError, OptionError
from adawidth.filters import parse
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push
from engine_places import START, WIDTH, Corpus, Place
from engines.conftest import ENGINES

pytestmark = pytest.mark.engines
METADATA: list[Mapping[str, Any]] = [
    *(
        {"a": value}
        for value in (2003, 2003.0, 2003.5, "2003", True, False, None, [2003], {"b": 2003}, 0, 1, -1.5e300, "", "ü", "z'\"\\\n", "\0")
    ),
    {},
    {"b": 1},
    {"a.b": 1, "a~/b:c": "x", "": 2, "ü'\"": 3},
    {"a": {"b": {"c": "deep"}}},
]
CONDITIONS: list[Any] = [
    "a = 2003",
    "a != 2003",
    "a = 2003.5 OR a = '2003'",
    "NOT a IN (2003, 2003.5, 'ü', true)",
    "a = true",
    "a = 1",
    "a IS NULL",
    "a IS NOT NULL",
    "a < 1",
    "NOT a < 1",
    "a >= 'u'",
    "NOT (a >= 'u' AND a IS NOT NULL)",
    "a > 2003.2",
    "a < -1e299",
    "a.b = 2003",
    "NOT a.b IS NULL",
    "a.b.c = 'deep'",
    '"a.b" = 1',
    "\"a~/b:c\" >= 'x'",
    "NOT (a = 2003 OR NOT b IS NULL)",
    {"ü'": 3},
    {"a": "z'\"\\\n"},
    {"a": []},
    {},
]


@pytest.fixture(params=["milvus-lite", "milvus-server"])
def milvus(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path, ENGINES[request.param](request, tmp_path))


def test_filters_mean_the_same_as_in_memory(milvus: Place, corpus: Corpus) -> None:
    index = milvus.made(corpus, slice(0, 5))
    index.remove(corpus.ids[:5])
    ids = [f"m{row}" for row in range(len(METADATA))]
    index.add(corpus.documents[: len(ids)], ids, metadata=METADATA)
    for condition in CONDITIONS:
        wanted = parse(condition)
        met = {name for name, metadata in zip(ids, METADATA, strict=True) if wanted.matches(metadata)}
        assert set(index.search(corpus.queries[0], k=100, where=condition).ids[0]) == met, condition
    assert [one.metadata for one in index.documents(ids)] == METADATA


def pushed(place: Place, corpus: Corpus, widths: tuple[int, ...]) -> Index:
    assert place.url is not None
    documents = of_vectors(Vectors.of(corpus.documents, corpus.ids))
    push(corpus.model, documents, place.url, place.collection, layout=layout_of(corpus.model, widths=widths))
    return connect(place.url, place.collection)


def test_every_width_is_scored_whether_it_has_a_field_or_not(milvus: Place, corpus: Corpus) -> None:
    widths = (START, 40, 48, 64, 80)
    from adawidth.engines.milvus import TOGETHER

    engine = pushed(milvus, corpus, widths).store.engine
    names = [corpus.ids[:3], [], [*corpus.ids[5:600], "gone"]]
    for width, times in product((*widths, WIDTH), (1, TOGETHER)):  # scored there, and here
        queries = corpus.model.rotate_queries(corpus.queries[:3], width)
        exact = queries @ corpus.model.rotate(corpus.documents, width).T
        found = engine.scores(np.tile(queries, (times, 1)), names * times)
        for first in range(0, len(found), 3):
            np.testing.assert_allclose(found[first], exact[0, :3], atol=1e-4)
            assert len(found[first + 1]) == 0
            np.testing.assert_allclose(found[first + 2][:-1], exact[2, 5:600], atol=1e-4)
            assert np.isnan(found[first + 2][-1])
    assert len(engine.facts()["vectors"]) == (4 if milvus.name == "milvus-lite" else 2)


def test_a_partition_has_its_own_documents(milvus: Place, corpus: Corpus) -> None:
    milvus.made(corpus, slice(0, 20))
    there = f"{milvus.url}?partition=other&consistency=strong"
    if milvus.name == "milvus-lite":
        with pytest.raises(OptionError, match="no partitions"):
            connect(there, milvus.collection)
        return
    other = connect(there, milvus.collection)
    assert len(other) == 0
    other.add(corpus.documents[20:30], corpus.ids[20:30])
    assert sorted(connect(there, milvus.collection)) == sorted(corpus.ids[20:30])
    assert set(other.search(corpus.queries[0], k=100).ids[0]) == set(corpus.ids[20:30])
    other.remove("doc-20")
    assert len(milvus.again()) == 29


def test_documents_that_it_can_not_keep_are_named(milvus: Place, corpus: Corpus) -> None:
    index = milvus.made(corpus, slice(0, 3))
    for known, message in (
        ({"texts": ["x" * 70_000]}, "'new'.* 70000 bytes"),
        ({"metadata": [{"a": "x" * 40_000}]}, "'new'.* for filters"),
        ({"metadata": [{"a": {"b": 2**70}}]}, r"'new'.*a\.b.* 71 bits"),
    ):
        with pytest.raises(DataError, match=message):
            index.add(corpus.documents[:1], ["new"], **known)
    assert len(milvus.again()) == 3


def test_a_collection_of_others_is_left_alone(milvus: Place, corpus: Corpus) -> None:
    index = milvus.made(corpus, slice(0, 3))
    client, name = index.store.engine._client, f"{milvus.collection}_own"
    client.create_collection(name, dimension=4)
    documents = of_vectors(Vectors.of(corpus.documents[:1], ["a"]))
    with pytest.raises(EngineError, match="did not make it"):
        push(corpus.model, documents, milvus.url, name, force=True)
    assert client.has_collection(name)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("milvus:///folder/documents", r"ends in \.db"),
        ("milvus+http://user:s3cret@host:1?consistency=never", "strong|bounded"),
        ("milvus+http://user:s3cret@host:1?colour=red", "partition"),
    ],
)
def test_addresses_that_say_too_much_or_too_little(url: str, message: str) -> None:
    pytest.importorskip("pymilvus", reason="needs pymilvus: make test-engines installs it")
    with pytest.raises(OptionError, match=message) as caught:
        connect(url)
    assert "s3cret" not in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite", reason="needs milvus-lite: make test-engines installs it")
    with pytest.raises(AdaWidthError, match="nowhere"):
        connect(f"milvus://{tmp_path}/nowhere/file.db")
