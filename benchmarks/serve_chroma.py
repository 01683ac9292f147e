"""The service beside Chroma's server, the same documents at full width behind it, in turns:

    python benchmarks/serve_chroma.py DATASET --encoder E [--python INTERPRETER] [--seconds 3] [--turns 3]

Chroma (PyPI: chromadb) runs in an environment of its own, because its pins are not ours: `--python` is the interpreter of one that has it,
else one is made in build/chroma. Both servers are asked from a second process over 32 connections, as their own clients ask: AdaWidth in
base64, Chroma in lists of numbers. Figures are queries per second and nDCG@10 on test queries.

Chroma runs as it comes, and with the smallest `ef_search` that reaches AdaWidth's nDCG@10 on dev queries, which are not timed. Its server
reads that setting when it loads a collection, so each setting has a copy of the folder and a server of its own, started after it was set.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adawidth import AdaWidth, Dataset, Vectors, load_dataset
from adawidth.metrics import evaluate, parse_measures
from http_load import BATCH, packed
from serve import CONNECTIONS, HERE, KEY, Served, free_port, loaded, wait_for

RESULTS = HERE / "results" / "serve_chroma.json"
API = "/api/v2/tenants/default_tenant/databases/default_database/collections"
PART = 2_000  # documents of a request
QUERIES = 2_000  # at most
EF = (100, 200, 400, 800, 1600)  # Chroma's ef_search: its default, and what is tried until its nDCG@10 reaches ours
TUNED = 1_000  # dev queries that it is chosen on
CLOSE = 0.995  # of our nDCG@10 counts as equal
FITTED = 1_000  # train queries, without their labels
OURS: tuple[dict[str, Any], ...] = ({}, {"width": "full"}, {"width": "full", "shortlist": 2_000})  # of stage 1's candidates


def chroma_python(given: str | None) -> str:
    """An interpreter whose environment has chromadb."""
    if given is not None:
        return given
    home = HERE.parent / "build" / "chroma"
    python = str(home / "bin" / "python")
    if not (home / "bin" / "chroma").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "chromadb"], check=True)
    return python


@contextmanager
def chroma_server(python: str, folder: Path) -> Iterator[int]:
    """Its port."""
    port = free_port()
    command = [str(Path(python).with_name("chroma")), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"ANONYMIZED_TELEMETRY": "False", "CHROMA_TELEMETRY_ENABLED": "False"}
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **quiet})
    try:
        wait_for(port, "/api/v2/heartbeat")
        yield port
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def asked(port: int, path: str, body: Any, method: str = "POST", **headers: str) -> Any:
    """The answer of a server of this machine."""
    sent = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), method=method)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        sent.add_header(name, value)
    with urllib.request.urlopen(sent, timeout=300) as answer:
        return json.loads(answer.read() or b"{}")


def filled(port: int, data: Dataset) -> str:
    """A collection of all documents; returns its path."""
    made = asked(port, API, {"name": "documents", "configuration": {"hnsw": {"space": "cosine"}}})
    path, names = f"{API}/{made['id']}", [str(name) for name in data.documents.ids]
    for start in range(0, len(names), PART):
        some = slice(start, start + PART)
        rows = np.asarray(data.documents.values[some], np.float32)
        asked(port, f"{path}/add", {"ids": names[some], "embeddings": rows.tolist()})
    return path


@contextmanager
def at_effort(python: str, folder: Path, path: str, effort: int) -> Iterator[int]:
    """A server whose collection is searched with this ef_search; its port."""
    with chroma_server(python, folder) as port:
        asked(port, path, {"new_configuration": {"hnsw": {"ef_search": effort}}}, "PUT")
    with chroma_server(python, folder) as port:  # only now it counts
        yield port


class Rival(NamedTuple):
    """A server and one of its settings: what is asked of it, and how it is loaded."""

    name: str
    port: int
    kind: str  # of load
    more: dict[str, Any]  # for the load

    def found(self, rows: np.ndarray) -> list[list[str]]:
        """Ids of the ten best for each query."""
        if "chroma" in self.more:
            answer = asked(self.port, self.more["chroma"], {"query_embeddings": rows.tolist(), "n_results": 10, "include": ["distances"]})
            return [list(ids) for ids in answer["ids"]]
        body = {"vector": packed(rows), "fields": [], **self.more.get("options", {})}
        answer = asked(self.port, "/v1/search", body, Authorization=f"Bearer {KEY}")
        return [[str(hit["id"]) for hit in result["hits"]] for result in answer["results"]]

    def ndcg(self, data: Dataset, queries: Vectors, split: str) -> float:
        """Mean nDCG@10."""
        rows = np.asarray(queries.values, np.float32)
        ids = [one for start in range(0, len(rows), BATCH) for one in self.found(rows[start : start + BATCH])]
        found = np.array([[data.documents.row_of[name] for name in answer] for answer in ids])
        judged = data.qrels[split].judged(queries, data.documents)
        return round(float(evaluate(parse_measures("nDCG@10"), found, judged)["nDCG@10"].mean()), 4)


def compared(rivals: Sequence[Rival], home: Path, rows: np.ndarray, seconds: float, turns: int) -> dict[str, list[float]]:
    """Queries per second of each, turn by turn; the first turn is a short one that is not counted."""
    rates: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    for turn in range(turns + 1):
        for rival in rivals:
            found = loaded(home, rows, rival.port, {rival.kind: CONNECTIONS}, seconds if turn else 1.0, **rival.more)
            assert not found["errors"], found
            if turn:
                rates[rival.name].append(found[rival.kind]["per_second"] * (BATCH if rival.kind.endswith("batch") else 1))
    return rates


def chosen(python: str, folder: Path, path: str, data: Dataset, wanted: float) -> dict[int, float]:
    """Chroma's nDCG@10 on dev queries by ef_search, up to the first that is no worse than ours."""
    queries, found = first(data, "dev", TUNED), {}
    for effort in EF:
        with at_effort(python, folder, path, effort) as port:
            found[effort] = chroma_rival(port, path, effort).ndcg(data, queries, "dev")
        print(f"on dev queries: chroma ef_search {effort} nDCG@10 {found[effort]:.4f}, wanted {CLOSE * wanted:.4f}", flush=True)
        if found[effort] >= CLOSE * wanted:
            break
    return found


