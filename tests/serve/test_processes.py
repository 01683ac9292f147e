"""Several processes at one folder: new commits, locks, kills, restarts, workers."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from adawidth import AdaWidth, open_index
from adawidth.index.store import lock
from adawidth.serve.run import Running
from small_service import AUTHORISED, FILL, THINGS, Process

COUNT = FILL + len(THINGS)


@pytest.fixture
def started(things: Path) -> Iterator[Callable[..., Process]]:
    with ExitStack() as stack:

        def start(*options: str) -> Process:
            process = Process(str(things), *options)
            stack.callback(process.running.wait)
            stack.callback(process.running.kill)
            return process

        yield start


def document(name: str) -> dict[str, Any]:
    return {"id": name, "text": f"The document {name} is new."}


def until(condition: Callable[[], bool], service: httpx.Client) -> bool:
    """Asks again and again, a bounded number of times."""
    return any(condition() or service.get("/readyz").is_error for _ in range(5_000))


def test_commits_of_other_processes_are_served_without_a_restart(serving: Callable[..., Running], things: Path) -> None:
    with httpx.Client(base_url=serving(reload_seconds=0.01, rate=0).url, headers=AUTHORISED) as http:
        with open_index(things) as other:
            other.add(texts=["A bicycle has two wheels and no motor."], ids=["bicycle"])
            assert http.get("/v1/documents/bicycle").status_code == 200  # at once: a miss looks again
            other.remove("lamp")
        assert until(lambda: http.get("/v1/index").json()["documents"] == COUNT, http)
        asked = {"text": "two wheels", "k": 3}
        assert http.post("/v1/search", json=asked).json()["results"][0]["hits"][0]["id"] == "bicycle"


def test_another_index_in_its_place_is_opened(things: Path, started: Callable[..., Process], tmp_path: Path) -> None:
    process = started("--rate", "0")
    with open_index(things) as index:
        rows = index.vectors(["lamp", "bread"]) @ index.model.rotation.matrix
        model: AdaWidth = index.model
    model.index(rows, tmp_path / "new.index", ids=["a", "b"]).close()
    shutil.move(things, tmp_path / "old.index")
    shutil.move(tmp_path / "new.index", things)
    assert until(lambda: process.http.get("/v1/index").json()["documents"] == 2, process.http)
    assert process.http.post("/v1/search", json={"vector": rows[0].tolist(), "k": 1}).json()["results"][0]["hits"][0]["id"] == "a"


def test_a_writer_waits_for_the_lock_and_then_says_busy(serving: Callable[..., Running], things: Path) -> None:
    with httpx.Client(base_url=serving(lock_seconds=0.05).url, headers=AUTHORISED) as http:
        with lock.held(things):
            refused = http.post("/v1/documents", json={"documents": [document("a")]})
            assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "busy", "1")
            assert http.post("/v1/search", json={"text": "rain"}).status_code == 200
        assert http.post("/v1/documents", json={"documents": [document("a")]}).json()["added"] == 1


def test_a_writer_that_waits_gets_its_turn(serving: Callable[..., Running], things: Path) -> None:
    with httpx.Client(base_url=serving(lock_seconds=60).url, headers=AUTHORISED, timeout=60) as http, ThreadPoolExecutor(1) as pool:
        with lock.held(things):
            waiting = pool.submit(http.post, "/v1/documents", json={"documents": [document("a")]})
            assert http.get("/healthz").status_code == 200
        assert waiting.result().json()["added"] == 1


@pytest.mark.slow
def test_a_killed_service_loses_no_answered_write(things: Path, started: Callable[..., Process]) -> None:
    process = started("--rate", "0")
    answered: list[str] = []
    enough = Event()

    def write(worker: int) -> None:
        with httpx.Client(base_url=process.url, headers=AUTHORISED, timeout=60) as http:
            for turn in range(1_000):
                name = f"w{worker}-{turn}"
                try:
                    if http.post("/v1/documents", json={"documents": [document(name)]}).status_code != 200:
                        return
                except httpx.HTTPError:
                    return
                answered.append(name)
                if len(answered) >= 12:
                    enough.set()

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, worker) for worker in range(4)]
        assert enough.wait(60)
        process.end(signal.SIGKILL)
        for one in running:
            one.result(timeout=60)
    with open_index(things) as index:
        assert [name for name in answered if name not in index] == []
        assert COUNT + len(answered) <= len(index) <= COUNT + len(answered) + 4  # one each may have been written and not answered
    again = started()
    assert again.http.post("/v1/documents:known", json={"ids": answered[:100]}).json()["known"] == [True] * len(answered[:100])


@pytest.mark.slow
def test_shutdown_finishes_what_is_running(started: Callable[..., Process]) -> None:
    process = started("--rate", "0", "--log-requests")
    with ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> int:
            with httpx.Client(base_url=process.url, headers=AUTHORISED, timeout=60) as http:
                try:
                    return http.post("/v1/search", json={"text": ["rain"] * 64, "k": 100}).status_code
                except (httpx.NetworkError, httpx.RemoteProtocolError):
                    return 0  # it had stopped listening, or had not begun to read this one; what it had begun is counted below

        first = pool.submit(ask, 0)
        assert first.result() == 200
        running = [pool.submit(ask, place) for place in range(8)]
        logged = process.end(signal.SIGTERM)
        answered = [one.result() for one in running]
    assert set(answered) <= {200, 0}
    assert process.running.returncode in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    statuses = [line["status"] for line in lines if "status" in line]
    assert set(statuses) == {200}
    assert len(statuses) == 2 + answered.count(200)  # what it began it finished, and what it finished arrived
    assert any("shutdown complete" in line["message"] for line in lines)


@pytest.mark.serve
def test_workers_share_one_folder(things: Path, started: Callable[..., Process]) -> None:
    process = started("--workers", "2", "--rate", "0")

    def write(name: str) -> tuple[int, bool]:
        """Each on a connection of its own, so that both workers get some; what one writes, the other knows at once."""
        with httpx.Client(base_url=process.url, headers=AUTHORISED, timeout=60) as http:
            status = http.post("/v1/documents", json={"documents": [document(name)]}).status_code
        with httpx.Client(base_url=process.url, headers=AUTHORISED, timeout=60) as http:
            return status, http.get(f"/v1/documents/{name}").status_code == 200

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(write, [f"n{i}" for i in range(24)])) == {(200, True)}
    with open_index(things) as index:
        assert len(index) == COUNT + 24
    counted = process.http.get("/metrics").text  # of both workers, added up
    (line,) = [one for one in counted.splitlines() if one.startswith('adawidth_requests_total{path="/v1/documents",status="200"}')]
    assert float(line.rsplit(" ", 1)[1]) == 24
