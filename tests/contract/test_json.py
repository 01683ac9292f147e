"""The JSON objects that commands print, field by field: a contract that may grow but not change."""

import json

import numpy as np
import pytest

from adawidth import AdaWidth, compare, evaluate
from adawidth.data import Dataset, Vectors, unit
from adawidth.errors import DataError, OptionError
from adawidth.evaluation import Evaluation

DOCUMENTS, WIDTH = 480, 64


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture(scope="module")
def evaluation(model: AdaWidth, collection: Dataset) -> Evaluation:
    return evaluate(model, collection, widths=[16, 32, "full", "auto"], quality=0.95, shortlist=200)


def entry(evaluation: Evaluation, width: int | str) -> dict:
    return evaluation[width].to_json()


def test_the_head_of_an_evaluation(evaluation: Evaluation) -> None:
    result = json.loads(json.dumps(evaluation.to_json()))
    assert {name: value for name, value in result.items() if name != "results"} == {
        "dataset": "collection",
        "encoder": "tiny",
        "encoder_width": WIDTH,
        "split": "test",
        "queries": 60,
        "documents": DOCUMENTS,
        "protocol": "exhaustive",
    }
    assert [point["width"] for point in result["results"]] == [16, 32, "full", "frozen", "auto"]


def test_a_fixed_width(evaluation: Evaluation) -> None:
    point = entry(evaluation, 32)
    assert set(point) == {"width", "mean_width", "nDCG@10", "R@100", "multiply_adds", "unseen"}
    assert point["mean_width"] == 32.0
    assert point["multiply_adds"] == DOCUMENTS * 32 + WIDTH * 32
    assert 0 < point["nDCG@10"] <= 1
    assert set(point["unseen"]) == {"queries", "nDCG@10", "R@100"}
    assert 0 <= point["unseen"]["queries"] <= 60


def test_a_rotation_changes_nothing_at_full_width(evaluation: Evaluation) -> None:
    full, frozen = entry(evaluation, "full"), entry(evaluation, "frozen")
    assert full["nDCG@10"] == pytest.approx(frozen["nDCG@10"], abs=1e-4)
    assert full["mean_width"] == frozen["mean_width"] == WIDTH
    assert full["multiply_adds"] - frozen["multiply_adds"] == WIDTH * WIDTH  # turning the query


def test_a_policy(evaluation: Evaluation) -> None:
    point = entry(evaluation, "auto")
    assert point["policy"] == "taper"
    assert point["quality"] == 0.95
    assert "budget" not in point
    assert set(point["fixed"]) == {"width", "nDCG@10", "R@100", "multiply_adds", "difference"}
    assert point["fixed"]["width"] == np.ceil(point["mean_width"])
    difference = point["fixed"]["difference"]
    assert difference["measure"] == "nDCG@10"
    assert difference["low"] <= difference["mean"] <= difference["high"]
    assert difference["mean"] == pytest.approx(point["nDCG@10"] - point["fixed"]["nDCG@10"])


def test_survivors_account_for_the_mean_width(evaluation: Evaluation) -> None:
    point = entry(evaluation, "auto")
    widths = list(map(int, point["survivors"]))
    steps = np.diff(widths, prepend=0)
    read = sum(count * step for count, step in zip(point["survivors"].values(), steps, strict=True))
    assert widths[0] == point["start"]
    assert point["survivors"][str(point["start"])] == point["shortlist"] == 200
    assert read / 200 == pytest.approx(point["mean_width"])
    assert sum(point["widths"].values()) == 60
    assert point["escalated"] == pytest.approx(1 - point["widths"].get(str(point["start"]), 0) / 60)


def test_unseen_queries_are_those_without_a_positive_of_train_or_dev(evaluation: Evaluation, collection: Dataset) -> None:
    taught = {d for split in ("train", "dev") for grades in collection.qrels[split].grades.values() for d in grades}
    unseen = [not taught & grades.keys() for grades in collection.qrels["test"].grades.values()]
    point = evaluation[32]
    assert point.unseen is not None
    assert point.unseen.tolist() == unseen
    assert entry(evaluation, 32)["unseen"]["queries"] == sum(unseen)


def test_unseen_is_absent_without_labels(collection: Dataset) -> None:
    model = AdaWidth.fit(collection, recipe="pca", labels=False)
    assert all("unseen" not in point for point in evaluate(model, collection, widths=[32]).to_json()["results"])


@pytest.mark.parametrize(
    ("protocol", "cost"), [("own-shortlist", 480 * 64 + 0 + 64 * 64), ("frozen-shortlist", 480 * 64 + 200 * 64 + 64 * 64)]
)
def test_shortlist_protocols(model: AdaWidth, collection: Dataset, protocol: str, cost: int) -> None:
    result = evaluate(model, collection, widths=[16, "full", "auto"], protocol=protocol, shortlist=200)  # type: ignore[arg-type]
    assert result.to_json()["protocol"] == protocol
    assert entry(result, "full")["multiply_adds"] == cost
    assert entry(result, "full")["nDCG@10"] == pytest.approx(entry(result, "frozen")["nDCG@10"], abs=1e-4)


