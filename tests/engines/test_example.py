"""The example for pgvector, on a real database."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import pytest

pytestmark = pytest.mark.engines
EXAMPLE = Path(__file__).parents[2] / "examples" / "pgvector.py"


def test_the_example_for_pgvector(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_path(str(EXAMPLE))["main"](postgres)
    printed = capsys.readouterr().out
    assert "3,037 documents in PostgreSQL" in printed
    assert len(re.findall(r"^.+ -> \['", printed, re.MULTILINE)) == 3
    assert int(re.findall(r"read (\d+) of 384", printed)[0]) <= 96
