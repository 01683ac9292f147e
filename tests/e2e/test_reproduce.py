"""`adawidth reproduce` as a user types it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adawidth.baselines import descent, paper
from adawidth.cli.app import app
from adawidth.experiments import capacity, curves, scaling, sweep
from adawidth.experiments.cells import Store
from adawidth.experiments.reproduce import REGISTRY, experiment
from adawidth.training import choose, refit
from adawidth.training.recipes import PAPER

pytest.importorskip("matplotlib")


def reproduce(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments), "--smallest", "60"])


def measured(done: Result, out: Path, name: str) -> dict[str, Any]:
    """The JSON that a run has written."""
    assert done.exit_code == 0, f"{done.stderr} {done.exception}"
    result: dict[str, Any] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    return result


def test_scaling_writes_the_law_the_page_and_the_figure(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "reproduced"
    done = reproduce("scaling", dataset_folder, "--out", out)
    result = measured(done, out, "scaling")
    (cell,) = result["cells"]
    assert (cell["dataset"], cell["encoder"], cell["rotation"], cell["split"]) == ("collection", "tiny", "none", "train")
    assert cell["sizes"] == [60, 120, 240, 480]
    at, middle = cell["quantiles"]
    assert (at["quantile"], middle["quantile"]) == (0.9, 0.5)
    assert all(len(row) == len(cell["depths"]) for row in at["widths"])
    alone = CliRunner().invoke(app, ["width", str(dataset_folder), "--smallest", "60", "--quantile", "0.5", "--json"])
    law = json.loads(alone.stdout)["law"]
    assert {name: middle["law"][name] for name in ("a", "b", "c", "r2_mean_point")} == pytest.approx(
        {name: law[name] for name in ("a", "b", "c", "r2_mean_point")}
    )
    page = (out / "scaling.md").read_text(encoding="utf-8")
    assert result["verdict"] in page
    assert "| collection, tiny | 0.9 |" in page
    assert "(scaling.svg)" in page
    assert "collection, tiny" in (out / "scaling.svg").read_text(encoding="utf-8")
    assert result["verdict"].replace("**", "") in done.stdout
    assert not list(out.rglob("*.tmp"))


def test_stable_widths_counts_every_query_once(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "reproduced"
    done = reproduce("stable-widths", dataset_folder, "--out", out, "--json")
    result = measured(done, out, "stable-widths")
    assert json.loads(done.stdout) == result
    (cell,) = result["cells"]
    assert (cell["queries"], cell["k"]) == (120, 10)
    for bars in cell["bars"]:
        assert bars["bounds"] == [16, 32, 64]
        assert sum(bars["shares"]) + bars["no_stable_hit"] == pytest.approx(1)
    found = [1 - bars["no_stable_hit"] for bars in cell["bars"]]
    assert found == sorted(found)  # deeper lists find more
    assert 8 <= cell["own_width"] <= cell["one_width"] <= 64
    picture = (out / "stable-widths.svg").read_text(encoding="utf-8")
    assert "no stable hit" in picture
    assert "17–32" in picture


def test_an_interrupted_run_goes_on(dataset_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, other = tmp_path / "reproduced", tmp_path / "other"
    shutil.copytree(dataset_folder, other)
    fit = scaling.WidthLaw.fit

    def stopped(data: Any, *arguments: Any, **options: Any) -> Any:
        if data.name == "other":
            raise KeyboardInterrupt
        return fit(data, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(scaling.WidthLaw, "fit", stopped)
        done = reproduce("scaling", dataset_folder, other, "--out", out)
    assert done.exit_code == 130
    kept = out / "cells" / "scaling-collection-tiny.json"
    assert sorted(out.rglob("*.*")) == [kept, kept.with_suffix(".npz")]
    cell = json.loads(kept.read_text())
    kept.write_text(json.dumps({**cell, "queries": 7}))
    first, second = measured(reproduce("scaling", dataset_folder, other, "--out", out), out, "scaling")["cells"]
    assert (first["queries"], second["queries"]) == (7, 120)
    anew, _ = measured(reproduce("scaling", dataset_folder, other, "--out", out, "--force"), out, "scaling")["cells"]
    assert anew == cell


def test_the_rotation_of_a_model(dataset_folder: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "tiny.model", tmp_path / "reproduced"
    assert CliRunner().invoke(app, ["fit", str(dataset_folder), "--out", str(model), "--recipe", "pca"]).exit_code == 0
    (frozen,) = measured(reproduce("stable-widths", dataset_folder, "--out", out), out, "stable-widths")["cells"]
    refused = reproduce("stable-widths", dataset_folder, "--out", out, "--model", model)
    assert refused.exit_code == 1
    assert "was measured with fingerprint None" in refused.stderr
    (turned,) = measured(reproduce("stable-widths", dataset_folder, "--out", out, "--model", model, "--force"), out, "stable-widths")[
        "cells"
    ]
    assert turned["rotation"] == "pca"
    assert turned["own_width"] < frozen["own_width"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("curve", "collection"), "there is no experiment 'curve'; there are curves, vqa, capacity, ablation"),
        (("scaling", "nowhere"), "nowhere: there is no such folder"),
        (("scaling", "collection", "collection"), "2 cells have 1 names"),
        (("scaling", "collection", "--encoder", "none"), "there is no encoder"),
        (("scaling", "collection", "--encoder", ","), "give at least one dataset and one encoder"),
        (("scaling", "collection", "--seed", "1", "--out", "."), ". exists and holds no cells"),
    ],
)
def test_bad_input_is_one_line(
    dataset_folder: Path, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = reproduce(*(arguments if "--out" in arguments else (*arguments, "--out", "reproduced")))
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not (tmp_path / "reproduced").exists()


def test_a_damaged_cell_and_missing_labels(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "reproduced"
    cell = out / "cells" / "scaling-collection-tiny.json"
    cell.parent.mkdir(parents=True)
    cell.write_text("{")
    done = reproduce("scaling", dataset_folder, "--out", out)
    assert done.exit_code == 1
    assert "is no finished cell: remove it, or measure with force (--force)" in done.stderr
    cell.unlink()
    shutil.rmtree(dataset_folder / "qrels")
    done = reproduce("scaling", dataset_folder, "--out", out)
    assert done.exit_code == 1
    assert "no labels" in done.stderr


def test_a_failure_leaves_no_folder(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "some" / "reproduced"
    shutil.rmtree(dataset_folder / "qrels")
    assert reproduce("scaling", dataset_folder, "--out", out).exit_code == 1
    assert list(tmp_path.iterdir()) == [dataset_folder]


def test_a_folder_of_others_is_not_written_to(dataset_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "scaling.svg").write_text("precious")
    done = reproduce("scaling", dataset_folder, "--out", tmp_path / "figures", "--force")
    assert "figures exists and holds no cells of an earlier run: choose another folder (--out)" in done.stderr
    assert [file.read_text() for file in (tmp_path / "figures").iterdir()] == ["precious"]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that learns by gradient takes a few steps only."""
    short = replace(PAPER, steps=20)
    monkeypatch.setattr(choose, "PAPER", short)
    monkeypatch.setattr(paper, "PAPER", short)
    monkeypatch.setattr(sweep, "PAPER", short)
    monkeypatch.setattr(capacity, "REFLECTIONS", (8, 64))
    monkeypatch.setattr(capacity, "SPAN", (8, 64))
    monkeypatch.setattr(descent, "STEPS", 60)
    monkeypatch.setattr(choose, "LABELLED", tuple(replace(recipe, steps=20) for recipe in choose.LABELLED[:1]))
    monkeypatch.setattr(choose, "UNLABELLED", tuple(replace(recipe, steps=20) for recipe in choose.UNLABELLED[:1]))
    monkeypatch.setattr(refit, "RECIPES", tuple(replace(recipe, steps=20) for recipe in refit.RECIPES[:1]))


