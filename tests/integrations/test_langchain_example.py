"""The example for LangChain puts what it retrieved into the prompt."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

pytestmark = pytest.mark.integrations
pytest.importorskip("langchain_core", reason="needs langchain-core: make test-integrations installs it")
EXAMPLE = Path(__file__).parents[2] / "examples" / "langchain_rag.py"


def test_the_example_for_langchain(capsys: pytest.CaptureFixture[str]) -> None:
    run_path(str(EXAMPLE))["main"]()
    printed = capsys.readouterr().out
    context, _, question = printed.partition("Question: ")
    assert "[statistics.median]" in context
    assert "numpy." not in context
    assert "middle value" in question
