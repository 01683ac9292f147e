"""Two nodes of a Ray cluster in a network namespace with nothing but loopback, and a client that rotates on it by its address.

python two_nodes.py MODEL VECTORS OUT     (as root, in a new network namespace; prints one JSON object)
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RAY = [sys.executable, "-m", "ray.scripts.scripts"]
COMMON = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]


class Noted:
    """A kernel that notes which node it ran on."""

    def __init__(self, kernel: Any, notes: str) -> None:
        self.kernel, self.notes = kernel, notes

    def __call__(self, table: Any, place: str = "table", start: int = 0) -> Any:
        import ray

        (Path(self.notes) / ray.get_runtime_context().get_node_id()).touch()
        return self.kernel(table, place, start)

    def facts(self) -> dict[str, Any]:
        return dict(self.kernel.facts())


def main(model: str, vectors: str, out: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    shown = subprocess.run(["ip", "-o", "-4", "address"], check=True, capture_output=True, text=True).stdout
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL}
    head = ["--head", "--port=6379", "--ray-client-server-port=10001", "--include-dashboard=false"]
    subprocess.run([*RAY, "start", *head, *COMMON], **quiet)
    subprocess.run([*RAY, "start", "--address=127.0.0.1:6379", *COMMON], **quiet)
    import ray

    from adawidth import AdaWidth
    from adawidth.batch import Rotate, shards_of
    from adawidth.batch.parts import write_parts

    notes = Path(f"{out}.notes")
    notes.mkdir()
    ray.init("ray://127.0.0.1:10001")
    nodes = sum(node["Alive"] for node in ray.nodes())
    ray.shutdown()
    write_parts(Noted(Rotate(AdaWidth.load(model), 16), str(notes)), shards_of(vectors, 50), out, on="ray://127.0.0.1:10001")
    found = {"addresses": len(shown.splitlines()), "nodes": nodes, "nodes_that_worked": len(list(notes.iterdir()))}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    sys.modules["two_nodes"] = sys.modules["__main__"]
    Noted.__module__ = "two_nodes"
    main(*sys.argv[1:])
