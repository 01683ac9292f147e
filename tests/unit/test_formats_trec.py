"""Labels and runs go into files and come back the same."""

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adawidth.data import Qrels, Vectors
from adawidth.errors import DataError
from adawidth.formats import read_qrels, read_run, write_qrels, write_run
from adawidth.hits import Hits

words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=8)
grades = st.one_of(st.integers(-2, 4).map(float), st.floats(-2, 4, allow_nan=False))
labels = st.dictionaries(words, st.dictionaries(words, grades, min_size=1, max_size=5), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(content=labels, name=st.sampled_from(["x.tsv", "x.tsv.gz", "x.qrels", "x.qrels.gz"]))
def test_labels_round_trip(content: dict[str, dict[str, float]], name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("qrels") / name
    write_qrels(file, Qrels(content))
    found = read_qrels(file)
    assert found.grades == content
    assert list(found.grades) == list(content)  # queries keep their order
    assert found.name == str(file)


def test_the_columns_are_beirs_and_trecs(tmp_path: Path) -> None:
    qrels = Qrels({"q1": {"d 1": 2.0}, "q2": {"d2": 0.5}})
    write_qrels(tmp_path / "x.tsv", qrels)
    assert (tmp_path / "x.tsv").read_text() == "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq2\td2\t0.5\n"
    write_qrels(tmp_path / "x.qrels", Qrels({"q1": {"d1": -1.0}}))
    assert (tmp_path / "x.qrels").read_text() == "q1 0 d1 -1\n"
    (tmp_path / "tabs.qrels").write_text("q1\t0\td1\t3\r\n")
    assert read_qrels(tmp_path / "tabs.qrels").grades == {"q1": {"d1": 3.0}}


def test_a_judgement_may_be_repeated_but_not_contradicted(tmp_path: Path) -> None:
    file = tmp_path / "x.qrels"
    file.write_text("q 0 d 1\nq 0 d 1\n")
    assert read_qrels(file).grades == {"q": {"d": 1.0}}
    file.write_text("q 0 d 1\nq 0 d 2\n")
    with pytest.raises(DataError, match=r"x.qrels:2: query 'q' and document 'd' have grade 2 here and 1 further up"):
        read_qrels(file)


def hits(scores: list[list[float]], rows: list[list[int]]) -> Hits:
    documents = Vectors(np.ones((4, 32), np.float32), ["a", "b", "c", "d"])
    return Hits(np.array(rows), np.array(scores, np.float32), np.zeros(len(rows)), documents)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.permutations([0, 1, 2, 3]), min_size=1, max_size=4),
    values=st.lists(st.floats(-1, 1, width=32), min_size=16, max_size=16),
    name=st.sampled_from(["x.trec", "x.trec.gz"]),
)
def test_runs_come_back_in_their_order(
    rows: list[list[int]], values: list[float], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answers = hits([values[4 * i : 4 * i + 4] for i in range(len(rows))], rows)
    file = tmp_path_factory.mktemp("runs") / name
    write_run(file, range(len(rows)), answers)
    assert [list(found) for found in read_run(file).values()] == answers.ids


def test_falling_scores_are_written_as_they_are(tmp_path: Path) -> None:
    near = float(np.float32(0.1)), float(np.nextafter(np.float32(0.1), np.float32(0)))  # neighbours: nine digits tell them apart
    write_run(tmp_path / "x.trec", ["q"], hits([[0.75, *near, -np.inf]], [[3, 0, 1, -1]]), tag="mine")
    assert list(read_run(tmp_path / "x.trec")["q"].items()) == [("d", 0.75), ("a", pytest.approx(0.1)), ("b", pytest.approx(0.1))]
    written = (tmp_path / "x.trec").read_text().splitlines()
    assert written[0] == "q Q0 d 1 0.75 mine"
    assert [np.float32(line.split()[4]) for line in written[1:]] == list(near)


def test_equal_scores_stay_equal_where_ids_put_them_in_order(tmp_path: Path) -> None:
    write_run(tmp_path / "x.trec", ["q"], hits([[0.5, 0.5, 0.5, 0.5]], [[3, 2, 0, 1]]))
    scores = [np.float32(score) for score in read_run(tmp_path / "x.trec")["q"].values()]
    assert scores[:3] == [0.5, 0.5, 0.5]
    assert scores[3] == np.nextafter(np.float32(0.5), np.float32(0))


def test_a_run_is_ranked_by_score_and_id_whatever_its_lines_say(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_text("q Q0 low 1 0.1 t\nq Q0 b 2 0.9 t\nq Q0 c 3 0.9000000001 t\nother\tQ0\ta\t1\t1\tt\n")
    assert {query: list(found) for query, found in read_run(tmp_path / "x.trec").items()} == {"q": ["c", "b", "low"], "other": ["a"]}
    (tmp_path / "y.trec").write_text("q Q0 b 2 0.9000000001 t\nq Q0 c 3 0.9 t\n")  # equal as 32-bit floats
    assert list(read_run(tmp_path / "y.trec")["q"]) == ["c", "b"]


def test_ids_that_would_break_a_line_are_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"id 'two words' can't be a column here: spaces"):
        write_qrels(tmp_path / "x.qrels", Qrels({"q": {"two words": 1}}))
    with pytest.raises(DataError, match="tabs stand between columns"):
        write_qrels(tmp_path / "x.tsv.gz", Qrels({"q\t": {"d": 1}}))
    with pytest.raises(DataError, match=r"id 'q 1' can't be a column"):
        write_run(tmp_path / "x.trec", ["q 1"], hits([[1.0]], [[0]]))
    with pytest.raises(DataError, match="2 query ids but answers to 1 queries"):
        write_run(tmp_path / "x.trec", ["p", "q"], hits([[1.0]], [[0]]))
    assert not list(tmp_path.iterdir())


def test_repeated_pairs_have_the_mean_of_their_grades_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "clicks.tsv"
    file.write_text("query-id\tcorpus-id\tscore\nq\td\t1\nq\td\t0\nq\te\t0\nq\td\t0\nq\td\t1\n")
    assert read_qrels(file, repeated="mean").grades == {"q": {"d": 0.5, "e": 0.0}}