def chroma_rival(port: int, path: str, effort: int) -> Rival:
    return Rival(f"chroma ef_search {effort}", port, "chroma", {"chroma": f"{path}/query"})


def first(data: Dataset, split: str, count: int) -> Vectors:
    """So many queries of a split."""
    every = data.queries_of(split)
    return every.select(np.arange(min(count, len(every))))


def verdict(found: Mapping[str, Mapping[str, Any]], rivals: Mapping[str, str]) -> dict[str, Any]:
    """AdaWidth as it is against Chroma, in each of these settings of it."""
    ours = "adawidth as it is"
    return {
        name: {
            "adawidth": ours, "chroma": rival,
            **{kind: round(found[ours][kind] / found[rival][kind], 2) for kind in ("single", "batch")},
        }
        for name, rival in rivals.items()
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--encoder")
    parser.add_argument("--python", help="interpreter of an environment that has chromadb")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    python = chroma_python(options.python)
    telling = [python, "-c", "import chromadb; print(chromadb.__version__)"]
    version = subprocess.run(telling, check=True, capture_output=True, text=True).stdout
    data = load_dataset(options.dataset, encoder=options.encoder)
    queries = first(data, "test", QUERIES)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as made, ExitStack() as servers:
        home = Path(made)
        began = time.perf_counter()
        model = AdaWidth.fit(data.documents, first(data, "train", FITTED), recipe="pca")
        model.index(data.documents, home / "ours.index").close()
        took = {"adawidth": round(time.perf_counter() - began, 1)}
        served = Served(home / "ours.index")
        servers.callback(served.end)
        with chroma_server(python, home / "chroma") as port:
            began = time.perf_counter()
            path = filled(port, data)
            took["chroma"] = round(time.perf_counter() - began, 1)
        print(f"filled: {took}", flush=True)
        singles = [Rival(f"adawidth {setting or 'as it is'}", served.port, "ids", {"options": setting}) for setting in OURS]
        wanted = singles[0].ndcg(data, first(data, "dev", TUNED), "dev")
        tuned = chosen(python, home / "chroma", path, data, wanted)
        efforts = {"as_it_comes": EF[0], "at_equal_ndcg": max(tuned)}
        for effort in sorted(set(efforts.values())):
            copied = shutil.copytree(home / "chroma", home / f"chroma-{effort}")
            singles.append(chroma_rival(servers.enter_context(at_effort(python, copied, path, effort)), path, effort))
        found: dict[str, dict[str, Any]] = {one.name: {"nDCG@10": one.ndcg(data, queries, "test")} for one in singles}
        rows = np.asarray(queries.values, np.float32)
        batches = [one._replace(kind="batch" if one.kind == "ids" else "chroma_batch") for one in singles]
        for kind, rivals in (("single", singles), ("batch", batches)):
            for name, rates in compared(rivals, home, rows, options.seconds, options.turns).items():
                found[name] |= {kind: round(statistics.median(rates), 1), f"{kind}_turns": rates}
    out = {
        "machine": machine, "chroma": version.strip(), "dataset": data.name, "encoder": data.encoder, "documents": len(data.documents),
        "width": data.documents.width, "queries": len(queries), "connections": CONNECTIONS, "queries_per_batch": BATCH,
        "seconds_to_fill": took, "dev": {"queries": TUNED, "adawidth": wanted, "chroma": tuned}, "queries_per_second": found,
        **verdict(found, {name: f"chroma ef_search {effort}" for name, effort in efforts.items()}),
    }  # fmt: skip
    for name, one in found.items():
        print(f"{name:32} nDCG@10 {one['nDCG@10']:.4f}  single {one['single']:8.1f}/s  in batches {one['batch']:8.1f}/s")
    print(json.dumps({name: out[name] for name in efforts}))
    RESULTS.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
