"""adawidth search"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .options import AsJson, IndexPath, Task
from .output import emit, say, table

if TYPE_CHECKING:
    from ..data import Id
    from ..index import Document, PrefixIndex


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(search)


def search(
    path: IndexPath,
    vectors: Annotated[Path, typer.Option("--vectors", help="File of query vectors, one a row, from the index's own encoder.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Documents to find for each query.")] = 10,
    policy: Annotated[str | None, typer.Option("--policy", help="taper, router, fixed or certify.  [default: taper]")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Mean width a workload may spend.")] = None,
    quality: Annotated[float | None, typer.Option("--quality", help="Share of the target width's quality to keep.")] = None,
    width: Annotated[str | None, typer.Option("--width", help="One width for all: 64, 128, 256, …, full.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help="Another model of the same rotation, as `refit` makes them.")] = None,
    task: Task = None,
    where: Annotated[str | None, typer.Option("--filter", help="On metadata: \"lang = 'en' AND year >= 2020\".")] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads that share the queries.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find the best documents for query vectors."""
    from ..formats import read_vectors
    from ..model import AdaWidth, open_index

    searcher = open_index(path, None if model is None else AdaWidth.load(model))
    queries = read_vectors(vectors)
    hits = searcher.search(
        queries,
        k,
        policy=policy,
        budget=budget,
        quality=quality,
        width=_width(width, searcher.folder),
        task=task,
        where=where,
        threads=threads,
    )
    known = searcher.folder.described(hits)
    results = [_answer(*one) for one in zip(queries.ids, hits.widths.tolist(), known, hits.scores.tolist(), strict=True)]
    if as_json:
        emit({"results": results})
        return
    for result in results:
        say(f"\nquery {result['query']}, mean width {result['mean_width']:.1f}")
        table(["id", "score", "title"], [[hit["id"], f"{hit['score']:.4f}", hit.get("title", "")] for hit in result["hits"]])


def _width(text: str | None, index: PrefixIndex) -> int | None:
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
