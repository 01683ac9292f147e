"""The service under load, from a second process on loopback:

    python benchmarks/serve.py [--seconds 60] [--minutes 5] [--parts steady rates restart]

steady    32 connections, two of which write: errors, lost writes, latencies, memory minute by minute
rates     single queries against an endpoint that does nothing, 32 queries per request against the index in this process, in turns
restart   killed with requests in flight: is every answered write there; ready again, against opening the index in a process
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Client, bundled, load_dataset, open_index
from adawidth.model import Index
from http_load import BATCH

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "serve.json"
KEY = "for this benchmark only"
CONNECTIONS, TURNS = 32, 4
READY = 60.0  # seconds


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Served:
    """`adawidth serve` in a process of its own; `seconds` is how long it took to be ready."""

    def __init__(self, folder: Path) -> None:
        self.port, began = free_port(), time.perf_counter()
        command = [
            sys.executable,
            "-c",
            "from adawidth.cli import main; main()",
            "serve",
            str(folder),
            "--port",
            str(self.port),
            "--rate",
            "0",
        ]
        self.process = subprocess.Popen(command, env={**os.environ, "ADAWIDTH_API_KEY": KEY}, stderr=subprocess.DEVNULL)
        wait_for(self.port, "/readyz")
        self.seconds = time.perf_counter() - began

    def resident(self) -> float:
        """MB in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return round(int(status.partition("VmRSS:")[2].split()[0]) / 1e3, 1)

    def busy(self) -> float:
        """Seconds of processor time so far."""
        used = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(60)

    @property
    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.port}", KEY)


def wait_for(port: int, path: str) -> None:
    """Until it answers 200."""
    until = time.perf_counter() + READY
    while time.perf_counter() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as asked:
                asked.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                if asked.recv(12) == b"HTTP/1.1 200":
                    return
        except OSError:
            pass
        time.sleep(0.01)
    raise TimeoutError(f"nothing answers at {port} after {READY} s")


def start_load(folder: Path, queries: np.ndarray, port: int, connections: dict[str, int], seconds: float, **more: Any) -> Any:
    """The second process; `more` are options of searches, and the path of a Chroma collection."""
    np.save(folder / "queries.npy", queries)
    spec = {"port": port, "key": KEY, "connections": connections, "seconds": seconds, "queries": str(folder / "queries.npy")}
    spec |= {"options": {}, "chroma": "", **more}
    (folder / "spec.json").write_text(json.dumps(spec))
    return subprocess.Popen([sys.executable, str(HERE / "http_load.py"), str(folder / "spec.json")], stdout=subprocess.PIPE, text=True)


def loaded(*given: Any, **more: Any) -> dict[str, Any]:
    """What it measured."""
    with start_load(*given, **more) as running:
        return dict(json.loads(running.communicate()[0]))


def steady(home: Path, folder: Path, queries: np.ndarray, seconds: float, minutes: int) -> dict[str, Any]:
    served, rounds, names = Served(folder), [], []
    before = len(served.client)
    try:
        for _ in range(minutes):
            found = loaded(home, queries, served.port, {"search": CONNECTIONS - 2, "write": 2}, seconds)
            names += found["written"]
            rounds.append({**found, "written": len(found["written"]), "resident_mb": served.resident()})
            print(rounds[-1], flush=True)
        after = len(served.client)
    finally:
        served.end()
    with open_index(folder) as index:
        lost = sum(name not in index for name in names)
        index.remove([name for name in index if str(name).startswith("load-")])
    return {
        "connections": CONNECTIONS, "seconds": seconds, "rounds": rounds, "errors": sum(one["errors"] + one["broken"] for one in rounds),
        "writes_answered": len(names), "writes_lost": lost, "documents_before": before, "documents_after": after,
        "p99_over_p50": round(max(one["search"]["p99_ms"] / one["search"]["p50_ms"] for one in rounds), 1),
    }  # fmt: skip


