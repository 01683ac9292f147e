"""POST /v1/embeddings, asked by the real client of OpenAI."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

from adawidth import open_index
from adawidth.serve.run import Running
from small_service import KEY, THINGS

TEXTS = [THINGS["lamp"], THINGS["bread"]]


@pytest.fixture
def client(serving: Callable[..., Running]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{serving().url}/v1", api_key=KEY, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("width", [32, 100, 256])
def test_any_number_of_dimensions_of_an_encoder(client: openai.OpenAI, things: Path, width: int) -> None:
    with open_index(things) as index:
        wanted = index.model.rotate(index.encoder.encode(TEXTS, "document"), width)
    answer = client.embeddings.create(model="wordllama", input=TEXTS, dimensions=width)  # the client asks for base64
    assert [one.index for one in answer.data] == [0, 1]
    np.testing.assert_allclose([one.embedding for one in answer.data], wanted, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm([one.embedding for one in answer.data], axis=1), 1, atol=1e-5)
    as_lists = client.embeddings.create(model="adawidth", input=TEXTS, dimensions=width, encoding_format="float")
    np.testing.assert_allclose([one.embedding for one in as_lists.data], wanted, atol=1e-6)
    assert (answer.object, answer.data[0].object, answer.model) == ("list", "embedding", "wordllama")
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 10


def test_one_text_and_queries(client: openai.OpenAI, things: Path) -> None:
    with open_index(things) as index:
        wanted = index.model.rotate_queries(index.encoder.encode(["rain"], "query"))
    answer = client.embeddings.create(model="wordllama:query", input="rain", user="somebody")
    np.testing.assert_allclose([answer.data[0].embedding], wanted, atol=1e-6)


def test_bad_requests_raise_what_openai_raises(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="text-embedding-3-small"):
        client.embeddings.create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="257"):
        client.embeddings.create(model="adawidth", input="a", dimensions=257)
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="adawidth", input="a", dimensions=0)
    for tokens in ([1, 2, 3], [[1, 2], [3]]):
        with pytest.raises(openai.UnprocessableEntityError, match="tokens"):
            client.embeddings.create(model="adawidth", input=tokens)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="another key").embeddings.create(model="adawidth", input="a")


def test_an_index_without_an_encoder_says_so(serving: Callable[..., Running], http: httpx.Client) -> None:
    response = http.post("/v1/embeddings", json={"model": "adawidth", "input": " "})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_data")
