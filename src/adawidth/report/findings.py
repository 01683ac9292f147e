"""The page of a folder that `reproduce` wrote: each experiment's verdict, figure and table, in one HTML file."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import ArtifactError
from ..formats import atomic_file
from .page import PAGE, STYLE


def experiments_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The results of experiments in a folder, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted(folder.glob("*.json")) if (folder / "cells").is_dir() else ():
        try:
            result = json.loads(file.read_bytes())
        except ValueError as error:
            raise ArtifactError(f"{file}: this is no JSON: {error}") from None
        if isinstance(result, dict) and result.get("experiment") == file.stem:
            found[file.stem] = result
    return found


def write_findings(path: str | Path, folder: Path) -> None:
    """Writes the HTML file, whole or not at all."""
    results = experiments_in(folder)
    try:
        body = "\n".join(_section(name, result, folder / f"{name}.svg") for name, result in results.items())
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{folder}: an experiment lacks what a report shows ({error!r}): run it again") from None
    facts = f"{len(results)} experiments"
    page = PAGE.format(title="Does the paper hold?", facts=facts, style=STYLE, body=body, foot=f"<footer>AdaWidth {__version__}</footer>")
    with atomic_file(path) as file:
        file.write(page.encode())


def _section(name: str, result: Mapping[str, Any], figure: Path) -> str:
    verdict = re.sub(r"\*\*(.*?)\*\*", r"<b>\1</b>", escape(result["verdict"]))
    verdict = re.sub(r"`(.*?)`", r"<code>\1</code>", verdict)
    head = "".join(f"<th>{escape(title)}</th>" for title in result["table"]["header"])
    rows = "".join(f"<tr>{_row(row)}</tr>" for row in result["table"]["rows"])
    return (
        f"<h2>{escape(name)}</h2><p>{verdict}</p>{_picture(name, figure)}"
        '<details><summary>table</summary><div class="scroll">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _row(row: list[str]) -> str:
    return f"<th>{escape(row[0])}</th>" + "".join(f"<td>{escape(value)}</td>" for value in row[1:])


def _picture(name: str, figure: Path) -> str:
    """Inside the page, so that it stands alone; as an image, so that figures can't disturb one another."""
    if not figure.is_file():
        return ""
    content = base64.b64encode(figure.read_bytes()).decode()
    return f'<figure><img class="sheet" alt="{escape(name)}" src="data:image/svg+xml;base64,{content}"></figure>'
