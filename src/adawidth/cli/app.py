"""The app: every command, and how their errors are shown."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import EXTRAS, AdaWidthError, OptionalDependencyError
from . import (
    check,
    compare,
    demo,
    encode,
    evaluate,
    export,
    fit,
    index,
    info,
    plan,
    push,
    quickstart,
    refit,
    report,
    reproduce,
    rotate,
    search,
    serve,
    width,
)
from .help import Command


class _Commands(TyperGroup):
    """Turns what AdaWidth raises into one line on standard error and exit code 1; Ctrl-C into 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except AdaWidthError as error:
            _say(f"error: {error}")
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            _say(f"error: {OptionalDependencyError(error.name, EXTRAS[error.name])}")
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is None:
                raise
            _say(f"error: {error.filename}: {error.strerror}")
        except KeyboardInterrupt:
            _say("stopped")
            raise typer.Exit(130) from None
        raise typer.Exit(1)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    demo,
    quickstart,
    encode,
    fit,
    refit,
    evaluate,
    check,
    compare,
    index,
    rotate,
    push,
    export,
    search,
    serve,
    width,
    plan,
    reproduce,
    report,
    info,
):
    module.add(app)
for command in app.registered_commands:
    command.cls = Command


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)] = False,
) -> None:
    """Dense retrieval that evaluates only as many embedding coordinates as each query needs."""
    notes = _Notes()
    notes.setFormatter(_OneLine())
    logger = logging.getLogger("adawidth")
    logger.handlers = [notes]
    logger.setLevel(logging.INFO)


class _Notes(logging.Handler):
    """Writes to standard error as it is then: a progress bar takes its place, and shows lines above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


class _OneLine(logging.Formatter):
    """ "note: …" or "warning: …" on a single line."""

    def format(self, record: logging.LogRecord) -> str:
        word = "warning" if record.levelno >= logging.WARNING else "note"
        return f"{word}: {' '.join(record.getMessage().split())}"


def _say(line: str) -> None:
    typer.echo(" ".join(line.split()), err=True)
