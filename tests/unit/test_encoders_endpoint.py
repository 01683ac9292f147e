"""An endpoint that misbehaves: the key stays with the host it was given for, waiting ends, and what a server says is not believed."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from adawidth.encoders import endpoint, load_encoder
from adawidth.errors import DataError, OptionError

SECRET = "sk-very-secret-0123456789"
Behave = Callable[[BaseHTTPRequestHandler], None]
Start = Callable[[Behave], str]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts servers that answer a POST as they are told; the last one is the endpoint."""
    servers = []

    def started(behave: Behave) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                behave(self)

            do_GET = behave

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        return url

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


def says(code: int, body: bytes, **headers: str) -> Behave:
    def behave(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return behave


def answer(*vectors: Any, first: int = 0) -> bytes:
    return json.dumps({"data": [{"index": first + i, "embedding": vector} for i, vector in enumerate(vectors)]}).encode()


def refusal() -> str:
    with pytest.raises(DataError) as caught:
        load_encoder("openai:m")
    text = str(caught.value)
    assert SECRET not in text
    assert "\n" not in text
    assert len(text) < 300
    return text


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(start: Start, code: int) -> None:
    asked: list[Any] = []
    elsewhere = start(lambda request: asked.append(dict(request.headers)))
    start(says(code, b"", Location=f"{elsewhere}/v1/embeddings"))
    assert f"answered {code}" in (text := refusal())
    assert "redirects are not followed, set OPENAI_BASE_URL" in text
    assert not asked


@pytest.mark.parametrize("code", [400, 401, 500])
def test_what_a_server_says_is_cut_escaped_and_without_the_key(start: Start, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "TRIES", 1)
    start(says(code, f"\x1b[31mbad\r\nkey {SECRET}! {'x' * 90}{SECRET}{'y' * 9_000}".encode()))
    text = refusal()
    assert f"answered {code} \\x1b[31mbad key …! xxx".replace("…", "\\u2026") in text
    assert SECRET[:6] not in text


def test_a_key_cut_in_half_by_the_limit_is_not_shown(start: Start) -> None:
    start(says(400, f"{'x' * 70} {SECRET} and more".encode()))
    assert SECRET[:4] not in refusal()


def test_a_pause_is_bounded() -> None:
    assert endpoint._pause("999999999999", 1) == endpoint.LONGEST_PAUSE <= 60
    assert [endpoint._pause(asked, 3) for asked in ("7", "Wed, 21 Oct 2026 07:28:00 GMT", "-5", "", None)] == [7, 4, 4, 4, 4]


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_server_that_drips_is_left_alone(start: Start, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "SECONDS", 0.4)
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.0 200 OK\r\nX: " if part == "head" else b"HTTP/1.0 200 OK\r\n\r\n")
        for _ in range(100):  # ten seconds, each byte well within the time for one
            if ended.wait(0.1):
                return
            try:
                request.wfile.write(b" ")
            except OSError:
                return

    start(drip)
    assert "no whole answer within 0.4 seconds" in refusal()
    ended.set()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "the answer is no JSON"),
        (b"[" * 200_000, "the answer is no JSON"),
        (b"[]", "expected data with index and embedding, found []"),
        (b'{"data": [{"index": 0}]}', "expected data with index and embedding"),
        (b'{"data": [{"index": 0, "embedding": "AAAA"}]}', "expected data with index and embedding"),
        (answer(), "1 texts were sent, 0 vectors came back"),
        (answer([1.0], [1.0]), "1 texts were sent, 2 vectors came back"),
        (answer([1.0], first=7), "1 texts were sent, 1 vectors came back, not one for each"),
        (answer([]), "expected vectors of finite numbers"),
        (answer([float("nan"), 1.0]), "expected vectors of finite numbers"),
        (answer([1e300, 1.0]), "expected vectors of finite numbers"),
        (answer([0.0, 0.0]), "expected vectors of finite numbers, not all zero"),
        (answer([[1.0]]), "expected vectors of finite numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_answers_that_are_none(start: Start, body: bytes, words: str) -> None:
    start(says(200, body))
    assert words in refusal()


def test_the_width_stays(start: Start) -> None:
    answers = iter([answer([3.0, 4.0]), answer([3.0, 4.0]), answer([1.0, 2.0, 3.0])])
    start(lambda request: says(200, next(answers))(request))
    encoder = load_encoder("openai:m")
    assert np.allclose(encoder.encode(["a"], "query"), [[0.6, 0.8]])
    with pytest.raises(DataError, match="a vector is 3 wide, earlier ones 2"):
        encoder.encode(["a"], "query")


@pytest.mark.parametrize("base", ["https://me:hunter2@host/v1", "https://hunter2@host/v1", "file:///hunter2", "https://h/v1?key=hunter2"])
def test_an_address_with_a_secret_is_refused_and_not_repeated(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", base)
    with pytest.raises(OptionError, match="OPENAI_BASE_URL") as caught:
        load_encoder("openai:m")
    assert "hunter2" not in str(caught.value)


def test_without_an_address_it_is_openai_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match=r"set OPENAI_API_KEY to your key for https://api\.openai\.com/v1, or OPENAI_BASE_URL to another"):
        load_encoder("openai:m")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert endpoint._base() == "https://api.openai.com/v1"


@pytest.mark.parametrize("key", ["hunter2\nX-Evil: 1", "hunter2…"])
def test_a_key_that_is_none_is_refused_and_not_repeated(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(OptionError, match="OPENAI_API_KEY holds characters that no key has") as caught:
        load_encoder("openai:m")
    assert "hunter2" not in str(caught.value)
