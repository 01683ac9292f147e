"""adawidth encode"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..errors import OptionError
from .options import AsJson
from .output import emit, say

EncoderName = Annotated[
    str, typer.Option("--model", help="Encoder: minilm, wordllama, bge-large-en-v1.5, …, a model folder, a model's name, or openai:NAME.")
]


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(encode)


def encode(
    source: Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder; or, with --out, a file or folder of texts.")],
    model: EncoderName,
    encoder: Annotated[str | None, typer.Option("--as", help="Name of the vectors.  [default: a short name of the model]")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Dataset folder to make of texts that are in none.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", help="File of queries, for --out.")] = None,
    text_column: Annotated[str | None, typer.Option("--text-column", help="Column of a CSV, JSONL or Parquet file.")] = None,
    title_column: Annotated[str | None, typer.Option("--title-column", help="Column that is put in front of the text.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Column with ids.  [default: rows are numbered]")] = None,
    collection: Annotated[str | None, typer.Option("--collection", help="Cut as the paper's: arguana, quora, msmarco, okvqa, …")] = None,
    questions: Annotated[list[Path] | None, typer.Option("--questions", help="Question file of okvqa or aokvqa; may be repeated.")] = None,
    images: Annotated[Path | None, typer.Option("--images", help="Folder of the images of okvqa or aokvqa.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same splits and samples of a collection.")] = 0,
    instruction: Annotated[str | None, typer.Option("--instruction", help="What queries ask for, for encoders that are told.")] = None,
    query_prompt: Annotated[str | None, typer.Option("--query-prompt", help="Put in front of queries instead of the preset's.")] = None,
    document_prompt: Annotated[str | None, typer.Option("--document-prompt", help="Put in front of documents.")] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="float16 or float32.")] = "float16",
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Texts encoded together.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps.  [default: the fastest there is]")] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run the code that the model brings.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace vectors of this name, and other texts at --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn texts into vectors. An interrupted run goes on where it was when the same command is given again."""
    from ..encoders import INSTRUCTIONS, encode_dataset, load_encoder, short_name
    from ..encoders.encode import Dtype, refuse_existing_vectors
    from ..formats import Columns
    from ..formats.collections import Published, gather_texts, prepare_collection

    name = encoder or short_name(model)
    columns = Columns(text_column, title_column, id_column)
    _check(source, out, named=columns != Columns(), further=bool(queries or collection))
    if collection is not None:
        prepare_collection(collection, Published(source, questions or (), images, seed=seed), cast(Path, out), force=force)
    elif out is not None:
        gather_texts(out, source, queries, columns, force=force)
    folder = out or source
    refuse_existing_vectors(folder, name, force)
    loaded = load_encoder(
        model,
        instruction=instruction or INSTRUCTIONS.get(collection or folder.resolve().name.lower()),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        device=device,
        batch=batch,
        trust_remote_code=trust_remote_code,
    )
    made: dict[str, Any] = encode_dataset(folder, loaded, name, dtype=cast(Dtype, dtype), force=force)
    if as_json:
        emit({"dataset": str(folder), "as": name, **made})
        return
    say(f"{made['documents']:,} documents and {made['queries']:,} queries, {made['dimensions']} coordinates each, by {made['encoder']}")
    say(f"written: {folder / 'embeddings' / name}")


def _check(source: Path, out: Path | None, *, named: bool, further: bool) -> None:
    """Options that go together."""
    if out is not None:
        return
    if not source.is_dir():
        raise OptionError(f"{source} is no dataset folder: say with --out which folder to make of it")
    if named or further:
        raise OptionError("--queries, --collection and columns are for texts that become a dataset folder: add --out FOLDER")
