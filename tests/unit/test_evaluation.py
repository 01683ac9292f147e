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
from adawidth.baselines import REGISTRY
from adawidth.colours import ALWAYS, style_of
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
from adawidth.training.recipes import LABELLED, UNLABELLED


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


def test_what_costs_the_same_is_one_point() -> None:
    rows = [("a", 32, 8, 0.5), ("a", 64, 32, 0.55), ("a", 96, 32, 0.6), ("a", 128, 32, 0.58)]
    result = {
        "encoder_width": 128,
        "measure": "nDCG@10",
        "frozen": {"nDCG@10": 0.7},
        "results": [{"method": m, "width": w, "floats": cost} for m, w, cost, _ in rows],
        "summary": [{"method": m, "width": w, "mean": mean, "sd": 0.0} for m, w, _, mean in rows],
    }
    (curve,) = of_costs(result, "floats", "bytes", 4.0).curves
    assert (curve.widths, curve.means) == ((32, 128), (0.5, 0.6))


def test_of_many_methods_the_best_and_ours_have_colours() -> None:
    names = [name for name in REGISTRY if ":" not in name]
    curves = tuple(Curve(name, (32,), (0.0 if name in ALWAYS else place / 100,), (0.0,)) for place, name in enumerate(names))
    styles = series(Chart("nDCG@10", curves, (), None, 64))
    coloured = {name for name, style in styles.items() if style is not None}
    assert len(coloured) == 9 < len(names)
    assert set(ALWAYS) <= coloured
    ranked = sorted(set(names) - set(ALWAYS), key=names.index)
    assert coloured - set(ALWAYS) == set(ranked[-5:])


def test_a_method_has_one_style_in_every_chart_and_no_other_has_it() -> None:
    methods = [name for name in REGISTRY if ":" not in name]
    recipes = [recipe.name for recipe in (*LABELLED, *UNLABELLED)]
    styles = {name: style_of(name) for name in (*methods, *recipes)}
    assert None not in styles.values()
    assert len(set(styles.values())) == len(styles)
    for chart in (("pca", "adawidth"), ("adawidth", "truncation", "pca")):
        curves = tuple(Curve(name, (32,), (0.5,), (0.0,)) for name in chart)
        assert series(Chart("nDCG@10", curves, (), None, 64))["pca"] == styles["pca"]
    assert style_of("pca:centred") not in styles.values()
    assert style_of("pca:centred").colour == styles["pca"].colour
    assert style_of("identity") == styles["truncation"]


def test_a_report_has_unseen_queries_every_measure_and_what_a_budget_is(model: AdaWidth, collection: Dataset, results: dict) -> None:
    example = {"query": "a <b>", "relevant": ["d1"], "answers": {"32": ["d1", "d2"]}, "texts": {"d1": "first"}}
    page = render({**results, "examples": [example]})
    for words in ("unseen", "R@100", "a &lt;b&gt;", "<b>d1</b><small>first</small>", "scrolls sideways"):
        assert words in page
    alone = render(evaluate(model, collection, widths=[16, "full"], measures=["nDCG@10", "R@100", "P@5"]).to_json())
    for words in ("P@5", "R@100 unseen", "frozen", "multiply-adds"):
        assert words in alone


def test_no_words_are_drawn_inside_a_picture(results: dict) -> None:
    """They would overlap curves; the legend has them."""
    page = render(results)
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "frozen" not in drawn
    assert "taper" not in drawn
    assert "frozen encoder, all 64: 0." in page
    assert "by stages: 0." in page


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
