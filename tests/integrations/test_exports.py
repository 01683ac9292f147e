"""Exports, opened by the programs that they are for."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth
from adawidth.data import unit
from adawidth.errors import AdaWidthError, OptionError
from adawidth.integrations import export
from adawidth.rotation import QueryMap
from adawidth.tasks import TaskMap
from integrations.conftest import Library

pytestmark = pytest.mark.integrations

ALONE = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
assert importlib.util.find_spec("adawidth") is None
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[2], truncate_dim=int(sys.argv[3]))
print("vectors", json.dumps(model.encode(json.loads(sys.argv[4]), normalize_embeddings=True).tolist()))
"""


def with_query_map(model: AdaWidth) -> AdaWidth:
    rng = np.random.default_rng(3)
    change, bias = 0.05 * rng.standard_normal((model.width, model.width)), 0.02 * rng.standard_normal(model.width)
    return replace(model, tasks={"default": TaskMap(QueryMap.fold(model.rotation, change, bias), model.policies)})


@pytest.fixture(scope="session")
def packages_without_adawidth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is installed beside this package, but not it."""
    folder = tmp_path_factory.mktemp("packages")
    for place in {Path(entry) for entry in sys.path if entry.endswith("site-packages")}:
        for entry in place.iterdir():
            if "adawidth" not in entry.name and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


def test_sentence_transformers_opens_the_folder_where_adawidth_is_not_installed(
    library: Library, packages_without_adawidth: Path, tmp_path: Path
) -> None:
    made = export(library.model, "sentence-transformers", tmp_path / "encoder")
    assert made["width"] == library.model.width
    arguments = [str(packages_without_adawidth), str(tmp_path / "encoder"), "64", json.dumps(library.texts)]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ALONE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.partition("vectors ")[2])
    np.testing.assert_allclose(found, library.model.rotate(library.vectors, 64), atol=1e-5)


def test_a_cut_encoder_and_the_side_of_queries(wordllama: Library, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = with_query_map(wordllama.model)
    export(model, "sentence-transformers", tmp_path / "d", width=32)
    export(model, "sentence-transformers", tmp_path / "q", width=32, queries=True)
    documents, queries = (SentenceTransformer(str(tmp_path / side)) for side in "dq")
    assert documents.get_embedding_dimension() == 32
    np.testing.assert_allclose(documents.encode(wordllama.texts), model.rotate(wordllama.vectors, 32), atol=1e-5)
    np.testing.assert_allclose(queries.encode(wordllama.texts), model.rotate_queries(wordllama.vectors, 32), atol=1e-5)


def test_prompts_travel_with_the_encoder(minilm: Library, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    record = minilm.model.record
    prompted = {**record.encoding, "prompts": {"query": "ask: ", "document": ""}}
    export(replace(minilm.model, record=replace(record, encoding=prompted)), "sentence-transformers", tmp_path / "e")
    opened = SentenceTransformer(str(tmp_path / "e"))
    same = opened.encode(["ask: what is bread?"], prompt="")
    np.testing.assert_allclose(opened.encode_query(["what is bread?"]), same, atol=1e-6)


def test_folders_are_replaced_only_if_they_were_exported(wordllama: Library, tmp_path: Path) -> None:
    out = tmp_path / "e"
    export(wordllama.model, "sentence-transformers", out)
    with pytest.raises(OptionError, match="exists"):
        export(wordllama.model, "sentence-transformers", out)
    export(wordllama.model, "sentence-transformers", out, width=8, force=True)
    assert json.loads((out / "adawidth.json").read_text())["width"] == 8
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(OptionError, match="not replaced"):
        export(wordllama.model, "sentence-transformers", tmp_path / "mine", force=True)
    with pytest.raises(AdaWidthError, match="fingerprint"):
        export(wordllama.model, "sentence-transformers", tmp_path / "other", encoder="minilm")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e", "mine"]


def test_onnx_takes_vectors(library: Library, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: make test-integrations installs it")
    model = with_query_map(library.model)
    for queries, expected in ((False, model.rotate(library.vectors, 48)), (True, model.rotate_queries(library.vectors, 48))):
        export(model, "onnx", tmp_path / "m.onnx", width=48, queries=queries, force=True)
        session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
        (rotated,) = session.run(["rotated"], {"vectors": 5 * library.vectors})
        np.testing.assert_allclose(rotated, expected, atol=1e-5)


def test_onnx_takes_tokens(library: Library, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: make test-integrations installs it")
    from tokenizers import Tokenizer

    export(library.model, "onnx", tmp_path / "m", width=48, tokens=True)
    session = onnxruntime.InferenceSession(str(tmp_path / "m" / "model.onnx"))
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    texts = [*library.texts, "a much longer text " * 30]
    for asked in (texts, texts[:1]):
        encoded = tokenizer.encode_batch(asked)
        ids, mask = (np.array([getattr(one, name) for one in encoded], np.int64) for name in ("ids", "attention_mask"))
        (rotated,) = session.run(["rotated"], {"input_ids": ids, "attention_mask": mask})
        np.testing.assert_allclose(rotated, library.model.rotate(library.encoder.encode(asked, "document"), 48), atol=1e-5)


@pytest.mark.parametrize("queries", [False, True])
def test_a_pgvector_function_rotates_in_generated_columns(wordllama: Library, postgres: str, tmp_path: Path, queries: bool) -> None:
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg: make test-integrations installs it")
    model = with_query_map(wordllama.model)
    name = "rotate_query" if queries else "rotate_document"
    export(model, "sql", tmp_path / "f.sql", width=32, queries=queries, name=name)
    expected = model.rotate_queries(wordllama.vectors, 32) if queries else model.rotate(wordllama.vectors, 32)
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute((tmp_path / "f.sql").read_text())
        table = f"items_{name}"
        db.execute(f"CREATE TABLE {table} (id int, x vector(256), y vector(32) GENERATED ALWAYS AS ({name}(x)) STORED)")
        db.execute(f"CREATE INDEX ON {table} USING hnsw (y vector_cosine_ops)")
        for row, vector in enumerate(wordllama.vectors.tolist()):
            db.execute(f"INSERT INTO {table} (id, x) VALUES (%s, %s::vector)", (row, str(vector)))
        found = [json.loads(text) for (text,) in db.execute(f"SELECT y::text FROM {table} ORDER BY id")]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        (near,) = db.execute(
            f"SELECT id FROM {table} ORDER BY y <=> {name}(%s::vector) LIMIT 1", (str(wordllama.vectors[7].tolist()),)
        ).fetchone()
        best = int((unit(expected) @ unit(expected)[7]).argmax())
        assert near == best
        with pytest.raises(psycopg.Error, match="the vector is 3 wide, the rotation 256"):
            db.execute(f"SELECT {name}('[1,2,3]'::vector)")
