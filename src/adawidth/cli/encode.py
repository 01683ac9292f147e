"""adawidth encode"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..errors import OptionError
from .options import AsJson, EncoderModel, IdColumn, On, TextColumn, TitleColumn
from .output import emit, say


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(encode)


def encode(
    source: Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder; with --out, any file or folder of texts.")],
    model: EncoderModel,
    encoder: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Name for the vectors.  [default: short name of the model]")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DATASET", help="Dataset folder to make from other texts.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", metavar="FILE", help="Queries to put into --out.")] = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    id_column: IdColumn = None,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Split as in the paper: scifact, arguana, msmarco, okvqa, …")
    ] = None,
    questions: Annotated[
        list[Path] | None, typer.Option("--questions", metavar="FILE", help="Question file of okvqa or aokvqa; may be repeated.")
    ] = None,
    images: Annotated[Path | None, typer.Option("--images", metavar="DIR", help="Images of okvqa or aokvqa.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of a collection's splits and samples.")] = 0,
    instruction: Annotated[
        str | None, typer.Option("--instruction", metavar="TEXT", help="Task description, for instruction-tuned encoders.")
    ] = None,
    query_prompt: Annotated[
        str | None, typer.Option("--query-prompt", metavar="TEXT", help="Prompt for queries.  [default: the preset's]")
    ] = None,
    document_prompt: Annotated[
        str | None, typer.Option("--document-prompt", metavar="TEXT", help="Prompt for documents.  [default: the preset's]")
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="NAME", help="float16 or float32.")] = "float16",
    batch: Annotated[int | None, typer.Option("--batch", metavar="N", min=1, help="Texts to encode together.")] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="cpu, cuda or mps.  [default: the fastest there is]")
    ] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run code that the model brings.")] = False,
    on: On = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite vectors of this name, and --out, if AdaWidth wrote them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn texts into vectors. An interrupted run resumes when repeated."""
    from ..encoders import INSTRUCTIONS, encode_dataset, load_encoder, short_name
    from ..encoders.encode import Dtype, refuse_existing_vectors
    from ..formats import Columns
    from ..formats.collections import Published, gather_texts, prepare_collection

    name = encoder or short_name(model)
    columns = Columns(text_column, title_column, id_column)
    _check(source, out, named=columns != Columns(), further=bool(queries or collection))
    folder = out or source
    refuse_existing_vectors(folder, name, dtype, force)
    options: dict[str, Any] = {
        "instruction": instruction or INSTRUCTIONS.get(collection or folder.resolve().name.lower()),
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "device": device,
        "batch": batch,
        "trust_remote_code": trust_remote_code,
    }
    loaded = load_encoder(model, **options) if on is None else None
    if collection is not None:
        prepare_collection(collection, Published(source, questions or (), images, seed=seed), cast(Path, out), force=force)
    elif out is not None:
        gather_texts(out, source, queries, columns, force=force)
    if loaded is not None:
        made: dict[str, Any] = encode_dataset(folder, loaded, name, dtype=cast(Dtype, dtype), force=force)
    else:
        from ..batch import encode as encode_on

        made = encode_on(folder, model, name, options=options, dtype=cast(Dtype, dtype), force=force, on=on)
    if as_json:
        emit({"dataset": str(folder), "as": name, **made})
        return
    say(f"{made['documents']:,} documents and {made['queries']:,} queries, {made['dimensions']} coordinates each, by {made['encoder']}")
    say(f"written: {folder / 'embeddings' / name}")


def _check(source: Path, out: Path | None, *, named: bool, further: bool) -> None:
    """Refuses options that need --out, and texts that are in no dataset folder, without it."""
    if out is not None:
        return
    if not source.is_dir():
        raise OptionError(f"{source} is no dataset folder: name the one to make of it with --out")
    if named or further:
        raise OptionError("--queries, --collection and columns are for texts that become a dataset folder: add --out FOLDER")