def rates(home: Path, folder: Path, queries: np.ndarray, seconds: float) -> dict[str, Any]:
    """In turns of a few seconds each; ratios are medians over turns of the same moment. Other work on the machine changes rates, but hardly
    the processor time of a request."""
    served = Served(folder)
    taken: dict[str, list[float]] = {name: [] for name in ("nothing", "ids", "search")}  # seconds of processor time per request
    each = max(1.0, seconds / 12)
    turns: dict[str, list[float]] = {name: [] for name in ("nothing", "ids", "search", "batch", "in_process", "in_process_single")}
    try:
        with open_index(folder) as index:
            for kind in ("nothing", "ids", "search", "batch"):
                loaded(home, queries, served.port, {kind: 4}, 1.0)  # once, so that everything is loaded
            for _ in range(TURNS):
                for kind in ("nothing", "ids", "search"):
                    before = served.busy()
                    found = loaded(home, queries, served.port, {kind: CONNECTIONS}, each)[kind]
                    turns[kind].append(found["per_second"])
                    taken[kind].append((served.busy() - before) / found["requests"])
                turns["batch"].append(BATCH * loaded(home, queries, served.port, {"batch": CONNECTIONS}, each)["batch"]["per_second"])
                turns["in_process"].append(in_process(index, queries, BATCH, each))
                turns["in_process_single"].append(in_process(index, queries, 1, each))
    finally:
        served.end()
    median = {name: round(statistics.median(found), 1) for name, found in turns.items()}
    ratio = {
        name: round(statistics.median(a / b for a, b in zip(turns[one], turns[other], strict=True)), 2)
        for name, one, other in (("ids_over_nothing", "ids", "nothing"), ("search_over_nothing", "search", "nothing"),
                                 ("batch_over_in_process", "batch", "in_process"), ("ids_over_single", "ids", "in_process_single"))
    }  # fmt: skip
    cpu = {name: round(1e6 * statistics.median(found)) for name, found in taken.items()}
    return {"turns": TURNS, "seconds_each": each, "queries_per_second": median, **ratio, "processor_us": cpu}


def in_process(index: Index, queries: np.ndarray, size: int, seconds: float) -> float:
    """Queries per second of the same index here, in batches."""
    asked, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        place = asked % (len(queries) - size)
        _ = index.search(queries[place : place + size]).ids
        asked += size
    return asked / (time.perf_counter() - began)


def restart(home: Path, folder: Path, queries: np.ndarray) -> dict[str, Any]:
    lost = answered = 0
    for _ in range(3):
        served = Served(folder)
        running = start_load(home, queries, served.port, {"write": 8, "search": 8}, 20.0)
        time.sleep(4)
        served.end(signal.SIGKILL)
        written = json.loads(running.communicate()[0])["written"]
        with open_index(folder) as index:
            lost, answered = lost + sum(name not in index for name in written), answered + len(written)
            index.remove([name for name in index if str(name).startswith("load-")])
    opening = "import sys; from adawidth import open_index; index = open_index(sys.argv[1]); print(len(index))"
    took: dict[str, list[float]] = {"open": [], "ready": []}
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", opening, str(folder)], check=True, capture_output=True)
        took["open"].append(time.perf_counter() - began)
        served = Served(folder)
        took["ready"].append(served.seconds)
        served.end()
    ratio = statistics.median(b / a for a, b in zip(took["open"], took["ready"], strict=True))
    seconds = {f"{name}_seconds": round(statistics.median(found), 2) for name, found in took.items()}
    return {"kills": 3, "writes_answered": answered, "writes_lost": lost, **seconds, "ready_over_open": round(ratio, 2)}


def bundled_index(folder: Path) -> np.ndarray:
    """The bundled docstrings as an index; returns their test queries."""
    data = load_dataset(bundled.path())
    model = AdaWidth.fit(data.documents, data.queries_of("train"), recipe="pca")
    names = [str(name) for name in data.documents.ids]
    model.index(data.documents, folder, titles=names, texts=[bundled.text_of(name) or "" for name in names]).close()
    return np.asarray(data.queries_of("test").values, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--parts", nargs="+", default=["steady", "rates", "restart"], choices=["steady", "rates", "restart"])
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found["machine"] = {"cpus": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        queries = bundled_index(home / "docstrings.index")
        for part in options.parts:
            if part == "steady":
                found[part] = steady(home, home / "docstrings.index", queries, options.seconds, options.minutes)
            elif part == "rates":
                found[part] = rates(home, home / "docstrings.index", queries, options.seconds)
            else:
                found[part] = restart(home, home / "docstrings.index", queries)
            print(part, json.dumps(found[part]), flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
