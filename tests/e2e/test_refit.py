"""New labels, same documents, same index: refit, then evaluate by task, as a user types it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adawidth.cli.app import app

pytest.importorskip("torch")


def adawidth(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_object(result: Result) -> dict:
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.fixture
def model_folder(dataset_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "tiny.model"
    assert adawidth("fit", dataset_folder, "--out", folder, "--recipe", "pca", "--no-labels").exit_code == 0
    return folder


def few_labels(dataset_folder: Path, count: int, more: str = "") -> None:
    """Keeps the labels of so many train queries, two lines each, so that a refit takes no time."""
    file = dataset_folder / "qrels" / "train.tsv"
    file.write_text("\n".join(file.read_text().splitlines()[: 1 + 2 * count]) + "\n" + more)


@pytest.mark.slow
def test_refit_then_evaluate_by_task(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    few_labels(dataset_folder, 30)
    out = tmp_path / "refitted.model"
    before = one_object(adawidth("info", model_folder, "--json"))
    facts = one_object(adawidth("refit", model_folder, dataset_folder, "--out", out, "--task", "shop", "--seed", "1", "--json"))
    assert facts["model"] == str(out)
    assert facts["fingerprint"] == before["fingerprint"]
    (task,) = facts["tasks"]
    assert task["task"] == "shop"
    assert task["seed"] == 1
    assert task["train_queries"] == 30
    names = {
        "task",
        "dataset",
        "encoder",
        "seed",
        "documents",
        "train_queries",
        "dev_queries",
        "dev_measure",
        "chosen",
        "strength",
        "reason",
    }
    assert set(task) == names | {"trials", "target_width", "seen_documents"}
    assert {"recipe", "strength", "steps", "taken_at", "dev"} == set(task["trials"][0])
    assert "task shop" in adawidth("info", out).stdout

    plain = one_object(adawidth("evaluate", model_folder, dataset_folder, "--widths", "32,full", "--json"))
    off = one_object(adawidth("evaluate", out, dataset_folder, "--widths", "32,full", "--task", "none", "--json"))
    assert off == plain
    assert one_object(adawidth("evaluate", out, dataset_folder, "--widths", "32,full", "--json")) == plain  # no task is called default
    mapped = one_object(adawidth("evaluate", out, dataset_folder, "--widths", "32,full,auto", "--task", "shop", "--json"))
    assert mapped["task"] == "shop"
    assert [entry["width"] for entry in mapped["results"]] == [32, "full", "frozen", "auto"]
    assert all("unseen" in entry for entry in mapped["results"])
    assert [e["multiply_adds"] for e in mapped["results"][:2]] == [e["multiply_adds"] for e in plain["results"][:2]]  # a map costs no more
    assert "task shop" in adawidth("evaluate", out, dataset_folder, "--widths", "32", "--task", "shop").stdout


def test_clicks_are_labels(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    few_labels(dataset_folder, 5, "q0\td7\t1\nq0\td7\t0\nq0\td9\t-1\n")
    result = adawidth("refit", model_folder, dataset_folder, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.stderr
    assert "rotation alone" in result.stdout
    refused = adawidth("fit", dataset_folder, "--out", tmp_path / "n", "--recipe", "pca")
    assert "keep one of them" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("refit", "{model}", "{data}", "--out", "{model}"), "exists: choose another path (--out), or replace it with force (--force)"),
        (("refit", "{model}", "{data}", "--out", "{new}", "--task", "none"), "'none' can't name a task"),
        (("evaluate", "{model}", "{data}", "--task", "shop"), "there is no task 'shop'; there are none"),
    ],
)
def test_one_line_says_what_is_wrong(dataset_folder: Path, model_folder: Path, tmp_path: Path, arguments: tuple, words: str) -> None:
    places = {"model": model_folder, "data": dataset_folder, "new": tmp_path / "new"}
    result = adawidth(*(argument.format(**places) for argument in arguments))
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_fit_teaches_rotation_and_query_map_at_once(dataset_folder: Path, tmp_path: Path) -> None:
    few_labels(dataset_folder, 30)
    out = tmp_path / "both.model"
    fitted = adawidth("fit", dataset_folder, "--out", out, "--recipe", "kyfan", "--query-map")
    assert fitted.exit_code == 0, fitted.stderr
    assert "task default:" in fitted.stdout
    (task,) = one_object(adawidth("info", out, "--json"))["tasks"]
    assert task["train_queries"] == 30
    refused = adawidth("fit", dataset_folder, "--out", tmp_path / "none.model", "--no-labels", "--query-map")
    assert refused.exit_code == 1
    assert "learned from labels, and there are none" in refused.stderr
