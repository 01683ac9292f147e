"""The commands as a user types them."""

import json
import logging
import shutil
import signal
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from adawidth import __version__
from adawidth.cli.app import app
from adawidth.formats import read_run


def adawidth(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def model_folder(dataset_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "tiny.model"
    assert adawidth("fit", dataset_folder, "--out", folder, "--recipe", "pca").exit_code == 0
    return folder


def one_object(result: Result) -> dict:
    """What --json printed: one JSON object and nothing else."""
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def test_fit_then_info_then_evaluate(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    facts = one_object(adawidth("info", model_folder, "--json"))
    assert facts["kind"] == "model"
    assert facts["encoder_width"] == 64
    assert facts["recipe"] == "pca"
    assert facts["labels"] is True
    assert facts["train_queries"] == 120
    assert "pca" in adawidth("info", model_folder).stdout

    run = tmp_path / "answers.trec"
    result = adawidth("evaluate", model_folder, dataset_folder, "--widths", "16,32,full,auto", "--budget", "40", "--run", run, "--json")
    entries = one_object(result)["results"]
    assert [entry["width"] for entry in entries] == [16, 32, "full", "frozen", "auto"]
    assert entries[-1]["budget"] == 40
    assert {file.name for file in tmp_path.glob("answers*")} == {f"answers.{width}.trec" for width in (16, 32, "full", "auto")}
    answers = {width: read_run(tmp_path / f"answers.{width}.trec") for width in (16, "auto")}
    assert all(len(found) == 100 for run in answers.values() for found in run.values())
    assert len(answers[16]) == len(answers["auto"]) == 60
    assert answers[16] != answers["auto"]

    shown = adawidth("evaluate", model_folder, dataset_folder, "--widths", "32,full,auto", "--measures", "RR@10 AP@100").stdout
    assert "RR@10" in shown
    assert "unseen" in shown
    assert "fixed width" in shown


def test_fit_prints_json_alone(dataset_folder: Path, tmp_path: Path) -> None:
    facts = one_object(adawidth("fit", dataset_folder, "--out", tmp_path / "m", "--recipe", "identity", "--no-labels", "--json"))
    assert facts["model"] == str(tmp_path / "m")
    assert facts["recipe"] == "identity"
    assert facts["labels"] is False


def test_learning_a_rotation(dataset_folder: Path, tmp_path: Path) -> None:
    arguments = ("--reflections", "8", "--widths", "16,32", "--seed", "3", "--json")
    facts = one_object(adawidth("fit", dataset_folder, "--out", tmp_path / "m", "--recipe", "paper", *arguments))
    assert facts["seed"] == 3
    assert {trial["recipe"] for trial in facts["trials"]} >= {"identity", "pca", "kyfan", "paper"}


def test_compare_then_report(dataset_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison"
    arguments = ("--methods", "truncation,random,pca", "--widths", "16,32,full", "--seeds", "2", "--out", out)
    shown = adawidth("compare", dataset_folder, *arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "bytes per document" in shown.stdout
    results = json.loads((out / "results.json").read_text())
    assert {row["method"] for row in results["results"]} == {"truncation", "random", "pca"}
    assert one_object(adawidth("compare", dataset_folder, *arguments, "--force", "--json"))["summary"] == results["summary"]

    page = tmp_path / "report.html"
    assert adawidth("report", out, "--out", page).exit_code == 0
    text = page.read_text()
    assert text.count("<svg") == 4
    assert "http" not in text.replace("http://www.w3.org/", "")  # nothing is fetched
    assert "<script" not in text
    refused = adawidth("report", out, "--out", page)
    assert refused.exit_code == 1
    assert "--force" in refused.stderr


def test_report_of_a_model(model_folder: Path, tmp_path: Path) -> None:
    assert adawidth("report", model_folder, "--out", tmp_path / "r.html").exit_code == 0
    assert "pca" in (tmp_path / "r.html").read_text()


def test_info_of_a_dataset(dataset_folder: Path) -> None:
    facts = one_object(adawidth("info", dataset_folder, "--json"))
    assert facts["encoders"] == [{"encoder": "tiny", "documents": 480, "queries": 220, "encoder_width": 64}]
    assert [split["split"] for split in facts["splits"]] == ["train", "dev", "test"]
    assert "480" in adawidth("info", dataset_folder).stdout


def test_info_of_texts_without_vectors_names_encode(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "words"}\n')
    refused = adawidth("info", tmp_path)
    assert refused.exit_code == 1
    assert f"`adawidth encode {tmp_path} --model minilm`" in refused.stderr


@pytest.mark.parametrize("command", [("width", "{data}"), ("refit", "{model}", "{data}", "--out", "{new}")])
def test_without_labels_a_command_names_only_what_it_has(
    command: tuple[str, ...], dataset_folder: Path, model_folder: Path, tmp_path: Path
) -> None:
    shutil.rmtree(dataset_folder / "qrels")
    refused = adawidth(*(part.format(data=dataset_folder, model=model_folder, new=tmp_path / "new") for part in command))
    assert refused.exit_code == 1
    assert "add qrels/train.tsv" in refused.stderr
    assert "--no-labels" not in refused.stderr


def test_check_tells_by_its_exit_code(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "check.html"
    fits = adawidth("check", model_folder, dataset_folder, "--out", page)
    assert (fits.exit_code, fits.stdout.splitlines()[0][:26]) == (0, "The model fits collection:"), fits.stderr
    assert "does the model still fit?" in page.read_text()
    assert "--force" in adawidth("check", model_folder, dataset_folder, "--out", page).stderr
    vectors = dataset_folder / "embeddings" / "tiny"
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((64, 64)))[0]
    for side in ("corpus", "queries"):
        np.save(vectors / f"{side}.npy", (np.load(vectors / f"{side}.npy") @ turn).astype(np.float32))
    changed = adawidth("check", model_folder, dataset_folder, "--json")
    assert changed.exit_code == 3
    assert json.loads(changed.stdout)["fits"] is False
    assert changed.stdout.count("\n") == 1
    assert adawidth("check", model_folder, tmp_path / "nowhere").exit_code == 1


def test_an_out_that_exists_needs_force(dataset_folder: Path, model_folder: Path) -> None:
    before = (model_folder / "config.json").read_bytes()
    refused = adawidth("fit", dataset_folder, "--out", model_folder, "--recipe", "identity")
    assert refused.exit_code == 1
    assert refused.stderr == f"error: {model_folder} exists: choose another path (--out), or replace it with force (--force)\n"
    assert (model_folder / "config.json").read_bytes() == before
    assert adawidth("fit", dataset_folder, "--out", model_folder, "--recipe", "identity", "--force").exit_code == 0
    assert (model_folder / "config.json").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "{data}", "--out", "{new}", "--encoder", "bert"), "'bert'"),
        (("fit", "{data}", "--out", "{new}", "--widths", "16,65"), "width 65 is not between 1 and the encoder width 64"),
        (("fit", "{data}/none", "--out", "{new}"), "no such folder"),
        (("evaluate", "{data}", "{data}"), "config.json"),
        (("evaluate", "{model}", "{data}", "--widths", "32,512"), "width 512 is not between 1 and the encoder width 64"),
        (("evaluate", "{model}", "{data}", "--split", "holdout"), "no split 'holdout'"),
        (("evaluate", "{model}", "{data}", "--budget", "3", "--quality", "0.9"), "give one of budget"),
        (("evaluate", "{model}", "{data}", "--policy", "magic"), "there is no policy 'magic'"),
        (("compare", "{data}", "--methods", "pca,magic"), "there is no method 'magic'"),
        (("info", "{new}"), "no such folder"),
        (("report", "{new}"), "can't be read (No such file or directory)"),
    ],
)
def test_bad_input_gives_one_line(arguments: tuple[str, ...], words: str, dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    places = {"data": dataset_folder, "model": model_folder, "new": tmp_path / "new"}
    result = adawidth(*(argument.format(**places) for argument in arguments))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit",),
        ("evaluate", "x"),
        ("nonsense",),
        ("fit", "x", "--out", "y", "--recipe", "magic"),
        ("compare", "x", "--seeds", "0"),
        ("fit", "x", "--out"),
    ],
)
def test_usage_errors_exit_with_two(arguments: tuple[str, ...]) -> None:
    assert adawidth(*arguments).exit_code == 2


