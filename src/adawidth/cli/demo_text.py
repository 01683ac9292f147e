"""The demo's second part: text in, objects of this Python out."""

from __future__ import annotations

from importlib.util import find_spec
from textwrap import shorten
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from ..formats import Text

QUESTIONS = ("count how often each element occurs", "run a function in another thread", "decompress a file")
ANSWERS = 3


def search_docstrings() -> None:
    """Encodes the docstrings that this Python has, fits without labels, and answers a few questions typed as text."""
    if find_spec("wordllama") is None:
        say("\nSearching by text is shown as well where an encoder is installed: pip install 'adawidth[encode]'")
        return
    from .. import bundled
    from ..data import Vectors
    from ..encoders import load_encoder
    from ..encoders.encode import encode_sorted
    from ..model import AdaWidth

    encoder = load_encoder("wordllama")
    asked, docstrings = docstring_texts()
    queries = encode_sorted(encoder, asked[::10], "query")  # some hundred are enough to calibrate with
    documents = Vectors.of(encode_sorted(encoder, docstrings, "document"), [text.id for text in docstrings], name="docstrings")
    index = AdaWidth.fit(documents, queries, recipe="pca").index(documents)
    say(f"\nText in, objects out: {len(docstrings)} docstrings of this Python, encoded by {encoder.name} ({encoder.width} coordinates).")
    hits = index.search(encoder.encode(QUESTIONS, "query"), ANSWERS)
    for question, found, width in zip(QUESTIONS, hits.ids, hits.widths, strict=True):
        say(f"\n“{question}”, answered at a mean width of {width:.0f}")
        for name in map(str, found):
            text = shorten(bundled.query_text_of(bundled.QUERY_PREFIX + name) or "", 76, placeholder=" …")
            say(f"    {name:32} {text}")


def docstring_texts() -> tuple[list[Text], list[Text]]:
    """First sentences, and whole docstrings, of what this Python has."""
    from .. import bundled
    from ..formats import Text, read_ids

    names = read_ids(bundled.path() / "embeddings" / bundled.ENCODER / "corpus.ids")
    first = {name: sentence for name in names if (sentence := bundled.query_text_of(bundled.QUERY_PREFIX + name))}
    return [Text(name, text) for name, text in first.items()], [
        Text(name, f"{text} {bundled.text_of(name)}") for name, text in first.items()
    ]
