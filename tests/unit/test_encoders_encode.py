"""Encoding a dataset folder: the layout it writes, and interruptions that leave no trace."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from adawidth.encoders import encode as encoding
from adawidth.encoders import encode_dataset, load_encoder
from adawidth.encoders.base import Input, Role
from adawidth.encoders.wordllama import WordLlama
from adawidth.errors import DataError, OptionError
from adawidth.formats import Text, load_dataset, write_texts

WORDS = ["rain", "river", "stone", "cloud", "market", "engine", "letter", "garden", "signal", "copper", "winter", "bridge"]


def texts(count: int, seed: int = 0) -> list[Text]:
    """Texts of very different lengths, some with a title, one of them empty."""
    rng = np.random.default_rng(seed)
    drawn = [" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(count)]
    drawn[count // 2] = ""
    return [Text(f"t{i}", text, "A title" if i % 3 == 0 else "") for i, text in enumerate(drawn)]


def write_folder(home: Path) -> Path:
    home.mkdir()
    write_texts(home / "corpus.jsonl", texts(5_000))
    write_texts(home / "queries.jsonl", texts(30, seed=1))
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "weather")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run without interruption writes."""
    home, encoder = write_folder(tmp_path_factory.mktemp("encode") / "weather"), Counting()
    encode_dataset(home, encoder, "whole")
    assert encoder.seen == 5_030
    return files(home / "embeddings" / "whole")


class Counting(WordLlama):
    """WordLlama that counts the texts it is given, and is interrupted before a batch."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.seen, self.stop_at = 0, stop_at

    def encode(self, inputs: Sequence[Input], role: Role) -> np.ndarray:
        if self.stop_at is not None and self.seen >= self.stop_at:
            raise KeyboardInterrupt
        self.seen += len(inputs)
        return super().encode(inputs, role)


def files(home: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(home.iterdir())}


def test_the_layout(folder: Path, uninterrupted: dict[str, bytes]) -> None:
    encoder = load_encoder("wordllama")
    said = encode_dataset(folder, encoder, "static", dtype="float32")
    meta = json.loads((folder / "embeddings" / "static" / "meta.json").read_text())
    assert meta.items() <= said.items()
    assert (said["documents"], said["queries"]) == (5_000, 30)
    assert (meta["encoder"], meta["fingerprint"], meta["dimensions"]) == ("wordllama", encoder.fingerprint, 256)
    assert (meta["normalized"], meta["prompts"], meta["dtype"]) == (True, {"query": "", "document": ""}, "float32")
    data = load_dataset(folder)
    assert data.encoder == "static"
    assert list(data.documents.ids) == [text.id for text in texts(5_000)]
    assert (data.documents.values == encoder.encode([text.whole for text in texts(5_000)], "document")).all()
    assert sorted(path.name for path in (folder / "embeddings").iterdir()) == ["static"]
    half = np.load(io.BytesIO(uninterrupted["corpus.npy"]))
    assert (half == data.documents.values.astype(np.float16)).all()


@pytest.mark.parametrize("stop_at", [0, 2_048, 3_000, 5_000])
def test_an_interrupted_run_goes_on_and_leaves_no_trace(folder: Path, uninterrupted: dict[str, bytes], stop_at: int) -> None:
    interrupted = Counting(stop_at)
    with pytest.raises(KeyboardInterrupt):
        encode_dataset(folder, interrupted, "resumed")
    assert not (folder / "embeddings" / "resumed").exists()
    kept = sum(len(np.load(part)) for part in (folder / "embeddings" / ".resumed.parts").glob("*.npy"))
    assert interrupted.seen - kept < encoding.PART
    again = Counting()
    encode_dataset(folder, again, "resumed")
    assert again.seen == 5_030 - kept
    assert files(folder / "embeddings" / "resumed") == uninterrupted
    assert sorted(path.name for path in (folder / "embeddings").iterdir()) == ["resumed"]


def test_a_killed_run_goes_on_and_leaves_no_trace(folder: Path, uninterrupted: dict[str, bytes]) -> None:
    script = f"""
import os, signal
from adawidth.encoders import encode_dataset
from adawidth.encoders.wordllama import WordLlama
class Killed(WordLlama):
    seen = 0
    def encode(self, inputs, role):
        self.seen += len(inputs)
        if self.seen > 3000:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(inputs, role)
encode_dataset({str(folder)!r}, Killed(), "resumed")
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    with pytest.raises(DataError, match="there are no vectors"):  # what a killed run leaves is no encoder
        load_dataset(folder)
    again = Counting()
    encode_dataset(folder, again, "resumed")
    assert again.seen == 5_030 - encoding.PART
    assert files(folder / "embeddings" / "resumed") == uninterrupted


def test_texts_that_changed_meanwhile_are_encoded_again(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_dataset(folder, Counting(5_000), "w")
    changed = texts(5_000)
    changed[3_000] = Text("t3000", "something else")
    write_texts(folder / "corpus.jsonl", changed)
    again = Counting()
    encode_dataset(folder, again, "w")
    assert again.seen == 2_048 + 30  # the part with the change, and the queries
    vectors = load_dataset(folder, "w").documents.values
    assert (vectors[3_000] == again.encode(["something else"], "document").astype(np.float16)).all()


def test_without_queries(folder: Path) -> None:
    (folder / "queries.jsonl").unlink()
    assert encode_dataset(folder, load_encoder("wordllama"), "w")["queries"] == 0
    assert sorted(files(folder / "embeddings" / "w")) == ["corpus.ids", "corpus.npy", "meta.json"]


def test_what_is_refused(folder: Path) -> None:
    encoder = load_encoder("wordllama")
    with pytest.raises(OptionError, match="neither float16 nor float32"):
        encode_dataset(folder, encoder, "w", dtype="int8")  # type: ignore[arg-type]
    write_texts(folder / "queries.jsonl", [Text("a", "x"), Text("a", "y")])
    with pytest.raises(DataError, match="id 'a' stands twice; 2 texts have 1 ids"):
        encode_dataset(folder, encoder, "w")
    (folder / "queries.jsonl").write_text("")
    with pytest.raises(DataError, match=r"queries\.jsonl: there are no texts in it"):
        encode_dataset(folder, encoder, "w")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"there is no corpus\.jsonl"):
        encode_dataset(folder, encoder, "w")


def test_vectors_that_are_there_need_force(folder: Path) -> None:
    encode_dataset(folder, Counting(), "w")
    again = Counting()
    with pytest.raises(OptionError, match="exists"):
        encode_dataset(folder, again, "w")
    assert again.seen == 0
    encode_dataset(folder, again, "w", force=True)
    assert again.seen == 5_030
