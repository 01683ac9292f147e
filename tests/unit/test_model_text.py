"""Text in, documents out; and only with the encoder that the index was made with."""

import json
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, load_dataset
from adawidth.encoders import encode_dataset, encoder_of, load_encoder
from adawidth.errors import ArtifactError, DataError, OptionError
from adawidth.formats import Text, write_texts
from adawidth.formats.documents import of_dataset
from adawidth.model import TextSearcher

THINGS = {
    "lamp": "A small lamp gives light for reading in bed.",
    "umbrella": "An umbrella keeps you dry when it rains.",
    "engine": "The engine of a car burns petrol.",
    "bread": "Bread is baked from flour, water and yeast.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few things, encoded with wordllama."""
    home = tmp_path_factory.mktemp("things")
    fill = [Text(f"x{i}", f"Item {i} of the list is of no importance.") for i in range(60)]
    write_texts(home / "corpus.jsonl", [*(Text(name, text, name.title()) for name, text in THINGS.items()), *fill])
    encode_dataset(home, load_encoder("wordllama"), "wordllama")
    AdaWidth.fit(load_dataset(home)).index(of_dataset(home), home / "index")
    return home / "index"


def test_text_in_documents_out(index: Path) -> None:
    with TextSearcher.open(index) as searcher:
        asked = ["something against rain", "where flour is used"]
        answers = searcher.search(asked, k=3)
        assert [answer.query for answer in answers] == asked
        assert [answer.found[0].id for answer in answers] == ["umbrella", "bread"]
        best = answers[0].found[0]
        assert (best.title, best.text) == ("Umbrella", THINGS["umbrella"])
        assert all(len(answer.found) == 3 and 0 < answer.mean_width <= 256 for answer in answers)
        scores = [one.score for one in answers[0].found]
        assert scores == sorted(scores, reverse=True)
        assert len(searcher.search(["rain"], k=1_000)[0].found) == 64  # all there are
        assert searcher.search(["rain"], width=256)[0].mean_width == 256
        assert searcher.search([]) == []
        with pytest.raises(DataError, match="the query is empty"):
            searcher.search(["rain", " "])


def test_another_encoder_is_refused(index: Path) -> None:
    encoding = json.loads((index / "model" / "config.json").read_text())["record"]["encoding"]
    assert encoder_of(encoding).fingerprint == encoding["fingerprint"]
    with pytest.raises(ArtifactError, match=f"the documents were encoded by wordllama with {'0' * 16}: use that one"):
        encoder_of({**encoding, "fingerprint": "0" * 16})
    with pytest.raises(OptionError, match="it is not recorded which encoder"):
        encoder_of({})


def test_vectors_without_a_fingerprint_are_searched_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "adawidth")
    encoder = encoder_of({"encoder": "wordllama l2_supercat_256"})
    assert "no fingerprint was recorded" in caplog.text
    assert np.allclose(encoder.encode(["rain"], "query"), load_encoder("wordllama").encode(["rain"], "query"))
