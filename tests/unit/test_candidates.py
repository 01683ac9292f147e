"""What training queries are shown: positives always, negatives never relevant, own documents never."""

import numpy as np
import pytest

from adawidth.data import Judged, Learning, Queries, Vectors, unit
from adawidth.metrics import evaluate
from adawidth.training import corpus
from adawidth.training.candidates import Candidates
from adawidth.training.pool import sample
from adawidth.training.ranking import NDCG, Ranker, nearest

N, D, Q = 300, 40, 30
Task = tuple[np.ndarray, Queries, Judged]


@pytest.fixture(scope="module")
def task() -> Task:
    rng = np.random.default_rng(0)
    documents = unit(rng.standard_normal((N, D)))
    queries = Vectors.of(unit(documents[:Q] + 0.5 * rng.standard_normal((Q, D))))
    judged = Judged.of([{i: 1.0, (i + 50) % N: 2.0, (i + 100) % N: 0.0} for i in range(Q)])
    return documents, Queries(queries, judged, np.arange(Q) + 200), judged


def test_nearest_is_brute_force_without_own(task: Task) -> None:
    documents, queries, _ = task
    scores = queries.vectors.all() @ documents.T
    scores[np.arange(Q), queries.own] = -np.inf
    assert np.array_equal(nearest(queries.vectors.all(), documents, 7, queries.own), np.argsort(-scores, axis=1)[:, :7])


@pytest.mark.parametrize("width", [None, 32])
def test_negatives_are_never_relevant_nor_the_query_itself(task: Task, width: int) -> None:
    documents, queries, judged = task
    mined = Candidates.mine(queries, documents, judged, width=width, shortlist=60)
    vectors = queries.vectors.all()
    for i in range(Q):
        own = mined.negatives[i, : mined.counts[i]]
        assert not np.isin(own, judged.positives(i)).any()
        assert queries.own[i] not in own
        scores = documents[own] @ vectors[i]
        assert (np.diff(scores) <= 1e-6).all()  # hardest first by the full-width score
    assert (mined.counts >= 58).all()


def test_private_candidates(task: Task) -> None:
    documents, queries, judged = task
    mined = Candidates.mine(queries, documents, judged, width=32, shortlist=60)
    rows, mask = mined.private(np.arange(Q), 32, np.random.default_rng(0))
    assert rows.shape == mask.shape == (Q, 32)
    for i in range(Q):
        assert set(rows[i][mask[i]]) == set(judged.positives(i))
        assert not np.isin(rows[i][~mask[i]], judged.positives(i)).any()
        assert np.array_equal(rows[i][2:17], mined.negatives[i, :15])  # the hardest half
        assert len(set(rows[i])) == 32


def test_private_candidates_repeat_where_the_shortlist_is_short(task: Task) -> None:
    documents, queries, judged = task
    mined = Candidates.mine(queries, documents, judged, width=32, shortlist=5)
    rows, mask = mined.private(np.arange(Q), 32, np.random.default_rng(0))
    assert rows.shape == (Q, 32)
    assert mask.sum() == 2 * Q


def test_shared_candidates(task: Task) -> None:
    documents, queries, judged = task
    mined = Candidates.mine(queries, documents, judged, shortlist=60)
    batch = np.array([3, 7, 11])
    rows, mask = mined.shared(batch, 6, np.random.default_rng(0))
    assert (np.diff(rows) > 0).all()
    for place, query in enumerate(batch):
        assert set(rows[mask[place]]) == set(judged.positives(query)) & set(rows)
        assert set(judged.positives(query)) <= set(rows)


def test_pool_keeps_the_positives_and_moves_the_judgements(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, queries, _ = task
    learning = Learning(Vectors.of(documents), queries.select(np.arange(20)), queries.select(np.arange(20, 30)))
    assert sample(learning).documents.ids == list(range(N))  # what fits is kept whole
    monkeypatch.setattr(corpus, "FLOATS", 150 * D)
    small = sample(learning, seed=0)
    assert len(small.documents) == 150
    for part, whole in ((small.train, learning.train), (small.dev, learning.dev)):
        for i in range(len(part)):
            kept = [small.documents.ids[row] for row in part.judged.positives(i)]
            assert kept == [learning.documents.ids[row] for row in whole.judged.positives(i)]
            assert small.documents.ids[part.own[i]] == whole.own[i]
    assert np.allclose(small.documents.all(), documents[np.array(small.documents.ids)])
    first = nearest(queries.vectors.all(), documents, 1, queries.own)[:, 0]
    assert set(first) <= set(small.documents.ids)  # found among all documents, not among a sample


def test_rankings_at_several_widths_are_those_of_each_alone_without_the_query_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    documents, queries, own = unit(rng.standard_normal((40, 24))), unit(rng.standard_normal((9, 24))), np.full(9, -1)
    own[[2, 5]] = 7, 0
    judged = Judged.of([{int(row): 1.0} for row in rng.integers(40, size=9)])
    whole = Ranker(documents, (8, 16, 24)).curve(queries, judged, own)
    monkeypatch.setattr("adawidth.training.ranking.SCORES", 100)  # two queries at a time
    for m, values in Ranker(documents, (8, 16, 24)).curve(queries, judged, own).items():
        scores = queries[:, :m] @ unit(documents[:, :m]).T
        scores[[2, 5], [7, 0]] = -np.inf
        expected = evaluate([NDCG], np.argsort(-scores, axis=1)[:, :10], judged)[str(NDCG)]
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(values, whole[m])


def test_a_query_never_finds_itself_even_among_few_documents() -> None:
    documents = unit(np.random.default_rng(4).standard_normal((4, 8)))
    judged = Judged.of([{row: 1.0} for row in range(4)])  # each its own answer, which it must not find
    assert not Ranker(documents, (8,)).curve(documents, judged, np.arange(4))[8].any()
