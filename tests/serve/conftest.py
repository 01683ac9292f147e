"""Real services on free ports of this machine, over a small index of texts."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adawidth import AdaWidth, load_dataset, open_index
from adawidth.encoders import encode_dataset, load_encoder
from adawidth.formats import Text, write_texts
from adawidth.formats.documents import of_dataset
from adawidth.serve.run import Running, running
from small_service import FILL, KEY, THINGS


@pytest.fixture(scope="session")
def _things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few things and many others of no importance, encoded with wordllama."""
    home = tmp_path_factory.mktemp("served")
    fill = [Text(f"x{i}", f"Item {i} of the list, {i % 7} by {i % 11}, is of no importance.") for i in range(FILL)]
    write_texts(home / "corpus.jsonl", [*(Text(name, text, name.title()) for name, text in THINGS.items()), *fill])
    encode_dataset(home, load_encoder("wordllama"), "wordllama")
    with AdaWidth.fit(load_dataset(home), recipe="pca").index(of_dataset(home), home / "things.index") as index:
        index.compact(hybrid=True)
    return home / "things.index"


@pytest.fixture
def things(_things: Path, tmp_path: Path) -> Path:
    """The folder of that index; a test may change it."""
    return Path(shutil.copytree(_things, tmp_path / "things.index"))


@pytest.fixture
def serving(things: Path) -> Iterator[Callable[..., Running]]:
    """Starts services over that folder, with settings."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Running:
            return stack.enter_context(running(open_index(things), **{"key": KEY, **settings}))

        yield start


@pytest.fixture
def http(serving: Callable[..., Running]) -> Iterator[httpx.Client]:
    """A client of a service with a key, which it sends."""
    with httpx.Client(base_url=serving().url, headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client:
        yield client
