"""adawidth bench and plan"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..sizes import in_words
from .options import AsJson
from .output import emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(bench)
    app.command()(plan)


def bench(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File for the table.  [default: adawidth/bench.json in the cache folder]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure this machine for `plan`; takes a minute.

    Times scans, rescoring, rotation and a whole search on one thread. Ctrl-C leaves an earlier table as it is.
    """
    from ..planning.bench import bench as measured
    from ..planning.table import home, store

    place = home() if out is None else out
    if out is not None and out.exists():
        from ..planning.table import load

        load(out)  # replaces a table, and nothing else
    found = measured()
    store(found, place)
    if as_json:
        emit({"table": str(place), **found.to_json()})
        return
    say(f"{found.machine}\n")
    rows = [
        [storage, str(start), *(f"{1e3 * scan.at(documents):.3f}" for documents in (10_000, 100_000, 1_000_000))]
        for (storage, start), scan in found.scans.items()
    ]
    table(["milliseconds of a scan", "start width", "10,000 documents", "100,000", "1,000,000"], rows)
    say(f"\nper candidate {1e9 * found.candidate:.0f} ns, and {1e9 * found.coordinate:.2f} ns per coordinate read")
    say(f"rotation of 1,024 coordinates {1e6 * found.product * 1024**2:.0f} µs; the rest of a search {1e6 * found.call:.0f} µs")
    say(f"written: {place}")


def plan(
    documents: Annotated[float, typer.Option("--documents", metavar="N", help="How many documents, such as 10e6.")],
    dimensions: Annotated[
        int | None, typer.Option("--dimensions", metavar="D", help="Dimensions of the encoder.  [default: the model's]")
    ] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Memory that there is, such as 2GB or 500MB.")] = None,
    milliseconds: Annotated[
        float | None, typer.Option("--milliseconds", metavar="MS", help="Time that a query may take, on one thread.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", metavar="MODEL", help="Model folder, for its widths and its quality.")] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="Coordinates to store per document.  [default: all]")
    ] = None,
    bytes_per_document: Annotated[
        int | None,
        typer.Option("--bytes-per-document", metavar="N", help="Bytes of 4-bit codes: 16, 24, 32 or 48.  [default: start width / 2]"),
    ] = None,
    machine: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Table of a machine.  [default: what `bench` wrote, else a reference]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan an index: storage, width, memory, disk and latency."""
    from ..model import AdaWidth
    from ..planning import plan as planned
    from ..planning.table import load

    found = planned(
        documents,
        dimensions,
        memory=memory,
        milliseconds=milliseconds,
        model=None if model is None else AdaWidth.load(model),
        keep=keep,
        bytes_per_document=bytes_per_document,
        table=load(machine),
    )
    if as_json:
        emit(found.to_json())
    else:
        show(found.to_json())


def show(result: Mapping[str, Any]) -> None:
    """The sentence, every storage, quality, what to change, and where the times are from."""
    say(f"{result['sentence']}\n")
    rows = [
        [
            f"{one['storage']}{' *' if one == result['choice'] else ''}",
            in_words(one["memory_bytes"]),
            f"{one['bytes_per_document']:.0f}",
            in_words(one["disk_bytes"]),
            f"{one['milliseconds']:.2f}",
            "yes" if one["fits"] else "no",
        ]
        for one in result["options"]
    ]
    table(["storage", "memory", "bytes per document", "disk", "ms per query", "fits"], rows)
    one = result["options"][0]
    read = f"{one['mean_width']:.0f} coordinates read on average, {one['target']} at most"
    say(f"\nWidths: candidates at {one['start']}, {read}, {one['keep']} stored.")
    quality = result["quality"]
    if quality is None:
        say("Quality: unknown without a model (--model); the mean width is that of label-free models in README.md.")
    else:
        dev = ", ".join(f"{figure:.3f} at {width}" for width, figure in quality["dev"].items())
        say(f"Quality, by the model's card: {quality['kept']:g} of {quality['of']}, fitted on {quality['fitted_on']:,} documents.")
        if dev:
            say(f"{quality['dev_measure']} on dev: {dev}.")
    for change in result["changes"]:
        say(f"To change: {change}.")
    if result["table"]["reference"]:
        say(f"Times are those of another machine ({result['table']['machine']}): `adawidth bench` measures this one.")
    else:
        say(f"Times by the table of {result['table']['machine']}.")
    say("Memory is what the process holds. Rows stay on disk: first reads are slower until the system has them in its cache.")
