"""adawidth search"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .options import AsJson, IndexPath, Task
from .output import emit, say
from .prompt import ask, show_answer

if TYPE_CHECKING:
    from ..hits import Answer


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(search)


def search(
    path: IndexPath,
    text: Annotated[list[str] | None, typer.Option("--text", help="A query in words; may be repeated.")] = None,
    vectors: Annotated[Path | None, typer.Option("--vectors", help="Query vectors, one a row, from the index's own encoder.")] = None,
    interactive: Annotated[bool, typer.Option("--interactive", help="Go on asking, a query a line, until :quit.")] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents to find for each query.")] = 10,
    policy: Annotated[str | None, typer.Option("--policy", help="taper, router, fixed or certify.  [default: taper]")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Mean width a workload may spend.")] = None,
    quality: Annotated[float | None, typer.Option("--quality", help="Share of the target width's quality to keep.")] = None,
    width: Annotated[str | None, typer.Option("--width", help="One width for all: 64, 128, 256, …, full.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help="Another model of the same rotation, as `refit` makes them.")] = None,
    task: Task = None,
    where: Annotated[str | None, typer.Option("--filter", help="On metadata: \"lang = 'en' AND year >= 2020\".")] = None,
    encoder: Annotated[str | None, typer.Option("--encoder", help="Where the index's encoder is found now, for --text.")] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads that share the queries.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find the best documents for queries in words, or for query vectors."""
    from ..formats import read_vectors
    from ..model import AdaWidth, open_index

    if (vectors is not None) == bool(text or interactive):
        raise OptionError("give either --vectors, or --text or --interactive")
    if interactive and as_json:
        raise OptionError("--interactive answers people: leave out --json, or give the queries with --text")
    options: dict[str, Any] = {"policy": policy, "budget": budget, "quality": quality, "task": task, "where": where, "threads": threads}
    options["width"] = _width(width)
    with open_index(path, None if model is None else AdaWidth.load(model), encoder=encoder) as index:
        hits = index.search(None if vectors is None else read_vectors(vectors), k, text=text, **options) if vectors or text else ()
        if as_json:
            emit({"results": [_answer(answer) for answer in hits]})
            return
        for answer in hits:
            say(f"\n{answer.query if text else f'query {answer.query}'}")
            show_answer(answer, index.model.width)
        if interactive:
            ask(index, k, **options)


def _width(text: str | None) -> int | str | None:
    """A number, or `full`: all that the index keeps."""
    if text is None or text == "full":
        return text
    if not text.isdecimal():
        raise OptionError(f"--width takes a number or full, not {text!r}")
    return int(text)


def _answer(answer: Answer) -> dict[str, Any]:
    """As `--json` prints it: of what is known, the title."""
    hits = [{"id": hit.id, "score": hit.score, **({"title": hit.title} if hit.title else {})} for hit in answer]
    return {"query": answer.query, "mean_width": answer.mean_width, "hits": hits}