@pytest.mark.usefixtures("hasty")
@pytest.mark.slow
def test_capacity_and_ablation_measure_the_papers_rotation_once(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "reproduced"
    result = measured(reproduce("capacity", dataset_folder, "--out", out, "--seeds", "1", "--train-queries", "50"), out, "capacity")
    assert [row[0] for row in result["table"]["rows"]] == [*curves.COMPARED, "F = 8", "F = 64"]
    assert {cell["parameters"] for cell in result["cells"] if cell["method"].startswith("F")} == {8 * 64, 64 * 64}
    assert {cell["train_queries"] for cell in result["cells"]} == {50}
    before = {file.name: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    refused = reproduce("ablation", dataset_folder, "--out", out, "--seeds", "1", "--train-queries", "60")
    assert refused.exit_code == 1
    assert "was measured with train_queries 50, now 60" in refused.stderr
    result = measured(reproduce("ablation", dataset_folder, "--out", out, "--seeds", "1", "--train-queries", "50"), out, "ablation")
    after = {file.name: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    assert before.items() <= after.items()
    rows = {row[0]: row[1:] for row in result["table"]["rows"]}
    assert rows["rotation and router"] == rows["rotation only"]  # at one width there is nothing to choose
    assert rows["router only"] == rows["truncation"]
    assert "rotation and router" in (out / "ablation.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("hasty")
def test_the_sweep_is_judged_on_dev(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "reproduced"
    result = measured(reproduce("sweep", dataset_folder, "--out", out, "--seeds", "1", "--json"), out, "sweep")
    assert len(result["cells"]) == len(sweep.settings_of(whole=False))
    assert {cell["dev_queries"] for cell in result["cells"]} == {40}
    assert "θ_b" in (out / "sweep.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["curves", "vqa"])
def test_curves_rank_methods_and_keep_single_queries_to_the_cells(dataset_folder: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "reproduced"
    done = reproduce(name, dataset_folder, "--out", out, "--seeds", "2", "--methods", "truncation,pca,random")
    result = measured(done, out, name)
    assert [(cell["method"], cell["seed"]) for cell in result["cells"]] == [(m, s) for s in (0, 1) for m in ("truncation", "pca", "random")]
    assert result["verdict"].startswith("**Not tested.**")
    figures = {cell["method"]: {p["width"]: p["nDCG@10"] for p in cell["points"]} for cell in result["cells"]}
    assert figures["pca"]["full"] == figures["truncation"]["full"] == result["cells"][0]["frozen"]
    assert figures["pca"][32] > figures["truncation"][32]
    kept = Store(out / "cells").read(out / "cells" / "pca-seed-0-collection-tiny.json")
    assert kept["quality"].shape == (len(kept["points"]), 60)
    assert kept["quality"].mean(axis=1) == pytest.approx([point["nDCG@10"] for point in kept["points"]], abs=1e-4)
    assert kept["unseen"].mean() == pytest.approx(result["cells"][1]["unseen_queries"] / 60)
    assert "other methods" in (out / f"{name}.svg").read_text(encoding="utf-8")
    page = tmp_path / "report.html"
    assert CliRunner().invoke(app, ["report", str(out), "--out", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 1
    assert f"<h2>{name}</h2><p><b>Not tested.</b>" in text
    assert "<th>truncation</th>" in text
    refused = reproduce(name, dataset_folder, "--out", out, "--methods", "magic")
    assert "there is no method 'magic'" in refused.stderr


@pytest.mark.parametrize("name", REGISTRY)
def test_every_name_is_an_experiment(name: str) -> None:
    assert experiment(name).title