def test_labels_without_vectors_can_be_skipped(dataset_folder: Path) -> None:
    with (dataset_folder / "qrels" / "test.tsv").open("a") as file:
        file.write("q999\td1\t1\n")
    refused = adawidth("compare", dataset_folder, "--methods", "truncation", "--seeds", "1")
    assert refused.exit_code == 1
    assert "--skip-unknown" in refused.stderr
    taken = adawidth("compare", dataset_folder, "--methods", "truncation", "--seeds", "1", "--skip-unknown", "--json")
    assert one_object(taken)["queries"] == 60
    assert taken.stderr.startswith("warning: ")


def test_the_version() -> None:
    assert adawidth("--version").stdout == f"{__version__}\n"


def test_a_command_leaves_no_handler_of_its_own_behind_twice() -> None:
    adawidth("info", ".")
    adawidth("info", ".")
    assert len(logging.getLogger("adawidth").handlers) == 1


def test_an_interrupted_command_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from adawidth.cli import main; main()", "demo", "--out", str(tmp_path / "demo")]
    # a test run in the background has Ctrl-C switched off
    heard: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **heard) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it is at work
        process.send_signal(signal.SIGINT)
        _, notes = process.communicate(timeout=60)
    assert process.returncode == 130
    assert notes.splitlines()[-1] == "stopped"
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupts())
from adawidth.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "numpy", "adawidth.formats"])
def test_an_interrupted_import_is_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED.format(module=module), "info", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def hidden(package: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command where a package is not installed."""
    script = """
import importlib.util, sys
true, package = importlib.util.find_spec, sys.argv.pop(1)
importlib.util.find_spec = lambda name, *rest: None if name == package else true(name, *rest)
sys.modules[package] = None
from adawidth.cli import main
main()
"""
    return subprocess.run([sys.executable, "-c", script, package, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("matplotlib", "report", ("demo", "--out", "{new}")),
        ("torch", "train", ("demo", "--out", "{new}")),
        ("matplotlib", "report", ("report", "{model}", "--out", "{new}")),
        ("matplotlib", "report", ("width", "{data}", "--smallest", "60", "--out", "{new}")),
        ("matplotlib", "report", ("reproduce", "scaling", "{data}", "--out", "{new}")),
        ("torch", "train", ("fit", "{data}", "--out", "{new}")),
        ("torch", "train", ("refit", "{model}", "{data}", "--out", "{new}")),
        ("torch", "train", ("compare", "{data}", "--methods", "truncation,matryoshka-adaptor", "--out", "{new}")),
        ("wordllama", "encode", ("encode", "{text}", "--model", "wordllama", "--out", "{new}")),
    ],
)
def test_a_missing_package_is_told_before_the_work(
    package: str, extra: str, arguments: tuple[str, ...], dataset_folder: Path, model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("one\ntwo\n")
    places = {"data": dataset_folder, "model": model_folder, "new": tmp_path / "new", "text": tmp_path / "text.txt"}
    done = hidden(package, *(argument.format(**places) for argument in arguments))
    assert done.returncode == 1
    assert done.stderr == f"error: this needs the package {package}, which is not installed: pip install 'adawidth[{extra}]'\n"
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "{data}", "--recipe", "pca"),
        ("refit", "{model}", "{data}"),
        ("index", "{model}", "{data}"),
        ("compare", "{data}", "--methods", "pca", "--seeds", "1"),
        ("width", "{data}", "--smallest", "60"),
        ("report", "{model}"),
        ("demo",),
    ],
)
def test_an_out_is_checked_before_the_work(arguments: tuple[str, ...], dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    """Neither what is read, nor what others wrote, is ever replaced; what can't be written is told."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("precious")
    (tmp_path / "file.npy").write_text("precious")
    (dataset_folder / "embeddings" / "tiny" / "meta.json").write_text("{}")
    outs = {dataset_folder: "not replaced", dataset_folder / "embeddings" / "tiny": "not replaced", tmp_path: "not replaced"}
    outs |= {precious: "not replaced", tmp_path / "file.npy": "not replaced", tmp_path / "file.npy" / "new": "not written"}
    if arguments[0] != "fit":  # which may replace a model that it does not read
        outs[model_folder] = "not replaced"
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    for out, words in outs.items():
        refused = adawidth(*(a.format(data=dataset_folder, model=model_folder) for a in arguments), "--out", out, "--force")
        assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), (out, refused.stderr)
        assert refused.stderr.startswith(f"error: {out}: {words}")
        assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_dataset_of_two_encoders_is_read_with_the_models(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset_folder / "embeddings" / "tiny", dataset_folder / "embeddings" / "other")
    assert one_object(adawidth("evaluate", model_folder, dataset_folder, "--widths", "32", "--json"))["encoder"] == "tiny"
    assert adawidth("index", model_folder, dataset_folder, "--out", tmp_path / "x.index").exit_code == 0
    assert adawidth("update", tmp_path / "x.index", dataset_folder).exit_code == 0
    assert "choose one (--encoder)" in adawidth("fit", dataset_folder, "--out", tmp_path / "m").stderr


