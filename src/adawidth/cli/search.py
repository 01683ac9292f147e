"""adawidth search"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import OptionError
from .options import AsJson, Budget, Collection, EngineUrl, Policy, Quality, Task, TrustEncoder
from .output import emit, say
from .prompt import ask, show_answer


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(search)


def search(
    path: Annotated[Path | None, typer.Argument(metavar="INDEX", help="Index folder, as written by `index`.")] = None,
    engine: EngineUrl = None,
    collection: Collection = "adawidth",
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
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Search by words as well, and fuse both answers; with --text.")] = False,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Where to find the index's encoder, if it was moved.")
    ] = None,
    trust_encoder: TrustEncoder = False,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads to share the queries.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find the best documents for words or query vectors."""
    from ..formats import read_vectors
    from ..model import AdaWidth
    from .place import index_at

    if (vectors is not None) == bool(text or interactive):
        raise OptionError("give queries either in words (--text, --interactive) or as vectors (--vectors)")
    if interactive and as_json:
        raise OptionError("--interactive answers people: leave out --json, or give the queries with --text")
    options: dict[str, Any] = {"policy": policy, "budget": budget, "quality": quality, "task": task, "where": where, "threads": threads}
    options |= {"width": _width(width), "hybrid": hybrid}
    other = None if model is None else AdaWidth.load(model)
    with index_at(path, engine, collection, other, encoder=encoder, trust_encoder=trust_encoder) as index:
        hits = index.search(None if vectors is None else read_vectors(vectors), k, text=text, **options) if vectors or text else None
        if as_json:
            emit({"results": [] if hits is None else hits.to_dicts()})
            return
        for answer in hits or ():
            say(f"\n{answer.query if text else f'query {answer.query}'}")
            show_answer(answer, int(index.facts()["encoder_width"]), str(answer.query) if text else "")
        if interactive:
            ask(index, k, **options)


def _width(text: str | None) -> int | str | None:
    """A number, or `full`: all that the index keeps."""
    if text is None or text == "full":
        return text
    if not text.isdecimal():
        raise OptionError(f"--width takes a number or full, not {text!r}")
    return int(text)
