"""ranx, ir_measures, ir_datasets, Hugging Face datasets and sentence-transformers' evaluators, there and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset, Hits, Qrels, Vectors, evaluate
from adawidth.errors import DataError
from adawidth.formats import run_of
from adawidth.types import Id
from integrations.conftest import SUBJECTS, Library

pytestmark = pytest.mark.integrations


@pytest.fixture(scope="module")
def answered(collection: Dataset) -> tuple[AdaWidth, Hits]:
    model = AdaWidth.fit(collection, recipe="pca")
    return model, model.index(collection.documents).search(collection.queries_of("test"), k=100, width=32)


def test_ranx_and_ir_measures_agree_with_evaluate(collection: Dataset, answered: tuple[AdaWidth, Hits]) -> None:
    import ir_measures

    ranx = pytest.importorskip("ranx", reason="needs ranx: make test-integrations installs it")
    model, hits = answered
    ours = evaluate(model, collection, widths=[32]).to_json()["results"][0]["nDCG@10"]
    run, labels = hits.to_run(), collection.qrels["test"].to_dict()
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], labels, run)[ir_measures.nDCG @ 10]
    assert found == pytest.approx(ours, abs=1e-4)
    assert ranx.evaluate(ranx.Qrels(labels), ranx.Run(run), "ndcg@10") == pytest.approx(ours, abs=1e-4)


def test_runs_and_labels_come_back(collection: Dataset, answered: tuple[AdaWidth, Hits]) -> None:
    import ir_measures

    ranx = pytest.importorskip("ranx", reason="needs ranx: make test-integrations installs it")
    run, labels = answered[1].to_run(), collection.qrels["test"].to_dict()
    assert run_of(ranx.Run(run)) == run_of(run)
    scored = [ir_measures.ScoredDoc(query, document, score) for query, found in run.items() for document, score in found.items()]
    assert run_of(scored) == run_of(run)
    judged = [ir_measures.Qrel(query, document, grade) for query, grades in labels.items() for document, grade in grades.items()]
    assert Qrels.of(judged).to_dict() == Qrels.of(ranx.Qrels(labels)).to_dict() == labels


def test_collections_of_ir_datasets(wordllama: Library, tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets", reason="needs ir-datasets: make test-integrations installs it")
    from adawidth.integrations.ir_datasets import load_ir_dataset

    (tmp_path / "docs.tsv").write_text("".join(f"d{row}\t{text}\n" for row, text in enumerate(wordllama.texts)))
    (tmp_path / "queries.tsv").write_text("".join(f"q{row}\ttell me about {subject}\n" for row, subject in enumerate(SUBJECTS)))
    (tmp_path / "labels.qrels").write_text("".join(f"q{row // 5} 0 d{row} 1\n" for row in range(40)))
    files = {"docs_tsv": "docs.tsv", "queries_tsv": "queries.tsv", "qrels_trec": "labels.qrels"}
    given = ir_datasets.create_dataset(**{kind: str(tmp_path / file) for kind, file in files.items()})
    ir_datasets.registry.register("subjects/all", given)
    for name in ("subjects/all", given):
        data = load_ir_dataset(name, wordllama.encoder)
        assert (len(data.documents), len(data.queries), len(data.qrels["test"])) == (40, 8, 8)
        np.testing.assert_allclose(data.documents.values, wordllama.vectors, atol=1e-6)
    assert data.split("test").judged.positives(1).tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(DataError, match="no collection 'absent/one'"):
        load_ir_dataset("absent/one", wordllama.encoder)
    bare = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "docs.tsv"))
    with pytest.raises(DataError, match="has no queries"):
        load_ir_dataset(bare, wordllama.encoder)


@pytest.mark.parametrize("form", [None, "numpy", "torch", "arrow", "pandas"])
def test_columns_of_hugging_face_datasets(wordllama: Library, form: str | None) -> None:
    datasets = pytest.importorskip("datasets", reason="needs datasets: make test-integrations installs it")
    names: list[Id] = [f"d{row}" for row in range(40)]
    table = datasets.Dataset.from_dict({"id": names, "vector": wordllama.vectors.tolist()}).with_format(form)
    found = Vectors.of(table["vector"], table["id"])
    assert list(found.ids) == names
    np.testing.assert_allclose(found.values, wordllama.vectors, atol=1e-6)
    index = wordllama.model.index(table["vector"], ids=table["id"])
    assert index.search(wordllama.vectors[3])[0][0].id == "d3"


def test_labels_of_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets", reason="needs datasets: make test-integrations installs it")
    columns: dict[str, list[Any]] = {"query-id": ["q1", "q2"], "corpus-id": ["d1", "d2"], "score": [1, 2]}
    assert Qrels.of(datasets.Dataset.from_dict(columns)).grades == {"q1": {"d1": 1.0}, "q2": {"d2": 2.0}}


def test_the_dictionaries_of_an_evaluator(minilm: Library) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    corpus = {f"d{row}": text for row, text in enumerate(minilm.texts)}
    queries = {subject: f"tell me about {subject}" for subject in SUBJECTS}
    relevant = {subject: {f"d{row}" for row in range(5 * place, 5 * place + 5)} for place, subject in enumerate(SUBJECTS)}
    encoder = SentenceTransformer(modules=minilm.encoder.modules(), device="cpu")
    data = Dataset.from_dicts(corpus, queries, relevant, encoder)
    evaluator = InformationRetrievalEvaluator(queries, corpus, relevant, ndcg_at_k=[10], write_csv=False)
    expected = evaluator(encoder)["cosine_ndcg@10"]
    assert evaluate(minilm.model, data, widths=["full"]).to_json()["results"][0]["nDCG@10"] == pytest.approx(expected, abs=1e-4)
