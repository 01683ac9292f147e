"""Cases that run in a process of their own: it may take 10 s of CPU time and 1 GB for each. If one ends it, a new one goes on."""

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from adawidth.errors import AdaWidthError

SECONDS = 10  # of CPU time that a case may take …
ANYHOW = 120  # … and altogether, if it waits for something that never comes
MEMORY = 2**30  # bytes that it may map beyond what the process has
TESTS = Path(__file__).parents[1]

Case = dict[str, Any]


def serve(run: Callable[[Case], str]) -> None:
    """Runs the cases that come, a line each, and says a line of each: what `run` gave, "refused: …" or "FAULT: …"."""
    say, sys.stdout = sys.stdout, sys.stderr
    faulthandler.enable()
    for line in sys.stdin:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, resource.RLIM_INFINITY))
        case = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, ANYHOW if "called" in case else SECONDS)  # a sound first call may have to compile
        faulthandler.dump_traceback_later(ANYHOW, exit=True)
        try:
            outcome = run(case)
        except AdaWidthError as error:
            outcome = f"refused: {error}"
        except BaseException:
            outcome = f"FAULT: {traceback.format_exc(limit=-4)}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(outcome), file=say, flush=True)


def watched(program: Path, arguments: Iterable[object], cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Each case with its outcome; that of one that ended its process begins with "DIED"."""
    paths = os.pathsep.join([str(TESTS), str(TESTS / "faults"), *filter(None, sys.path)])
    command = [sys.executable, str(program), *map(str, arguments)]
    worker: subprocess.Popen[str] | None = None
    with tempfile.TemporaryFile("w+") as errors:
        for case in cases:
            if worker is None:
                worker = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env={**os.environ, "PYTHONPATH": paths},
                )
            assert worker.stdin is not None
            assert worker.stdout is not None
            try:
                worker.stdin.write(json.dumps(case) + "\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
            except BrokenPipeError:
                line = ""
            if line:
                yield case, json.loads(line)
                continue
            code, worker = worker.wait(), None
            errors.seek(0)
            yield case, f"DIED with {code}: {errors.read()[-2_000:]}"
        if worker is not None:
            worker.communicate()
