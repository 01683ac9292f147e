"""adawidth search"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .options import AsJson, Budget, IndexPath, Policy, Quality, Task
from .output import emit, say, table
from .prompt import ask, show_answer

if TYPE_CHECKING:
    from ..formats import Document
    from ..index import IndexFolder
    from ..model import Searcher
    from ..types import Id


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(search)


def search(
    path: IndexPath,
    text: Annotated[list[str] | None, typer.Option("--text", metavar="QUERY", help="Query in words; may be repeated.")] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Query vectors, one per row, from the index's encoder.")
    ] = None,
    interactive: Annotated[bool, typer.Option("--interactive", help="Prompt for queries until :quit.")] = False,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Documents to find for each query.")] = 10,
    policy: Policy = None,
    budget: Budget = None,
    quality: Quality = None,
    width: Annotated[str | None, typer.Option("--width", metavar="WIDTH", help="One width for all queries, or full.")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="Model made by `refit` to search with.  [default: the index's]")
    ] = None,
    task: Task = None,
    where: Annotated[
        str | None, typer.Option("--filter", metavar="FILTER", help="On metadata, such as \"lang = 'en' AND year >= 2020\".")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Where to find the index's encoder, if it was moved.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads to share the queries.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find the best documents for words or query vectors."""
    from ..model import AdaWidth, open_index

    if (vectors is not None) == bool(text or interactive):
        raise OptionError("give queries either in words (--text, --interactive) or as vectors (--vectors)")
    if interactive and as_json:
        raise OptionError("--interactive answers people: leave out --json, or give the queries with --text")
    searcher = open_index(path, None if model is None else AdaWidth.load(model))
    options: dict[str, Any] = {"policy": policy, "budget": budget, "quality": quality, "task": task, "where": where, "threads": threads}
    options["width"] = _width(width, searcher.folder)
    if vectors is not None:
        _by_vectors(searcher, vectors, k, options, as_json)
    else:
        _by_text(searcher, encoder, text or [], k, options, interactive, as_json)


def _by_vectors(searcher: Searcher, file: Path, k: int, options: Mapping[str, Any], as_json: bool) -> None:
    from ..formats import read_vectors

    queries = read_vectors(file)
    hits = searcher.search(queries, k, **options)
    known = searcher.folder.described(hits)
    results = [_answer(*one) for one in zip(queries.ids, hits.widths.tolist(), known, hits.scores.tolist(), strict=True)]
    if as_json:
        emit({"results": results})
        return
    for result in results:
        say(f"\nquery {result['query']}, mean width {result['mean_width']:.1f}")
        table(["id", "score", "title"], [[hit["id"], f"{hit['score']:.4f}", hit.get("title", "")] for hit in result["hits"]])


def _by_text(
    searcher: Searcher, encoder: str | None, text: list[str], k: int, options: Mapping[str, Any], interactive: bool, as_json: bool
) -> None:
    from ..model import TextSearcher

    with TextSearcher.over(searcher, encoder) as words:
        answers = words.search(text, k, **options)
        if as_json:
            emit({"results": [answer.to_json() for answer in answers]})
            return
        for answer in answers:
            say(f"\n{answer.query}")
            show_answer(answer, words.encoder.width)
        if interactive:
            ask(words, k, **options)


def _width(text: str | None, index: IndexFolder) -> int | None:
    """A number, or `full`: all that the index keeps."""
    if text is None:
        return None
    if text == "full":
        return index.settings.width
    if not text.isdecimal():
        raise OptionError(f"--width takes a number or full, not {text!r}")
    return int(text)


def _answer(query: Id, width: float, known: Sequence[Document], scores: Sequence[float]) -> dict[str, Any]:
    found = [
        {"id": document.id, "score": score, **({"title": document.title} if document.title else {})}
        for document, score in zip(known, scores, strict=False)  # where a filter leaves fewer than k, scores go on without documents
    ]
    return {"query": query, "mean_width": width, "hits": found}
