"""schemathesis over the OpenAPI document: every endpoint, with good and bad requests, alone and one after the other."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adawidth.serve.run import Running
from small_service import KEY

CONFIG = Path(__file__).with_name("schemathesis.toml")
pytestmark = pytest.mark.serve


@pytest.mark.parametrize("phase", ["examples,coverage", "fuzzing", "stateful"])
def test_every_endpoint_keeps_to_its_schema(serving: Callable[..., Running], phase: str) -> None:
    service = serving(rate=0)
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG),
        "run", f"{service.url}/openapi.json", "--header", f"Authorization: Bearer {KEY}",
        "--checks", "all", "--phases", phase, "--max-examples", "40", "--seed", "1", "--no-color", "--request-timeout", "30",
        "--generation-database", "none", "--suppress-health-check", "all", "--continue-on-failure",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
