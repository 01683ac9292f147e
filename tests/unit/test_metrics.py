"""Hand-made cases of the measures; tests/parity compares them with trec_eval."""

import numpy as np
import pytest

from adawidth.data import Documents, Judged, Vectors
from adawidth.errors import OptionError
from adawidth.kernels.topk import top_k
from adawidth.metrics import Measure, evaluate, measured, parse_measures, tied_at_cut
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend


def value(measure: str, ranked: list[int], grades: dict[int, float]) -> float:
    return float(evaluate([Measure.parse(measure)], np.array([ranked], np.int64), Judged.of([grades]))[measure][0])


def test_graded_ndcg_by_hand() -> None:
    # grades 0, 2, unjudged, 1 at ranks 1 to 4; the ideal order is 3, 2, 1
    dcg = 2 / np.log2(3) + 1 / np.log2(5)
    ideal = 3 + 2 / np.log2(3) + 1 / np.log2(4)
    assert value("nDCG@10", [5, 6, 9, 7], {5: 0, 6: 2, 7: 1, 8: 3}) == pytest.approx(dcg / ideal, abs=1e-12)


def test_the_ideal_is_cut_where_the_ranking_is() -> None:
    assert value("nDCG@2", [0, 1, 2], {0: 1, 1: 1, 2: 1}) == 1.0
    assert value("nDCG@1", [1], {0: 2, 1: 1}) == 0.5


def test_ties_go_to_the_greater_id() -> None:
    documents = Vectors(np.ones((3, 32), np.float32), ["10", "9", "a"])
    rows = top_k(np.zeros((1, 3), np.float32), Documents(documents.ids).tie_rank, 3)
    assert [documents.ids[row] for row in rows[0]] == ["a", "9", "10"]
    assert value("RR@10", rows[0].tolist(), {0: 1}) == pytest.approx(1 / 3)


def test_fewer_than_ten_results() -> None:
    assert value("nDCG@10", [4, -1, -1], {4: 1, 5: 1}) == pytest.approx(1 / (1 + 1 / np.log2(3)))
    assert value("R@100", [4, -1, -1], {4: 1, 5: 1}) == 0.5
    assert value("AP@100", [4, -1, -1], {4: 1, 5: 1}) == 0.5


@pytest.mark.parametrize("measure", ["nDCG@10", "R@10", "RR@10", "AP@10"])
def test_nothing_relevant_retrieved_nothing_retrieved_nothing_relevant(measure: str) -> None:
    assert value(measure, [1, 2], {0: 1}) == 0.0
    assert value(measure, [-1, -1], {0: 1}) == 0.0
    assert value(measure, [0, 1], {0: 0, 1: -1}) == 0.0
    assert value(measure, [0, 1], {}) == 0.0


def test_negative_grades_count_nothing() -> None:
    assert value("nDCG@10", [1, 0], {0: 1, 1: -3}) == pytest.approx(1 / np.log2(3))
    assert value("R@1", [1, 0], {0: 1, 1: -3}) == 0.0


def test_average_precision_by_hand() -> None:
    assert value("AP@10", [0, 9, 1, 8, 2], {0: 1, 1: 1, 2: 2, 3: 1}) == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 4)
    assert value("AP@3", [0, 9, 1, 8, 2], {0: 1, 1: 1, 2: 2, 3: 1}) == pytest.approx((1 / 1 + 2 / 3) / 4)


def test_a_query_that_is_a_document_never_finds_itself() -> None:
    rng = np.random.default_rng(0)
    documents = Vectors.of(rng.standard_normal((20, 32)))
    index = MemoryBackend(documents, Rotation.identity(32))
    queries = documents.all()
    judged = Judged.of([{(row + 1) % 20: 1} for row in range(20)])
    with_itself = index.search(queries, 32, 20).candidates
    without = index.search(queries, 32, 20, own=np.arange(20)).candidates
    assert (with_itself[:, 0] == np.arange(20)).all()
    assert (without != np.arange(20)[:, None]).all()
    assert (without[:, -1] == -1).all()  # one document fewer than asked for
    np.testing.assert_array_equal(without[:, :-1], with_itself[:, 1:])
    before, after = (1 / evaluate([Measure("RR", 20)], rows, judged)["RR@20"] for rows in (with_itself, without))
    np.testing.assert_allclose(before - after, 1)  # every other document moves up by one


def test_queries_do_not_share_judgements() -> None:
    judged = Judged.of([{0: 1}, {}, {1: 1}])
    assert evaluate([Measure("R", 1)], np.array([[1], [0], [1]]), judged)["R@1"].tolist() == [0.0, 0.0, 1.0]


def test_measures_are_read_and_written() -> None:
    assert parse_measures("nDCG@10 R@100") == (Measure("nDCG", 10), Measure("R", 100))
    assert parse_measures(" ndcg@10,rr@5, nDCG@10 ") == (Measure("nDCG", 10), Measure("RR", 5))
    assert [str(measure) for measure in parse_measures("nDCG@10 AP@1000")] == ["nDCG@10", "AP@1000"]


def test_measures_have_the_names_people_type() -> None:
    asked = parse_measures("MAP@10 mrr@10 Recall@100 precision@5 success@1 AP@10")
    assert [str(measure) for measure in asked] == ["AP@10", "RR@10", "R@100", "P@5", "Success@1"]


def test_precision_and_success_by_hand() -> None:
    judged = Judged.of([{0: 1, 1: 2, 2: 0}, {0: 1}, {}])
    found = measured(parse_measures("P@2 P@5 Success@1 Success@2 nDCG@2"), np.array([[2, 1], [5, -1], [0, 1]]), judged)
    assert found["P@2"].tolist() == [0.5, 0.0, 0.0]
    assert found["P@5"].tolist() == [0.2, 0.0, 0.0]
    assert found["Success@1"].tolist() == [0.0, 0.0, 0.0]
    assert found["Success@2"].tolist() == [1.0, 0.0, 0.0]
    assert list(found) == ["P@2", "P@5", "Success@1", "Success@2", "nDCG@2"]


@pytest.mark.parametrize("text", ["F1@10", "nDCG", "AP", "nDCG@", "nDCG@0", "nDCG@-1", "nDCG@10x", "", "nDCG@1.5"])
def test_an_unknown_measure_is_told_what_there_is(text: str) -> None:
    with pytest.raises(OptionError, match=r"there are nDCG@k, R@k, RR@k, AP@k, P@k, Success@k, as in nDCG@10"):
        parse_measures(text)


def test_rankings_and_judgements_must_be_as_many() -> None:
    with pytest.raises(OptionError, match="2 rankings but judgements for 1 queries"):
        evaluate([Measure("R", 1)], np.zeros((2, 1), np.int64), Judged.of([{0: 1}]))


def test_ties_at_the_cut() -> None:
    scores = np.array([[3, 2, 2], [3, 3, 1], [2, 1, 1 + 1e-12], [5, -np.inf, -np.inf]])
    assert tied_at_cut(scores, 2) == 0.5  # the first, and the third once its scores are 32-bit
    assert tied_at_cut(scores, 1) == 0.25
    assert tied_at_cut(scores, 3) == 0.0
