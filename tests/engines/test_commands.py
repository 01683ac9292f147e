"""The commands over an engine: push, search, evaluate, info; and the same figures as the model's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, Dataset
from adawidth.cli.app import app

pytestmark = pytest.mark.engines


def run(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if code == 0 and "--json" in arguments else done.stderr or done.stdout


def test_push_then_search_evaluate_and_info(postgres: str, dataset_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    model = tmp_path / "model"
    AdaWidth.fit(collection, recipe="pca").save(model)
    pushed = run("push", model, dataset_folder, "--to", "pgvector", "--url", postgres, "--collection", "cli", "--json")
    assert (pushed["added"], pushed["documents"]) == (480, 480)
    again = run("push", model, dataset_folder, "--to", "pgvector", "--url", postgres, "--collection", "cli", "--json")
    assert (again["added"], again["replaced"]) == (0, 480)
    there = ("--engine", postgres, "--collection", "cli", "--json")
    facts = run("info", *there)
    assert (facts["engine"], facts["documents"], facts["encoder_width"]) == ("pgvector", 480, 64)
    queries = tmp_path / "queries.npy"
    np.save(queries, collection.documents.values[:3])
    found = run("search", "--vectors", queries, "-k", 2, *there)["results"]
    assert [answer["hits"][0]["id"] for answer in found] == ["d0", "d1", "d2"]
    own = run("evaluate", model, dataset_folder, "--widths", "full", "--json")["results"][0]
    through = run("evaluate", model, dataset_folder, "--widths", "full,auto", *there)
    assert through["results"][0]["nDCG@10"] == pytest.approx(own["nDCG@10"], abs=0.005)
    assert {entry["width"] for entry in through["results"]} == {"full", "auto"}


def test_statements_are_written_to_be_read_and_nothing_is_sent(dataset_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    model, file = tmp_path / "model", tmp_path / "statements.sql"
    AdaWidth.fit(collection, recipe="pca").save(model)
    run("push", model, dataset_folder, "--to", "pgvector", "--url", "postgresql://nobody@127.0.0.1:1/none", "--sql", file)
    text = file.read_text()
    assert 'CREATE TABLE "adawidth"' in text
    assert "USING hnsw" in text


def test_an_address_of_no_engine_is_one_line(tmp_path: Path) -> None:
    said = run("search", "--engine", "ftp://someone:secret@host/x", "--text", "a", code=1)
    assert "no engine has such an address" in said
    assert "secret" not in said
    assert len(said.strip().splitlines()) == 1
