"""The systemd unit and the container file in examples/service: their commands, and what systemd makes of the unit."""

import configparser
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from adawidth.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples" / "service"


def unit_command() -> list[str]:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(EXAMPLES / "adawidth.service")
    return shlex.split(unit["Service"]["ExecStart"])


def container_command() -> list[str]:
    lines = (EXAMPLES / "Containerfile").read_text().splitlines()
    (entry,) = [line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT ")]
    found: list[str] = json.loads(entry)
    return found


@pytest.mark.parametrize("command", [unit_command(), container_command()], ids=["systemd", "container"])
def test_the_commands_are_ones_that_adawidth_takes(command: list[str]) -> None:
    program, verb, *arguments = command
    assert Path(program).name == "adawidth"
    assert verb == "serve"
    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    given = serve.make_context("serve", arguments).params  # refuses what it does not know
    assert given["path"].is_absolute()
    assert given["api_key_file"] is not None
    helped = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    assert [one for one in arguments if one.startswith("--") and one not in helped] == []


@pytest.mark.parametrize(("wrong", "told"), [(None, ""), ("PrivateTmp=perhaps", "boolean"), ("Unheard=of", "Unheard")])
def test_systemd_takes_the_unit(tmp_path: Path, wrong: str | None, told: str) -> None:
    """As it stands, but for the program, which is installed elsewhere; and it would notice what is wrong."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze on this machine: Debian has it in the package systemd")
    unit = (EXAMPLES / "adawidth.service").read_text().replace(unit_command()[0], sys.executable)
    (tmp_path / "adawidth.service").write_text(unit if wrong is None else unit.replace("PrivateTmp=yes", wrong))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / "adawidth.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stderr == "") == (wrong is None), done.stderr
    assert told in done.stderr
