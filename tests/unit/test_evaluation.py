"""Evaluation beyond its JSON: identical ids, ties, the watched policy, curves and the report."""

import builtins
import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, compare, evaluate
from adawidth.data import Dataset, Qrels, Vectors, unit
from adawidth.errors import AdaWidthError, DataError, OptionalDependencyError
from adawidth.evaluation.curves import Chart, Curve, of_comparison, of_costs, of_evaluation, of_record
from adawidth.evaluation.watch import Watched
from adawidth.evaluation.widths import parse_widths
from adawidth.policies import Fixed
from adawidth.report import read_results, write_report
from adawidth.report.report import render
from adawidth.report.svg import series
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture(scope="module")
def results(model: AdaWidth, collection: Dataset) -> dict:
    comparison = compare(collection, ["truncation", "random", model], widths=[16, 32, "full"], seeds=2)
    return {**comparison.to_json(), "evaluation": evaluate(model, collection, widths=["auto"]).to_json()}


def test_a_query_that_is_a_document_never_finds_itself() -> None:
    rows = unit(np.random.default_rng(0).standard_normal((40, 32)).astype(np.float32))
    vectors = Vectors.of(rows, [f"x{i}" for i in range(40)])
    qrels = {split: Qrels({f"x{i}": {f"x{i}": 1.0} for i in rows_of}) for split, rows_of in (("train", range(20)), ("test", range(20, 40)))}
    data = Dataset(vectors, vectors, qrels, queries_are_documents=True)
    model = AdaWidth.fit(data, recipe="identity")
    for protocol in ("exhaustive", "own-shortlist", "frozen-shortlist"):
        result = evaluate(model, data, widths=[16, "full", "auto"], protocol=protocol, shortlist=20)  # type: ignore[arg-type]
        assert all(point.mean("nDCG@10") == 0 for point in result.results)
    assert compare(data, ["truncation"], widths=[16]).results[0].quality == 0
    assert evaluate(model, replace(data, queries_are_documents=False), widths=["full"])["full"].mean("nDCG@10") == 1


def test_ties_at_the_cut_off_are_told(model: AdaWidth, caplog: pytest.LogCaptureFixture) -> None:
    rows = unit(np.random.default_rng(0).standard_normal((10, 64)).astype(np.float32))
    documents = Vectors.of(np.repeat(rows, 20, axis=0), [f"d{i}" for i in range(200)])
    queries = Vectors.of(rows, [f"q{i}" for i in range(10)])
    data = Dataset(documents, queries, {"test": Qrels({f"q{i}": {f"d{20 * i}": 1.0} for i in range(10)})})
    with caplog.at_level(logging.WARNING, "adawidth"):
        result = evaluate(model, data, widths=["full"], measures=["nDCG@10"])
    assert result.to_json()["results"][0]["tied"]["nDCG@10"] > 0.5  # equal rows, but for rounding
    assert "equal scores at a cut-off" in caplog.text


def test_fixed_widths_equal_the_fixed_policy_over_all_documents(model: AdaWidth, collection: Dataset) -> None:
    fixed = evaluate(model, collection, widths=[32])[32]
    routed = evaluate(model, collection, widths=["auto"], policy="fixed", budget=32, start=32, shortlist=480)["auto"]
    assert routed.mean_width == fixed.mean_width == 32
    np.testing.assert_allclose(routed.per_query["nDCG@10"], fixed.per_query["nDCG@10"], atol=1e-12)
    assert routed.details["escalated"] == 0
    assert routed.details["fixed"]["difference"]["mean"] == 0


