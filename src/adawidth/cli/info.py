"""adawidth info"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ArtifactError
from .options import AsJson, Collection, EngineUrl
from .output import emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(info)


def info(
    path: Annotated[Path | None, typer.Argument(metavar="PATH", help="Model folder, index folder or dataset folder.")] = None,
    engine: EngineUrl = None,
    collection: Collection = "adawidth",
    verify: Annotated[bool, typer.Option("--verify", help="Check every byte of an index.")] = False,
    as_json: AsJson = False,
) -> None:
    """Describe a model, index, dataset or collection."""
    from ..report.facts import facts_of
    from .place import index_at

    if path is None or engine is not None:
        with index_at(path, engine, collection) as index:
            facts = index.facts()
    else:
        if verify:
            _verify(path)
        facts = facts_of(path)
    if as_json:
        emit(facts)
    elif facts["kind"] == "model":
        _show_model(facts)
    elif facts["kind"] == "index":
        _show_index(facts)
    elif facts["kind"] == "collection":
        _show_plain(facts)
    else:
        _show_dataset(facts)


def _verify(path: Path) -> None:
    """Refuses a damaged index."""
    from ..index.repair import examine

    damaged = examine(path)
    if damaged:
        raise ArtifactError(f"{damaged[0]}{f'; {len(damaged) - 1} more are damaged' if len(damaged) > 1 else ''}")


def _show_plain(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        say(f"{name.replace('_', ' ')}: {', '.join(map(str, value)) if isinstance(value, list) else value}")


def _show_index(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        if name != "segments":
            say(f"{name.replace('_', ' ')}: {value}")
    if facts["segments"]:
        say()
        rows = [[s["name"], f"{s['documents']:,}", s["storage"], f"{s['bytes']:,}"] for s in facts["segments"]]
        table(["segment", "documents", "storage", "bytes"], rows)


def _show_model(facts: Mapping[str, Any]) -> None:
    plain = {name: value for name, value in facts.items() if not isinstance(value, dict | list)}
    for name, value in plain.items():
        say(f"{name.replace('_', ' ')}: {value}")
    taper = facts["taper"]
    say(f"taper: from {' or '.join(map(str, taper['starts']))} to {taper['target']}")
    for part in ("router", "paper_router"):
        values = facts[part]
        said = "none" if values is None else ", ".join(f"{name} {value}" for name, value in values.items())
        say(f"{part.replace('_', '-')}: {said}")
    if facts["trials"]:
        say()
        show_trials(facts)
    for task in facts["tasks"]:
        say(f"\ntask {task['task']}: {task['chosen']} at strength {task['strength']:g}, taper to {task['target_width']}. {task['reason']}")
        show_trials(task)


def show_trials(facts: Mapping[str, Any]) -> None:
    """Every recipe tried, of query maps at each strength, with its dev figures."""
    widths = sorted({int(m) for trial in facts["trials"] for m in trial["dev"]})
    rows = [[_title(trial), *(f"{trial['dev'][str(m)]:.4f}" for m in widths if trial["dev"])] for trial in facts["trials"]]
    if widths:
        table([f"{facts['dev_measure']} on dev", *map(str, widths)], rows)


def show_task(facts: Mapping[str, Any]) -> None:
    """The query maps tried for a task, and which of them ships."""
    show_trials(facts)
    say(f"\ntask {facts['task']}: {facts['chosen']} at strength {facts['strength']:g}. {facts['reason']}")


def _title(trial: Mapping[str, Any]) -> str:
    return str(trial["recipe"]) + (f" × {trial['strength']:g}" if trial.get("strength") else "")


def _show_dataset(facts: Mapping[str, Any]) -> None:
    say(f"dataset: {facts['dataset']}")
    say(f"queries are documents: {'yes' if facts['queries_are_documents'] else 'no'}\n")
    names = ["documents", "queries", "encoder_width"]
    table(["encoder", "documents", "queries", "width"], [[e["encoder"], *(f"{e[name]:,}" for name in names)] for e in facts["encoders"]])
    if facts["splits"]:
        say()
        table(["split", "queries", "judgements"], [[s["split"], f"{s['queries']:,}", f"{s['judgements']:,}"] for s in facts["splits"]])
    else:
        say("no labels: `fit` learns from documents and queries alone")
