"""Writes the option tables of docs/commands.md from the commands themselves: python tools/command_docs.py"""

import re
from pathlib import Path

import typer

from adawidth.cli.app import app
from adawidth.cli.help import row

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
TABLE = re.compile(r"<!-- options of (?P<name>\w+) -->\n.*?<!-- end of options -->", re.DOTALL)
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def written(page: str) -> str:
    """The page with every table as the commands have it now."""
    return TABLE.sub(lambda found: f"<!-- options of {found['name']} -->\n{_table(found['name'])}<!-- end of options -->", page)


def _table(name: str) -> str:
    rows = [row(param) for param in COMMANDS[name].params]
    lines = [("option", "meaning"), ("---", "---"), *((f"`{option}`", _escaped(text)) for option, text in rows)]
    return "".join(f"| {left} | {right} |\n" for left, right in lines)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
