"""Two nodes of a Ray cluster in a network namespace with nothing but loopback, and a client that rotates on it by its address.

The process that the head node starts for the client is killed, once, as it starts: the client must connect again.

python two_nodes.py MODEL VECTORS OUT     (as root, in a new network namespace; prints one JSON object)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RAY = [sys.executable, "-m", "ray.scripts.scripts"]
COMMON = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
PATIENCE = 120  # seconds for a node's first worker
CHANNEL = 15  # seconds that the head node waits for the process of a client, here the one that was killed


KILLER = """import os, pathlib, signal
scar = pathlib.Path({scar!r})
if b"--mode=specific-server" in pathlib.Path("/proc/self/cmdline").read_bytes() and not scar.exists():
    scar.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""  # every Python reads a sitecustomize as it starts


class Noted:
    """A kernel that notes which node it ran on, and waits for the other: a node may take long to start its first worker."""

    def __init__(self, kernel: Any, notes: str) -> None:
        self.kernel, self.notes = kernel, notes

    def __call__(self, table: Any, place: str = "table", start: int = 0) -> Any:
        import ray

        (Path(self.notes) / ray.get_runtime_context().get_node_id()).touch()
        end = time.monotonic() + PATIENCE
        while len(list(Path(self.notes).iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        return self.kernel(table, place, start)

    def facts(self) -> dict[str, Any]:
        return dict(self.kernel.facts())


def main(model: str, vectors: str, out: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    shown = subprocess.run(["ip", "-o", "-4", "address"], check=True, capture_output=True, text=True).stdout
    dead, notes = Path(f"{out}.dead"), Path(f"{out}.notes")
    dead.mkdir()
    notes.mkdir()
    (dead / "sitecustomize.py").write_text(KILLER.format(scar=str(dead / "scar")))
    path = os.pathsep.join([str(dead), os.environ["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": path, "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": str(CHANNEL)}
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "env": environment}
    head = ["--head", "--port=6379", "--ray-client-server-port=10001", "--include-dashboard=false"]
    subprocess.run([*RAY, "start", *head, *COMMON], **quiet)
    subprocess.run([*RAY, "start", "--address=127.0.0.1:6379", *COMMON], **quiet)
    from adawidth import AdaWidth
    from adawidth.batch import Rotate, shards_of
    from adawidth.batch.parts import write_parts

    write_parts(Noted(Rotate(AdaWidth.load(model), 16), str(notes)), shards_of(vectors, 50), out, on="ray://127.0.0.1:10001")
    killed = (dead / "scar").exists()
    found = {"addresses": len(shown.splitlines()), "killed": killed, "nodes_that_worked": len(list(notes.iterdir()))}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    sys.modules["two_nodes"] = sys.modules["__main__"]
    Noted.__module__ = "two_nodes"
    main(*sys.argv[1:])
