"""adawidth evaluate"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..errors import OptionError
from .options import (
    AsJson,
    Budget,
    Collection,
    DatasetPath,
    EngineUrl,
    ModelEncoder,
    ModelPath,
    On,
    Policy,
    Quality,
    SkipUnknown,
    Split,
    Task,
    encoder_for,
)
from .output import at_best, emit, say, table
from .place import index_at


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(evaluate)


def evaluate(
    model: ModelPath,
    dataset: DatasetPath,
    encoder: ModelEncoder = None,
    split: Split = "test",
    widths: Annotated[
        str | None, typer.Option("--widths", metavar="LIST", help="Widths, full or auto.  [default: 32,64,128,256,full]")
    ] = None,
    measures: Annotated[
        str, typer.Option("--measures", metavar="LIST", help="nDCG@k, R@k, RR@k (MRR@k), AP@k (MAP@k), P@k and Success@k, as in trec_eval.")
    ] = "nDCG@10 R@100",
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="NAME", help="exhaustive, own-shortlist or frozen-shortlist.")
    ] = "exhaustive",
    policy: Policy = None,
    budget: Budget = None,
    quality: Quality = None,
    start: Annotated[
        int | None, typer.Option("--start", metavar="WIDTH", help="Width at which all documents are scanned, 32 or 64.")
    ] = None,
    shortlist: Annotated[int, typer.Option("--shortlist", metavar="N", min=1, help="Candidates that stage 1 keeps.")] = 500,
    transductive: Annotated[bool, typer.Option("--transductive", help="Use the paper's rule, which sees all queries at once.")] = False,
    online: Annotated[bool, typer.Option("--online", help="Keep to --budget query by query, in their order.")] = False,
    task: Task = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="FILE", help="Write answers as TREC runs, one file per width: FILE, or NAME.WIDTH.trec.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite --run, if AdaWidth wrote it.")] = False,
    engine: EngineUrl = None,
    collection: Collection = "adawidth",
    skip_unknown: SkipUnknown = False,
    on: On = None,
    as_json: AsJson = False,
) -> None:
    """Show what each width keeps and costs on a split's queries."""
    from ..evaluation.evaluate import asked_widths
    from ..evaluation.evaluate import evaluate as evaluated
    from ..evaluation.indexed import WIDTHS, evaluate_index
    from ..evaluation.shortlist import Protocol
    from ..evaluation.widths import parse_widths
    from ..formats import load_dataset, write_run
    from ..model import AdaWidth
    from .results import TAG, refuse_run, run_files

    fitted = AdaWidth.load(model)
    given = None if widths is None else parse_widths(widths)
    routed = any(option is not None for option in (policy, budget, quality, start)) or transductive or online
    asked = asked_widths(WIDTHS if engine and given is None else given, fitted.width, routed=routed and engine is None)
    runs = {} if run is None else run_files(run, asked)
    for file in runs.values():
        refuse_run(file, force=force)
    data = load_dataset(dataset, encoder_for(fitted, dataset, encoder), skip_unknown=skip_unknown, width=fitted.width)
    common: dict[str, Any] = {
        "split": split,
        "widths": asked,
        "measures": measures.split(),
        "policy": policy,
        "budget": budget,
        "quality": quality,
        "start": start,
        "shortlist": shortlist,
        "task": task,
    }
    if on is not None:
        from ..batch import evaluate as evaluated_on
        from ..batch import shards_of

        if engine is not None or transductive or online or protocol != "exhaustive" or (policy, budget, quality, start) != (None,) * 4:
            raise OptionError("shards rank every document at fixed widths: --on goes with --split, --widths, --measures and --task alone")
        few = {name: common[name] for name in ("split", "widths", "measures", "task")}
        result = evaluated_on(fitted, data, shards_of(data.documents.name), on=on, **few)
    elif engine is None:
        result = evaluated(fitted, data, protocol=cast(Protocol, protocol), transductive=transductive, online=online, **common)
    elif transductive or online or protocol != "exhaustive":
        raise OptionError("an engine answers by its own index: --protocol, --transductive and --online are for the model alone")
    else:
        with index_at(None, engine, collection, fitted) as index:
            result = evaluate_index(index, data, **common)
    for width, file in runs.items():
        write_run(file, result.query_ids, result[width].hits, tag=f"{TAG}{width}")
    if as_json:
        emit(result.to_json())
    else:
        show(result.to_json())


def show(result: Mapping[str, Any]) -> None:
    """The table of an evaluation, and how a policy compares with the fixed width."""
    entries = result["results"]
    measures = [name for name in entries[0] if "@" in name]
    has_unseen = "unseen" in entries[0]
    say(
        f"{result['dataset']}, {result['encoder']}: {result['queries']} {result['split']} queries, "
        f"{result['documents']} documents, {result['protocol']}{', task ' + result['task'] if 'task' in result else ''}"
    )
    if "shortlist" in result:
        say(at_best(result["shortlist"]))
    rows = [
        [
            str(entry["width"]),
            f"{entry['mean_width']:.1f}",
            *(f"{entry[measure]:.4f}" for measure in measures),
            *([_unseen(entry["unseen"], measures[0])] if has_unseen else []),
            f"{entry['multiply_adds']:,}",
        ]
        for entry in entries
    ]
    unseen = [f"{measures[0]} unseen ({entries[0]['unseen']['queries']})"] if has_unseen else []
    table(["width", "mean width", *measures, *unseen, "multiply-adds"], rows)
    for entry in entries:
        if "fixed" in entry:
            say(by_stages(entry))


def by_stages(entry: Mapping[str, Any]) -> str:
    """What a policy did, in a few lines."""
    fixed = entry["fixed"]
    difference = fixed["difference"]
    measure = difference["measure"]
    steps = [f"{count:.0f} at {width}" for width, count in entry["survivors"].items()]
    read = " → ".join(steps if len(steps) <= 6 else [*steps[:3], "…", *steps[-2:]])
    return (
        f"{entry['policy']}: candidates read: {read}; {100 * entry['escalated']:.0f} % of the queries read beyond {entry['start']}\n"
        f"{measure} {entry[measure]:.4f} at a mean width of {entry['mean_width']:.1f} ({entry['multiply_adds']:,} multiply-adds); "
        f"fixed width {fixed['width']}: {fixed[measure]:.4f} ({fixed['multiply_adds']:,}); "
        f"difference {difference['mean']:+.4f} (95 % interval {difference['low']:+.4f} to {difference['high']:+.4f})"
    )


def _unseen(figures: Mapping[str, Any], measure: str) -> str:
    return "–" if figures[measure] is None else f"{figures[measure]:.4f}"