def test_options_of_a_policy_imply_auto(model: AdaWidth, collection: Dataset) -> None:
    result = evaluate(model, collection, widths=[32], budget=48)
    assert entry(result, "auto")["budget"] == 48
    assert entry(result, "auto")["policy"] == "taper"


def test_default_widths_leave_out_what_the_encoder_has_not(model: AdaWidth, collection: Dataset) -> None:
    assert [point.width for point in evaluate(model, collection).results] == [32, "full", "frozen"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": [32, 65]}, "width 65 is not between 1 and the encoder width 64"),
        ({"widths": ["wide"]}, "there is no width 'wide'; a width is a number or full or auto"),
        ({"protocol": "quick"}, "there is no protocol 'quick'"),
        ({"split": "holdout"}, "has no split 'holdout'; it has dev, test, train"),
        ({"measures": ["nDCG"]}, "there is no measure 'nDCG'"),
        ({"budget": 65}, "65 is not between"),
        ({"online": True}, "the online controller keeps to a budget"),
    ],
)
def test_bad_options_of_an_evaluation(model: AdaWidth, collection: Dataset, options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        evaluate(model, collection, **options)


def test_a_model_of_another_width(model: AdaWidth) -> None:
    rows = np.random.default_rng(0).standard_normal((20, 32)).astype(np.float32)
    other = Dataset(*(_vectors(rows) for _ in range(2)))
    with pytest.raises(DataError, match="32 wide, the model 64"):
        evaluate(model, other)


def _vectors(rows: np.ndarray) -> Vectors:
    return Vectors.of(unit(rows))


def test_a_comparison(collection: Dataset, model: AdaWidth) -> None:
    result = json.loads(json.dumps(compare(collection, ["truncation", "random", model], widths=[32, 40, "full"], seeds=2).to_json()))
    assert {
        name: result[name] for name in ("dataset", "encoder", "encoder_width", "split", "queries", "documents", "protocol", "measure")
    } == {
        "dataset": "collection",
        "encoder": "tiny",
        "encoder_width": WIDTH,
        "split": "test",
        "queries": 60,
        "documents": DOCUMENTS,
        "protocol": "exhaustive",
        "measure": "nDCG@10",
    }
    names = {"method", "seed", "width", "nDCG@10", "unseen", "mean_width", "multiply_adds"}
    names |= {"parameters", "fit_seconds", "stored_floats_per_document"}
    assert all(set(row) - {"spent", "reads_to"} == names for row in result["results"])
    assert {row["method"] for row in result["results"] if "reads_to" in row} == {"adawidth"}
    for row in result["results"]:
        m = WIDTH if row["width"] == "full" else row["width"]
        assert row["mean_width"] <= 1.1 * m  # a budget is set on dev
        assert ("spent" in row) == (row["method"] == "adawidth" and m == 40)  # the only one whose queries spend differently
        assert sum(row.get("spent", {"": 60}).values()) == 60
        if row["method"] == "truncation":
            assert row["multiply_adds"] == m * DOCUMENTS
    assert [(row["method"], row["seed"], row["width"]) for row in result["results"]] == [
        *((method, seed, width) for method in ("truncation", "random") for seed in (0, 1) for width in (32, 40, "full")),
        ("adawidth", 0, 32),
        ("adawidth", 0, 40),
        ("adawidth", 0, "full"),
    ]
    assert [row["stored_floats_per_document"] for row in result["results"][:3]] == [32, 40, 64]
    summary = {(cell["method"], cell["width"]): cell for cell in result["summary"]}
    assert set(result["summary"][0]) == {"method", "width", "mean", "sd"}
    assert summary["truncation", 32]["sd"] == 0
    assert summary["random", 32]["sd"] > 0
    figures = [row["nDCG@10"] for row in result["results"] if (row["method"], row["width"]) == ("random", 32)]
    assert summary["random", 32]["mean"] == pytest.approx(np.mean(figures))
    assert result["frozen"]["nDCG@10"] == pytest.approx(summary["truncation", "full"]["mean"])


def test_a_comparison_agrees_with_an_evaluation(collection: Dataset, model: AdaWidth, evaluation: Evaluation) -> None:
    row = compare(collection, [model], widths=[32]).results[0]
    assert row.quality == pytest.approx(entry(evaluation, 32)["nDCG@10"], abs=1e-9)
    assert row.unseen is not None
    assert row.unseen["nDCG@10"] == pytest.approx(entry(evaluation, 32)["unseen"]["nDCG@10"], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["magic"]}, "there is no method 'magic'; there are truncation"),
        ({"methods": []}, "there is no method given"),
        ({"widths": ["auto"]}, "there is no width 'auto'"),
        ({"seeds": 0}, "0 seeds: at least 1"),
    ],
)
def test_bad_options_of_a_comparison(collection: Dataset, options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compare(collection, **options)
