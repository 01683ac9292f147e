"""Safe by default: who may ask, how much, and what every answer carries."""

import json
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

from adawidth.cli.app import app
from adawidth.errors import OptionError
from adawidth.serve import protocol
from adawidth.serve.logs import Structured
from adawidth.serve.run import Running
from adawidth.serve.settings import Settings, read_key
from small_service import KEY, THINGS

OPEN = ("/", "/app.js", "/style.css", "/healthz", "/readyz", "/openapi.json")


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer", f"Bearer {KEY[:-1]}"])
def test_a_key_is_needed_everywhere_but_on_the_page(serving: Callable[..., Running], given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    with httpx.Client(base_url=serving().url, headers=headers) as http:
        for path in ("/v1/index", "/v1/stats", "/v1/documents/lamp", "/metrics", "/v1/nowhere"):
            refused = http.get(path)
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
            assert refused.headers["www-authenticate"] == "Bearer"
        assert http.delete("/v1/documents/lamp").status_code == 401
        assert [http.get(path).status_code for path in OPEN] == [200] * len(OPEN)


def test_every_answer_carries_the_headers(http: httpx.Client) -> None:
    for path in (*OPEN, "/v1/index", "/nowhere"):
        headers = http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert not [name for name in headers if name.startswith("access-control-")]


def test_other_sites_are_not_answered(serving: Callable[..., Running]) -> None:
    """A page of another site can't read answers (no CORS), nor reach a service without a key under a name of its own."""
    with httpx.Client(base_url=serving(key=None).url) as http:
        assert http.get("/v1/index", headers={"Host": "localhost:8080"}).status_code == 200
        assert http.get("/v1/index", headers={"Host": "[::1]:8080"}).status_code == 200
        for name in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
            refused = http.get("/v1/index", headers={"Host": name})
            assert (refused.status_code, refused.json()["code"]) == (421, "host_refused")
        asked = http.options("/v1/search", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
        assert asked.status_code == 405
        plain = http.post("/v1/search", content=json.dumps({"text": "rain"}), headers={"content-type": "text/plain"})
        assert plain.status_code in (400, 415)


def test_bodies_are_bounded_in_size(serving: Callable[..., Running]) -> None:
    with httpx.Client(base_url=serving(largest_body=1_000).url, headers={"Authorization": f"Bearer {KEY}"}) as http:
        told = http.post("/v1/search", json={"text": "a" * 2_000})

        def dripped() -> Iterator[bytes]:
            for _ in range(20):
                yield b'{"text": "' + b"a" * 100

        untold = http.post("/v1/search", content=dripped(), headers={"content-type": "application/json"})
        for refused in (told, untold):
            assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
            assert "1000" in refused.json()["detail"]


def test_a_slow_client_is_let_go_and_holds_nobody_up(serving: Callable[..., Running]) -> None:
    service = serving(body_seconds=0.2)
    host, port = service.url.removeprefix("http://").split(":")
    lines = [
        "POST /v1/search HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {KEY}",
        "Content-Type: application/json",
        "Content-Length: 99",
    ]
    head = "\r\n".join([*lines, "", ""])
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    for connection in slow:
        connection.sendall(head.encode() + b'{"te')
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {KEY}"}) as http:
        assert http.post("/v1/search", json={"text": "rain"}).status_code == 200
    for connection in slow:
        connection.settimeout(30)
        assert connection.recv(4_096).startswith(b"HTTP/1.1 408")
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_head_that_never_ends_is_let_go(serving: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Nothing at all, or a head that is never finished: on a new connection, and after a request that was answered."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    service = serving()
    where = urlsplit(service.url)
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for first in (b"", whole) if sent else (b"",):
        with socket.create_connection((where.hostname, where.port), timeout=60) as slow:
            if first:
                slow.sendall(first)
                assert b'"ok"' in read_until(slow, b"}")
            slow.sendall(sent)
            told = read_until(slow)
        assert told.startswith(b"HTTP/1.1 408 ")
        assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "request_timeout"


def test_heads_are_bounded_in_size(serving: Callable[..., Running]) -> None:
    where = urlsplit(serving().url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as large:
        large.sendall(b"GET /healthz HTTP/1.1\r\nX-More: ".ljust(protocol.LARGEST_HEAD + 1, b"x"))
        assert read_until(large).startswith(b"HTTP/1.1 431 ")


def read_until(connection: socket.socket, end: bytes | None = None) -> bytes:
    """What arrives, up to these bytes or until the other side closes."""
    read = b""
    while end is None or not read.endswith(end):
        if not (part := connection.recv(65_536)):
            break
        read += part
    return read


def test_rates_are_bounded_per_client(serving: Callable[..., Running]) -> None:
    with httpx.Client(base_url=serving(rate=5).url) as http:
        answers = [http.get("/healthz") for _ in range(200)]
    refused = [one for one in answers if one.status_code == 429]
    assert answers[0].status_code == 200
    assert refused
    assert refused[0].json()["code"] == "rate_limited"
    assert refused[0].headers["retry-after"] == "1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_other_addresses_need_a_key(host: str) -> None:
    with pytest.raises(OptionError, match="ADAWIDTH_API_KEY"):
        Settings(host=host)
    assert Settings(host=host, key=KEY).host == host
    assert KEY not in repr(Settings(host=host, key=KEY))


def test_keys_are_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADAWIDTH_API_KEY", raising=False)
    assert read_key(None) is None
    monkeypatch.setenv("ADAWIDTH_API_KEY", KEY)
    assert read_key(None) == KEY
    (tmp_path / "key").write_text("0123456789abcdef\n")
    assert read_key(tmp_path / "key") == "0123456789abcdef"
    (tmp_path / "two").write_text("two words\n")
    for wrong in ("two", "nothing"):
        with pytest.raises(OptionError, match=wrong):
            read_key(tmp_path / wrong)
    with pytest.raises(OptionError, match="5 characters"):
        Settings(key="short")


def test_the_command_refuses_before_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADAWIDTH_API_KEY", raising=False)
    monkeypatch.setattr(logging.getLogger("adawidth"), "handlers", [])  # put back what the command replaces
    for arguments, named in ((["nothing.index"], "nothing.index"), ([], "either"), (["x", "--host", "0.0.0.0"], "ADAWIDTH_API_KEY")):
        done = CliRunner().invoke(app, ["serve", *arguments])
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.stderr
        assert named in done.stderr


def test_metrics_count_what_was_read(http: httpx.Client) -> None:
    assert http.post("/v1/search", json={"text": ["rain", "flour"], "budget": 60}).status_code == 200
    assert http.post("/v1/search", json={"text": "rain", "width": 128, "explain": True}).status_code == 200
    lines = dict(line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if not line.startswith("#"))
    assert float(lines['adawidth_queries_total{policy="taper"}']) == 2
    assert float(lines["adawidth_query_width_count"]) == 3
    assert float(lines["adawidth_coordinates_read_total"]) > 3 * 32 * 500
    assert float(lines["adawidth_bytes_read_total"]) > 2 * float(lines["adawidth_coordinates_read_total"])
    assert float(lines["adawidth_budget_width_total"]) == 120
    assert 0 < float(lines["adawidth_budget_spent_width_total"]) <= 150
    assert float(lines["adawidth_drift_documents"]) == 1
    assert float(lines["adawidth_documents"]) == 564
    stages = {name.partition('stage="')[2].partition('"')[0] for name in lines if name.startswith("adawidth_stage_seconds_count")}
    assert stages == {"wait", "encode", "search", "scan", "rescoring"}
    assert float(lines['adawidth_requests_total{path="/v1/search",status="200"}']) == 2


def test_logs_are_json_and_without_texts(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="adawidth.serve"):
        http.post("/v1/search", json={"text": "my secret question", "k": 3})
        http.post("/v1/documents", json={"documents": [{"id": "n1", "text": "my secret document", "title": "my secret title"}]})
        http.post("/v1/feedback", json={"query": "my secret question", "document": "n1", "grade": 1})
        http.post("/v1/documents", json={"documents": [{"id": "n2", "vector": [0.0] * 256, "text": "my secret document"}]})
    lines = [Structured().format(record) for record in caplog.records]
    assert sum(json.loads(line).get("path") == "/v1/search" for line in lines) == 1
    assert "secret" not in "".join(lines)
    assert THINGS["lamp"] not in "".join(lines)
