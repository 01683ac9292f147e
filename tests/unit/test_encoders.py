"""Presets, the static encoder and the endpoint: prompts, fingerprints, and what goes wrong said in one line."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from adawidth.encoders import PRESETS, load_encoder, preset_of
from adawidth.encoders.base import fingerprint_of
from adawidth.encoders.presets import INSTRUCTION, PASSAGES
from adawidth.errors import DataError, OptionError

TEXTS = ["a cat sat on the mat", "", "stock prices fell", "the cat was sitting on a rug"]


@pytest.mark.parametrize(
    ("name", "query", "document", "pooling"),
    [
        ("e5-mistral-7b-instruct", "Instruct: {instruction}\nQuery: ", "", "lasttoken"),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: {instruction}\nQuery:", "", "lasttoken"),
        ("nomic-embed-text-v1.5", "search_query: ", "search_document: ", "mean"),
        ("bge-large-en-v1.5", PASSAGES, "", "cls"),
        ("Qwen3-VL-Embedding-2B", "{instruction}", "Represent the user's input.", "lasttoken"),
        ("e5-base-v2", "query: ", "passage: ", "mean"),
        ("ALL-MiniLM-L6-v2", "", "", "mean"),
        ("models/snowflake-arctic-embed-m-v1.5", PASSAGES, "", "cls"),
        ("mxbai", PASSAGES, "", "cls"),
    ],
)
def test_what_encoders_are_given(name: str, query: str, document: str, pooling: str) -> None:
    preset = preset_of(name)
    assert preset is not None
    assert (preset.query, preset.document, preset.pooling) == (query, document, pooling)


def test_presets_can_be_told_apart() -> None:
    names = [name.lower() for preset in PRESETS for name in {preset.model, preset.title, preset.short} if name]
    assert len(names) == len(set(names))
    assert preset_of("my/own-model") is None
    assert preset_of("") is None


def test_the_fingerprint_follows_weights_and_settings() -> None:
    one, two = np.arange(5000.0), np.ones((3, 4))
    assert fingerprint_of(["a"], [one, two]) == fingerprint_of(["a"], [two, one])
    assert fingerprint_of(["a"], [one, two]) != fingerprint_of(["b"], [one, two])
    assert fingerprint_of(["a"], [one, two]) != fingerprint_of(["a"], [one + 1, two])
    assert fingerprint_of(["a"], [two]) != fingerprint_of(["a"], [two.reshape(4, 3)])


def test_wordllama() -> None:
    encoder = load_encoder("wordllama")
    vectors = encoder.encode(TEXTS, "document")
    assert vectors.shape == (4, 256)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[3] > vectors[0] @ vectors[2] + 0.3
    alone = np.concatenate([encoder.encode([text], "query") for text in TEXTS])
    assert (alone == vectors).all()  # a text's vector does not depend on its neighbours
    assert encoder.encode([], "query").shape == (0, 256)
    assert load_encoder("wordllama l2_supercat_256").fingerprint == encoder.fingerprint
    with pytest.raises(OptionError, match="takes no prompts"):
        load_encoder("wordllama", query_prompt="find: ")
    with pytest.raises(DataError, match="reads no images"):
        encoder.encode([{"text": "what is this?", "image": "1.jpg"}], "query")


class Server(BaseHTTPRequestHandler):
    """An embeddings endpoint whose vectors are the letters' counts; it is busy at every second request, and answers in reverse order."""

    requests: list[dict] = []  # noqa: RUF012
    busy = False
    width = 32

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Server.requests.append({**body, "path": self.path, "key": self.headers["Authorization"]})
        Server.busy = not Server.busy
        if self.headers["Authorization"] != "Bearer secret":
            self.answer(401, {"error": "no such key"})
        elif Server.busy:
            self.answer(429, {}, "0")
        else:
            vectors = [[1.0 + text.count(chr(97 + i)) for i in range(self.width)] for text in body["input"]]
            self.answer(200, {"data": [{"index": i, "embedding": vector} for i, vector in reversed(list(enumerate(vectors)))]})

    def answer(self, code: int, body: dict, retry_after: str | None = None) -> None:
        self.send_response(code)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Server.requests.clear()
    Server.busy = False
    url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    yield url
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("endpoint")
def test_an_endpoint() -> None:
    encoder = load_encoder("openai:bge-base-en-v1.5", batch=3)
    assert encoder.width == 32
    vectors = encoder.encode(TEXTS, "query")
    expected = np.array([[1.0 + (PASSAGES + text).count(chr(97 + i)) for i in range(32)] for text in TEXTS])
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert encoder.encode(TEXTS, "document").shape == (4, 32)
    assert {request["model"] for request in Server.requests} == {"bge-base-en-v1.5"}
    assert {request["path"] for request in Server.requests} == {"/v1/embeddings"}
    assert max(len(request["input"]) for request in Server.requests) == 3
    assert "" not in [text for request in Server.requests for text in request["input"]]
    other = load_encoder("openai:bge-base-en-v1.5", document_prompt="passage: ")
    assert other.fingerprint != encoder.fingerprint


def test_what_goes_wrong_with_an_endpoint(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    with pytest.raises(DataError, match=r"answered 401 .*: is OPENAI_API_KEY right\?"):
        load_encoder("openai:m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(DataError, match=r"can't be reached .*: is OPENAI_BASE_URL right\?"):
        load_encoder("openai:m")


def test_instructions_fill_prompts(endpoint: str) -> None:
    prompt = "Instruct: {}\nQuery: "
    assert load_encoder("openai:e5-mistral").prompts == {"query": prompt.format(INSTRUCTION), "document": ""}
    assert load_encoder("openai:e5-mistral", instruction="Find it").prompts["query"] == prompt.format("Find it")
    assert load_encoder("openai:e5-mistral", query_prompt="").prompts == {"query": "", "document": ""}
