"""Snippets show what matches, and break between words."""

import pytest

from adawidth.cli.prompt import SNIPPET, snippet

LONG = "Nothing of note stands here at all. " * 20 + "Umbrellas keep you dry when it rains. " + "More of the same follows. " * 20


@pytest.mark.parametrize("query", ["", "zebra"])
def test_a_snippet_without_a_match_is_the_beginning(query: str) -> None:
    found = snippet(LONG, query)
    assert found.startswith("Nothing of note")
    assert found.endswith(" …")
    assert len(found) <= SNIPPET + 2


def test_a_snippet_has_the_query_s_words() -> None:
    found = snippet(LONG, "what keeps me dry: an umbrella?")
    assert found.startswith("… Umbrellas keep you dry when it rains.")
    assert found.endswith(" …")
    assert set(found.split()) <= {*LONG.split(), "…"}  # no word is torn


def test_short_texts_and_long_words_are_shown() -> None:
    assert snippet("A  small\nlamp.", "lamp") == "A small lamp."
    assert snippet("x" * 500, "y") == "x" * SNIPPET
    assert snippet(f"a {'x' * 500} lamp", "lamp") == "… lamp"
