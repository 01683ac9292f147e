"""Does an index survive every system call failing, or ending the process?

    python benchmarks/faults.py                    (hours; writes results/faults.json)
    python benchmarks/faults.py --minutes 15       (as much as that gives, drawn at random; the next run goes on from there)
    TMPDIR=/dev/shm python benchmarks/faults.py    (twice as fast: nothing waits for a disk, and calls fail all the same)

Every verb is run with each of its calls failing in turn with EIO and ENOSPC and killing the process, with 0, 1 and 3 readers, and
with no writer after it, one that is refused, or one that adds, on an index with the words of its documents (the verb `words` adds
them): see tests/faults/harness.py, which says what must hold afterwards.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kept import Kept, summed

FAULTS = Path(__file__).parents[1] / "tests" / "faults"
VERBS = ("open", "add", "update", "remove", "compact", "words", "snapshot", "repair")  # words: compact(hybrid=True)
CALLS = ("open", "write", "pwrite", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "mmap")
READERS = (0, 1, 3)
FOLLOWERS = ((), ("refused",), ("add",))
BATCH = 100  # cases in one process, whose start takes as long as twenty cases

Case = dict[str, Any]


def tried(cases: Sequence[Case], folder: Path) -> list[Case]:
    """Runs cases under the injector."""
    library = folder / "inject.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(FAULTS / "inject.c"), "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, str(FAULTS / "harness.py"), str(folder)],
        input=json.dumps(cases),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=True,
    )
    return list(json.loads(done.stdout))


def every(folder: Path) -> tuple[list[Case], dict[str, dict[str, int]]]:
    """All cases, and how many calls of each kind a verb makes without readers."""
    plain = {"part": "/case/", "at": 0, "error": "EIO", "followers": []}
    asked = [{"verb": verb, "call": call, "readers": readers, **plain} for verb in VERBS for call in CALLS for readers in READERS]
    counted = tried(asked, folder)
    cases = [
        {**case, "at": at, "error": error, "followers": list(followers)}
        for case in counted
        for at in range(1, case["count"] + 1)
        for error in ("EIO", "ENOSPC", "KILL")
        for followers in FOLLOWERS
    ]
    calls = {verb: {case["call"]: case["count"] for case in counted if case["verb"] == verb and not case["readers"]} for verb in VERBS}
    return cases, calls


def counted(results: Sequence[Case]) -> dict[str, Any]:
    """What became of these cases."""
    said: dict[str, Counter[str]] = {error: Counter() for error in ("EIO", "ENOSPC", "KILL")}
    for case in results:
        said[case["error"]][case["said"].split()[0].rstrip(",")] += 1
    return {
        "cases": len(results),
        "cases_of_each_verb": dict(Counter(case["verb"] for case in results)),
        "what_the_writer_said": {error: dict(counts) for error, counts in said.items()},
        "problems": [case for case in results if case["problems"]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="so many at most, drawn at random")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "faults.json")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        cases, calls = every(Path(folder))
        random.Random(options.seed).shuffle(cases)
        chosen = cases[: options.cases]
        command = f"python benchmarks/faults.py --seed {options.seed}" + (f" --cases {options.cases}" if options.cases else "")
        about = {"command": command, "calls_of_each_verb": calls, "all_cases": len(cases)}
        kept = Kept(options.out, about, Path(__file__).name)
        for first in range(BATCH * len(kept.parts), len(chosen), BATCH):
            if time.monotonic() > end:
                break
            kept.add(counted(tried(chosen[first : first + BATCH], Path(folder))))
            report = about | summed(kept.parts)
            options.out.write_text(json.dumps(report, indent=1) + "\n")
            print(f"{report['cases']} of {len(cases)} cases, {len(report['problems'])} with problems", file=sys.stderr)
        else:
            kept.end()
    raise SystemExit(1 if any(part["problems"] for part in kept.parts) else 0)


if __name__ == "__main__":
    main()
