"""A writer that is killed anywhere loses nothing that was acknowledged and leaves nothing by halves: benchmarks/crash.py, in short."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    out = tmp_path / "crash.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--kills", "20", "--seed", "7", "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(out.read_text())
    assert (result["kills"], result["problems"]) == (20, [])
    assert result["acknowledged_calls"] > 10
    assert sum(result["calls_under_way_when_killed"].values()) > 5
    assert result["times_that_readers_looked"] > 5
