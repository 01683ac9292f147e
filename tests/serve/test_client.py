"""Clients: the contract of every index, over HTTP, and what only a service can say."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adawidth import AsyncClient, Client, Vectors, connect, open_index
from adawidth.errors import BusyError, DataError, EngineError, OptionError
from adawidth.formats.documents import of_vectors
from adawidth.index.store import lock
from adawidth.serve.run import Running
from small_service import FILL, KEY, THINGS

COUNT = FILL + len(THINGS)


@pytest.fixture
def client(serving: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("ADAWIDTH_API_KEY", KEY)
    opened = connect(serving(rate=0, lock_seconds=0.05).url)
    assert isinstance(opened, Client)
    return opened


def test_answers_are_those_of_the_index_behind(client: Client, things: Path) -> None:
    with open_index(things) as index, client:
        rows = index.vectors(list(index)) @ index.model.rotation.matrix  # more than a request takes
        for options in ({}, {"width": 64}, {"budget": 50.0}, {"offset": 3, "min_score": 0.2}, {"policy": "certify"}):
            mine, theirs = client.search(rows, k=7, **options), index.search(rows, k=7, **options)  # type: ignore[arg-type]
            assert mine.ids == theirs.ids
            np.testing.assert_allclose(mine.widths, theirs.widths)
            assert [hit.title for hit in mine[3]] == [hit.title for hit in theirs[3]]
        asked = ["something against rain", "where flour is used"]
        mine, theirs = client.search(text=asked, k=3), index.search(text=asked, k=3)
        assert [list(one) for one in mine] == [list(one) for one in theirs]
        assert [answer.query for answer in mine] == asked
        assert client.search(text=asked, k=3, hybrid=True).ids == index.search(text=asked, k=3, hybrid=True).ids
        named = Vectors.of(rows[:2], ["q1", "q2"])
        assert [answer.query for answer in client.search(named)] == ["q1", "q2"]
        assert client.documents(["lamp"]) == index.documents(["lamp"])
        assert list(client) == list(index)
        assert (len(client), client.width, client.takes_text, "lamp" in client, "nothing" in client) == (COUNT, 256, True, True, False)
        np.testing.assert_allclose(client.vectors(["lamp", "bread"]), index.vectors(["lamp", "bread"]))


def test_documents_are_written_through_a_client(client: Client, things: Path) -> None:
    with open_index(things) as index:
        held = index.vectors(list(index)) @ index.model.rotation.matrix
    rows = np.concatenate([held, held])[:600] + 0.01 * np.random.default_rng(0).standard_normal((600, 256)).astype(np.float32)
    written = client.add(rows, [f"r{i}" for i in range(600)], titles=[f"Row {i}" for i in range(600)])
    assert (written.added, written.replaced, written.documents) == (600, 0, COUNT + 600)
    assert client.update(texts=["A bicycle has two wheels."], ids=["r0"], metadata=[{"wheels": 2}]).replaced == 1
    assert client.search(text="riding on two wheels", k=1, where="wheels = 2")[0][0].id == "r0"
    assert client.write(of_vectors(Vectors.of(rows[:3], ["s1", "s2", "s3"])), update=True).added == 3
    assert client.remove([f"r{i}" for i in range(600)]) == 600
    assert client.remove("s1") == 1
    with open_index(things) as index:
        assert len(index) == COUNT + 2 == len(client)


def test_errors_are_those_of_an_index(client: Client, things: Path) -> None:
    for wrong, kind, named in (
        (lambda: client.get("nothing"), DataError, "nothing"),
        (lambda: client.remove(["lamp", "nothing"]), DataError, "1 of 2 ids"),
        (lambda: client.add(np.ones((1, 256)), ["lamp"]), DataError, "lamp"),
        (lambda: client.add(np.ones((1, 255)), ["new"]), DataError, "256"),
        (lambda: client.search(np.ones(255)), DataError, "256"),
        (lambda: client.search(np.full(256, np.nan)), DataError, "row 0"),
        (lambda: client.search(text="a", budget=500), OptionError, "500"),
        (lambda: client.search(text="a", where="x ="), OptionError, "filter"),
        (lambda: client.search(), OptionError, "either"),
        (lambda: client.add(), OptionError, "give vectors"),
        (lambda: client.add(texts=["a", "b"], ids=["one"]), DataError, "one"),
        (client.compact, OptionError, "adawidth compact"),
        (lambda: client.snapshot("copy"), OptionError, "adawidth snapshot"),
        (lambda: Client(client._connection.url, "another key").facts(), EngineError, "Authorization"),
        (lambda: Client("http://user:password@localhost"), OptionError, "ADAWIDTH_API_KEY"),
        (lambda: Client("ftp://localhost"), OptionError, "ftp"),
        (lambda: Client("http://127.0.0.1:9").facts(), EngineError, "is the service running"),
        (lambda: client.model, AttributeError, "model"),
    ):  # fmt: skip
        with pytest.raises(kind, match=named):
            wrong()
    with lock.held(things), pytest.raises(BusyError):
        client.remove("lamp")
    assert len(client) == COUNT


def test_the_same_verbs_awaited(serving: Callable[..., Running]) -> None:
    async def use() -> None:
        async with AsyncClient(serving(rate=0).url, KEY) as client:
            answers = await asyncio.gather(*(client.search(text=text, k=1) for text in THINGS.values()))
            assert [hits[0][0].id for hits in answers] == list(THINGS)
            assert (await client.add(texts=["A canoe floats."], ids=["canoe"])).added == 1
            assert (await client.update(texts=["A canoe floats well."], ids=["canoe"])).replaced == 1
            assert (await client.get("canoe")).text == "A canoe floats well."
            assert await client.contains("canoe")
            assert await client.remove(["canoe"]) == 1
            with pytest.raises(DataError, match="canoe"):
                await client.get("canoe")
            assert (await client.vectors(["lamp"])).shape == (1, 256)
            assert len(await client.documents()) == (await client.facts())["documents"] == COUNT

    asyncio.run(use())
