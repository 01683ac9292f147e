"""No document is lost, whatever a system call answers: the cases that once lost some, and a sweep over all calls of all verbs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOG = "manifest.sqlite-wal"
SYNCS = (1, 2)  # of the log in one commit: of its header, then of the transaction


def case(verb: str, call: str, part: str, at: int, error: str, readers: int = 1, followers: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"verb": verb, "call": call, "part": part, "at": at, "error": error, "readers": readers, "followers": list(followers)}


@pytest.mark.parametrize("verb", ["add", "update", "remove", "compact"])
def test_a_writer_killed_in_its_commit_under_a_reader(tried: Any, verb: str) -> None:
    """The log holds the dead writer's commit, the reader's shared memory does not: later writers see the old state, and when
    all have ended SQLite brings the commit back. Its segment must still be there."""
    followers = [(), ("refused",), ("refused", "refused"), ("add",), ("refused", "add"), ("add", "refused")]
    for result in tried([case(verb, "fdatasync", LOG, at, "KILL", 1, ones) for at in SYNCS for ones in followers]):
        assert result["said"] == "killed"
        assert result["problems"] == [], result


@pytest.mark.parametrize("verb", ["add", "update", "remove", "compact"])
@pytest.mark.parametrize("error", ["EIO", pytest.param("ENOSPC", marks=pytest.mark.slow)])
def test_what_a_writer_says_of_a_commit_that_could_not_be_synced_is_so(tried: Any, verb: str, error: str) -> None:
    followers = [(), ("refused",), ("add",)]
    cases = [case(verb, "fdatasync", LOG, at, error, readers, ones) for at in SYNCS for readers in (0, 1) for ones in followers]
    for result in tried(cases):
        assert result["said"] != "killed"
        assert result["problems"] == [], result


@pytest.mark.parametrize("verb", ["add", "update", "remove", "compact"])
def test_a_disk_that_takes_nothing_more_leaves_a_doubt_that_the_next_writer_settles(tried: Any, verb: str) -> None:
    followers = [(), ("refused",), ("add",), ("refused", "add")]
    for result in tried([case(verb, "fdatasync", LOG, -2, "EIO", readers, ones) for readers in (0, 1) for ones in followers]):
        assert result["said"].startswith("unknown")
        assert "it is not known whether this was written" in result["said"]
        assert result["problems"] == [], result


@pytest.mark.parametrize("verb", ["add", "update", "compact"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_file_that_can_not_be_removed_after_the_commit_is_left_to_the_next_writer(tried: Any, verb: str, error: str) -> None:
    for result in tried([case(verb, "unlink", ".segment", -1, error, 0, ones) for ones in ((), ("add",))]):
        assert result["said"] == "ok"
        assert result["count"]
        assert result["problems"] == [], result


def test_a_lock_that_can_not_be_made_is_one_line(tried: Any) -> None:
    (result,) = tried([case("add", "open", "/lock", -1, "ENOSPC")])
    assert result["said"].startswith("refused")
    assert "can't be written to: No space left on device" in result["said"]
    assert result["problems"] == []


@pytest.mark.parametrize("call", ["open", "pwrite", "ftruncate"])
def test_a_clean_index_is_opened_on_a_full_disk(tried: Any, call: str) -> None:
    """SQLite's shared memory can't be made there."""
    (result,) = tried([case("open", call, "tried.index/manifest.sqlite-shm", -1, "ENOSPC", 0)])
    assert result["said"] == "ok", result
    assert result["count"]
    assert result["problems"] == []


@pytest.mark.slow
def test_every_call(tmp_path: Path) -> None:
    """benchmarks/faults.py, in short: some hundred of all verbs, calls, errors, readers and followers."""
    out = tmp_path / "faults.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "faults.py"), "--cases", "700", "--seed", "7", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.exists(), done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["problems"] == []
    assert result["cases"] == 700
    assert set(result["cases_of_each_verb"]) == {"open", "add", "update", "remove", "compact", "snapshot", "repair", "words"}
