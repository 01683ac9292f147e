"""Help as a person reads it: `DATASET`, where typer writes `{DATASET}` and `DATASET <path>`. docs/commands.md has the same lines."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose help names arguments and options plainly."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line after the command's name."""
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(_name(param) if param.required else f"[{_name(param)}]" for param in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, each with its text."""
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            found = [row(param) for param in self.get_params(ctx) if param.param_type_name == kind]
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)


def row(param: Any) -> tuple[str, str]:
    """The name of a parameter, with what it takes, and its text."""
    note = ""
    if param.required and param.param_type_name == "option":
        note = "  [required]"
    elif param.default is not None and param.default is not False:
        note = f"  [default: {param.default}]"
    return _name(param), f"{param.help}{note}"


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"{param.metavar}{'...' if param.nargs == -1 else ''}"
    return " ".join(filter(None, [", ".join(sorted(param.opts, key=len)), param.metavar]))