def test_a_policy_is_watched_over_several_batches(model: AdaWidth, collection: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adawidth.stages.loop.BATCH", 7)
    queries = model.rotation.apply(collection.queries_of("test").all())
    watched = Watched(Fixed(48, 32))
    by_stages(MemoryBackend(collection.documents, model.rotation), queries, watched, 10, shortlist=50)
    assert watched.survivors(60, 50) == {32: 50.0, 48: 50.0}
    assert watched.ends(60) == {48: 60}


def test_online_keeps_to_the_budget(model: AdaWidth, collection: Dataset) -> None:
    point = evaluate(model, collection, widths=["auto"], budget=50, online=True)["auto"]
    assert point.mean_width <= 50 * 1.02
    assert point.details["online"] is True


def test_widths_as_typed() -> None:
    assert parse_widths("32, 64 full,auto") == (32, 64, "full", "auto")


def test_curves_of_a_comparison(results: dict) -> None:
    chart = of_comparison(results)
    assert [curve.name for curve in chart.curves] == ["truncation", "random", "adawidth"]
    assert chart.curves[0].widths == (16, 32, 64)
    assert chart.curves[1].sds[0] > 0
    assert chart.frozen == pytest.approx(chart.curves[0].means[-1])


def test_curves_of_an_evaluation(model: AdaWidth, collection: Dataset) -> None:
    chart = of_evaluation(evaluate(model, collection, widths=[16, "full", "auto"]).to_json())
    assert chart.curves[0].widths == (16, 64)
    assert chart.spots[0].name == "taper"


def test_curves_of_a_model(model: AdaWidth) -> None:
    assert [curve.name for curve in of_record(model.record, 64).curves] == ["pca"]


def test_the_report_stands_alone(results: dict, tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", results)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 4  # wide, narrow, and two of costs
    assert "bytes stored per document" in page
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert "prefers-color-scheme: dark" in page
    assert "By stages: taper" in page
    assert "standard deviation" in page
    assert not re.search(r"#0[1-9a-f]0[a-f1-9]0", page)  # no stand-in colour is left
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_costs_leave_out_what_nobody_would_choose() -> None:
    rows = [("a", 32, 10, 0.5), ("a", 64, 20, 0.4), ("a", 128, 30, 0.6), ("b", 32, 5, 0.1)]
    result = {
        "encoder_width": 128,
        "measure": "nDCG@10",
        "frozen": {"nDCG@10": 0.7},
        "results": [{"method": m, "width": w, "floats": cost} for m, w, cost, _ in rows for _ in range(2)],
        "summary": [{"method": m, "width": w, "mean": mean, "sd": 0.0} for m, w, _, mean in rows],
    }
    chart = of_costs(result, "floats", "bytes", 4.0)
    assert [(curve.name, curve.widths, curve.means) for curve in chart.curves] == [("a", (40, 120), (0.5, 0.6)), ("b", (20,), (0.1,))]


def test_of_many_methods_the_best_and_ours_have_colours() -> None:
    curves = [Curve(f"m{i}", (32,), (i / 20,), (0.0,)) for i in range(12)]
    curves += [Curve(name, (32,), (0.0,), (0.0,)) for name in ("truncation", "adawidth")]
    numbers = series(Chart("nDCG@10", tuple(curves), (), None, 64))
    assert numbers["adawidth"] == 0
    assert {name for name, number in numbers.items() if number is None} == {f"m{i}" for i in range(5)}
    coloured = [number for number in numbers.values() if number is not None]
    assert sorted(coloured) == list(range(9))


def test_the_same_results_give_the_same_page(results: dict) -> None:
    assert render(results) == render(json.loads(json.dumps(results)))


def test_names_are_escaped(results: dict) -> None:
    assert "<script>" not in render({**results, "dataset": "<script>alert(1)</script>"})


def test_a_report_without_matplotlib_says_what_to_install(results: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(OptionalDependencyError, match=re.escape("pip install 'adawidth[report]'")):
        render(results)


@pytest.mark.parametrize(
    ("content", "message"), [("{", "this is no JSON"), ("[]", "neither the results of"), ('{"results": 1}', "neither the results of")]
)
def test_results_that_are_none(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_results(tmp_path)


def test_results_that_lack_something(results: dict) -> None:
    with pytest.raises(AdaWidthError, match="lack what a report shows"):
        render({**results, "summary": [{"method": "pca"}]})