def test_reflections_are_at_least_two(dataset_folder: Path, tmp_path: Path) -> None:
    refused = adawidth("fit", dataset_folder, "--out", tmp_path / "m", "--reflections", "0")
    assert refused.exit_code == 2
    assert not (tmp_path / "m").exists()


def test_a_run_replaces_a_run_alone_and_with_force(dataset_folder: Path, model_folder: Path, tmp_path: Path) -> None:
    command = ("evaluate", model_folder, dataset_folder, "--widths", "32", "--run")
    for name in ("answers.trec", "answers.trec.gz"):
        assert adawidth(*command, tmp_path / name).exit_code == 0
        refused = adawidth(*command, tmp_path / name)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "exists: choose another path, or replace it with force (--force)" in refused.stderr
        assert adawidth(*command, tmp_path / name, "--force").exit_code == 0
    ids = dataset_folder / "embeddings" / "tiny" / "corpus.ids"
    before = ids.read_bytes()
    for out, words in ((ids, "not replaced, as it is no run that AdaWidth wrote"), (tmp_path / "no" / "answers.trec", "not written")):
        refused = adawidth(*command, out, "--force")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"{out}: {words}" in refused.stderr
    assert ids.read_bytes() == before


def test_a_report_replaces_a_report(model_folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert adawidth("report", model_folder, "--out", tmp_path / "r.html", "--force").exit_code == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {"collection", "tiny.model", "r.html"}


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    shown = adawidth("demo", "--out", tmp_path / "demo")
    assert shown.exit_code == 0, shown.stderr
    assert {entry.name for entry in (tmp_path / "demo").iterdir()} == {"report.html", "results.json"}
    for words in ("bytes per document", "adawidth ", "By stages", "at 64 coordinates", "at all 384", "adawidth fit DATASET"):
        assert words in shown.stdout
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    summary = {(cell["method"], cell["width"]): cell["mean"] for cell in results["summary"]}
    assert all(summary["adawidth", 64] > summary[method, 64] for method in ("truncation", "random", "pca"))
    assert len(results["examples"]) == 3
    assert "adawidth: a width is a budget, the mean width that it may spend. It reads no candidate beyond" in shown.stdout
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Some queries and their answers" in page
    assert all(escape(" ".join(example["query"].split())) in page for example in results["examples"])
    assert "R@100" in page
