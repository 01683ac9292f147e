"""Real MTEB tasks, small and local, through the adaptive index and through the encoder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

mteb = pytest.importorskip("mteb", reason="needs mteb: make test-integrations installs it")

from datasets import Dataset  # noqa: E402
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.mocks.mock_tasks.reranking import MockRerankingTask  # noqa: E402
from mteb.mocks.mock_tasks.retrieval import general_args  # noqa: E402
from mteb.models.search_wrappers import SearchEncoderWrapper  # noqa: E402

from adawidth.errors import OptionError  # noqa: E402
from adawidth.integrations.mteb import AdaWidthEncoder, AdaWidthSearchIndex, adaptive  # noqa: E402
from integrations.conftest import FRAMES, SUBJECTS, Library  # noqa: E402

pytestmark = pytest.mark.integrations


class Subjects(AbsTaskRetrieval):
    """Every text about a subject is relevant to the subject's question."""

    metadata = TaskMetadata(type="Retrieval", name="Subjects", main_score="ndcg_at_10", **general_args)

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        texts = {f"{subject}-{row}": frame.format(subject) for subject in SUBJECTS for row, frame in enumerate(FRAMES)}
        corpus = [{"id": name, "title": "", "text": text} for name, text in texts.items()]
        queries = [{"id": subject, "text": f"tell me about {subject}"} for subject in SUBJECTS]
        relevant = {subject: {f"{subject}-{row}": 1 for row in range(len(FRAMES))} for subject in SUBJECTS}
        split = {"corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries), "relevant_docs": relevant, "top_ranked": None}
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


def score(model: Any, task: Any = None, **options: Any) -> dict[str, float]:
    results = mteb.evaluate(model, task or Subjects(), cache=None, show_progress_bar=False, co2_tracker=False, **options)
    return results.task_results[0].scores["test"][0]


def test_a_task_runs_through_the_adaptive_index(wordllama: Library, tmp_path: Path) -> None:
    exact = score(AdaWidthEncoder(wordllama.encoder))
    wrapped = adaptive(wordllama.encoder, wordllama.model, width="full")
    found = score(wrapped)
    for measure in ("ndcg_at_10", "recall_at_100", "map_at_10"):
        assert found[measure] == pytest.approx(exact[measure], abs=1e-5)
    assert exact["ndcg_at_10"] > 0.8
    assert wrapped.index_backend.mean_width == 256


def test_less_is_read_at_almost_the_same_quality(wordllama: Library) -> None:
    wrapped = adaptive(wordllama.encoder, wordllama.model, width=32)
    found = score(wrapped)
    assert wrapped.index_backend.mean_width == 32
    assert found["ndcg_at_10"] > 0.9 * score(AdaWidthEncoder(wordllama.encoder))["ndcg_at_10"]
    fitted = adaptive(wordllama.encoder)  # a model for the task's own documents
    assert score(fitted)["ndcg_at_10"] > 0.8


def test_any_encoder_of_mteb_stands_before_the_index(minilm: Library) -> None:
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformerEncoderWrapper(SentenceTransformer(modules=minilm.encoder.modules(), device="cpu"))
    found = score(SearchEncoderWrapper(encoder, index_backend=AdaWidthSearchIndex(minilm.model, width="full")))
    assert found["ndcg_at_10"] == pytest.approx(score(encoder)["ndcg_at_10"], abs=1e-5)


def test_rotated_and_cut_vectors_are_an_encoder_too(wordllama: Library) -> None:
    whole = AdaWidthEncoder(wordllama.encoder, wordllama.model)
    cut = AdaWidthEncoder("wordllama", wordllama.model, width=32)
    assert score(whole)["ndcg_at_10"] == pytest.approx(score(AdaWidthEncoder(wordllama.encoder))["ndcg_at_10"], abs=1e-6)
    assert score(cut)["ndcg_at_10"] > 0.7
    assert cut.mteb_model_meta.name == "adawidth/wordllama-32"
    assert wordllama.model.rotation.fingerprint in cut.mteb_model_meta.revision
    with pytest.raises(OptionError, match="give the model too"):
        AdaWidthEncoder(wordllama.encoder, width=32)


def test_reranking_takes_the_same_way(wordllama: Library) -> None:
    exact = score(AdaWidthEncoder(wordllama.encoder), MockRerankingTask())
    found = score(adaptive(wordllama.encoder, wordllama.model), MockRerankingTask())
    assert found["map_at_1000"] == pytest.approx(exact["map_at_1000"], abs=1e-6)


def test_the_backend_alone(wordllama: Library) -> None:
    index = AdaWidthSearchIndex(wordllama.model)
    with pytest.raises(OptionError, match="no documents yet"):
        index.search(wordllama.vectors, 3)
    index.add_documents(wordllama.vectors[:20], [f"a{row}" for row in range(20)])
    index.add_documents(wordllama.vectors[20:], [f"b{row}" for row in range(20)])
    scores, places = index.search(wordllama.vectors[[3, 25]], 1)
    assert places == [[3], [25]]
    np.testing.assert_allclose(scores, 1, atol=1e-5)
    scores, places = index.search(wordllama.vectors[[3]], 5, top_ranked={"q": ["b1", "a3"]}, query_idx_to_id={0: "q"})
    assert places == [[1, 0]]
    with pytest.raises(OptionError, match="query_idx_to_id"):
        index.search(wordllama.vectors, 5, top_ranked={"q": ["b1"]})
