"""Our measures and our order of equal scores are trec_eval's, through pytrec_eval and ir_measures."""

from pathlib import Path

import hypothesis.strategies as st
import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings

from adawidth.data import Dataset, Documents, Judged, Vectors
from adawidth.formats import load_dataset, read_run, write_run
from adawidth.hits import Hits
from adawidth.kernels.topk import top_k
from adawidth.metrics import evaluate, measured, parse_measures
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend

MEASURES = "nDCG@1 nDCG@10 nDCG@100 R@5 R@100 MRR@10 RR@1000 MAP@10 AP@100 P@1 P@10 P@100 Success@1 Success@10 success@100"
THEIRS = {"nDCG": "ndcg_cut", "R": "recall", "AP": "map_cut", "P": "P", "Success": "success"}
DATASETS = Path(__file__).parents[3] / "shared" / "datasets"

random_collections = st.builds(
    lambda seed, queries, documents, levels: (np.random.default_rng(seed), queries, documents, levels),
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 130),
    st.sampled_from([1, 2, 5, 10**6]),  # how many different scores there are: heavy ties, some, none
)


def made(rng: np.random.Generator, queries: int, documents: int, levels: int) -> tuple[Vectors, np.ndarray, list[dict[int, int]]]:
    """Documents with ids whose order as strings is not their order, scores (Q, N), grades from -1 to 3; some queries have none above 0."""
    ids = [f"{name}" for name in rng.permutation(10 * documents)[:documents]]
    scores = (rng.integers(levels, size=(queries, documents)) / levels).astype(np.float32)
    grades = [
        {int(row): int(rng.integers(-1, 4)) for row in rng.permutation(documents)[: rng.integers(1, 1 + documents)]} for _ in range(queries)
    ]
    return Vectors(np.ones((documents, 32), np.float32), ids), scores, grades


def expected(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], queries: list[str]) -> dict[str, list[float]]:
    """What trec_eval says, 0 for queries it leaves out. It has no cut for RR: a first hit further down counts 0."""
    names = {m: f"{THEIRS[m.name]}_{m.k}" if m.name in THEIRS else "recip_rank" for m in parse_measures(MEASURES)}
    wanted = {f"{THEIRS[m.name]}.{m.k}" if m.name in THEIRS else "recip_rank" for m in names}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    values = {str(m): [found.get(query, {}).get(name, 0.0) for query in queries] for m, name in names.items()}
    return {m: [v if v * int(m[3:]) >= 1 - 1e-9 else 0.0 for v in vs] if m.startswith("RR@") else vs for m, vs in values.items()}


@settings(max_examples=150, deadline=None)
@given(random_collections)
def test_measures_equal_trec_evals(case: tuple[np.random.Generator, int, int, int]) -> None:
    documents, scores, grades = made(*case)
    queries = [f"q{i}" for i in range(len(scores))]
    qrels = {q: {documents.ids[row]: g for row, g in part.items()} for q, part in zip(queries, grades, strict=True)}
    run = {q: dict(zip(documents.ids, row.tolist(), strict=True)) for q, row in zip(queries, scores, strict=True)}
    rows = top_k(scores, Documents(documents.ids).tie_rank, 1000)
    ours = measured(parse_measures(MEASURES), rows, Judged.of(grades))
    for measure, values in expected(qrels, run, queries).items():
        np.testing.assert_allclose(ours[measure], values, rtol=0, atol=1e-9, err_msg=measure)


@settings(max_examples=50, deadline=None)
@given(random_collections, st.integers(1, 20))
def test_short_and_empty_answers_equal_trec_evals(case: tuple[np.random.Generator, int, int, int], depth: int) -> None:
    documents, scores, grades = made(*case)
    queries = [f"q{i}" for i in range(len(scores))]
    rows = top_k(scores, Documents(documents.ids).tie_rank, depth)
    rows = np.where(np.arange(rows.shape[1]) < case[0].integers(rows.shape[1] + 1, size=(len(rows), 1)), rows, -1)
    run = {q: {documents.ids[r]: float(-i) for i, r in enumerate(row) if r >= 0} for q, row in zip(queries, rows, strict=True)}
    qrels = {q: {documents.ids[row]: g for row, g in part.items()} for q, part in zip(queries, grades, strict=True)}
    ours = measured(parse_measures(MEASURES), rows, Judged.of(grades))
    for measure, values in expected(qrels, run, queries).items():
        np.testing.assert_allclose(ours[measure], values, rtol=0, atol=1e-9, err_msg=measure)


@pytest.mark.parametrize(
    ("digits", "measures"),
    [
        (1, "nDCG@10 R@100 MAP@100 P@5 P@100 Success@1 Success@10"),  # one digit: ties everywhere
        (6, "nDCG@10 R@100 MAP@100 P@5 P@100 Success@1 Success@10 MRR@10"),  # MRR@k is not trec_eval's there, and orders ties otherwise
    ],
)
def test_averages_equal_ir_measures(collection: Dataset, digits: int, measures: str) -> None:
    test = collection.split("test")
    scores = np.round(test.vectors.all() @ collection.documents.all().T, digits)
    rows = top_k(scores, Documents(collection.documents.ids).tie_rank, 100)
    ours = measured(parse_measures(measures), rows, test.judged)
    run = {str(q): dict(zip(collection.documents.ids, row.tolist(), strict=True)) for q, row in zip(test.vectors.ids, scores, strict=True)}
    qrels = {q: {d: int(g) for d, g in grades.items()} for q, grades in collection.qrels["test"].grades.items()}
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in measures.split()], qrels, run)
    assert {str(measure) for measure in theirs} == ours.keys()  # MAP is AP there too
    for measure, value in theirs.items():
        assert ours[str(measure)].mean() == pytest.approx(value, abs=1e-9), measure


@settings(max_examples=100, deadline=None)
@given(random_collections)
def test_order_of_equal_scores_is_trec_evals(case: tuple[np.random.Generator, int, int, int]) -> None:
    """A query of its own for each document, which alone is relevant there: its reciprocal rank is its place."""
    documents, scores, _ = made(*case)
    ours = top_k(scores[:1], Documents(documents.ids).tie_rank, len(documents))[0]
    run: dict[str, float] = dict(zip(map(str, documents.ids), scores[0].tolist(), strict=True))
    qrels = {str(d): {d: 1} for d in documents.ids}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate({str(d): run for d in documents.ids})
    place = {d: round(1 / values["recip_rank"]) for d, values in found.items()}
    assert [place[str(documents.ids[row])] for row in ours] == list(range(1, len(documents) + 1))


@settings(max_examples=100, deadline=None)
@given(case=random_collections)
def test_a_written_run_keeps_any_order(case: tuple[np.random.Generator, int, int, int], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Even where scores do not fall along the ranking, as when candidates were read to different widths."""
    documents, scores, _ = made(*case)
    rows = np.argsort(case[0].random(scores.shape), axis=1)
    hits = Hits(rows, np.take_along_axis(scores, rows, axis=1), np.zeros(len(rows)), documents)
    file = tmp_path_factory.mktemp("runs") / "run.trec.gz"
    queries = [f"q{i}" for i in range(len(rows))]
    write_run(file, queries, hits)
    run = read_run(file)
    assert [list(run[q]) for q in queries] == hits.ids
    qrels = {q: {d: 3 - place for place, d in enumerate(ids[:3])} for q, ids in zip(queries, hits.ids, strict=True)}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    assert [found[q]["ndcg_cut_10"] for q in queries] == pytest.approx([1.0] * len(queries))


def test_fractional_grades_are_refused_there_and_relevant_here() -> None:
    with pytest.raises(TypeError, match="integer"):
        pytrec_eval.RelevanceEvaluator({"q": {"a": 0.5}}, {"recall.10"})  # type: ignore[dict-item]
    ours = evaluate(parse_measures("nDCG@10 R@10"), np.array([[0, 1]]), Judged.of([{0: 0.5, 1: 1.0}]))
    assert ours["R@10"][0] == 1.0
    assert ours["nDCG@10"][0] == pytest.approx((0.5 + 1 / np.log2(3)) / (1 + 0.5 / np.log2(3)))


@pytest.mark.skipif(not DATASETS.is_dir(), reason="the datasets are not on this machine")
def test_published_numbers_of_scifact() -> None:
    """MiniLM's published nDCG@10 at full width, and the value at a plain prefix of 64."""
    data = load_dataset(DATASETS / "scifact", encoder="minilm")
    test = data.split("test")
    index = MemoryBackend(data.documents, Rotation.identity(data.documents.width))
    for width, published in ((384, 0.6451), (64, 0.484)):
        rows = index.search(test.vectors.all(), width, 10, test.own).candidates
        assert evaluate(parse_measures("nDCG@10"), rows, test.judged)["nDCG@10"].mean() == pytest.approx(published, abs=0.002)
