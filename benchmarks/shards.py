"""Many shards behind one query: fan-out, tail latency and merging at 10 to 1,000 shards. A simulation; its parts are measured.

    python benchmarks/shards.py            (a minute; writes results/shards.json; figures.py draws it)

A billion documents, spread evenly. A query goes to one replica of every shard and is answered when the last shard has answered and the
answers are merged. What a shard takes is fitted on results/growth.json (median of a scan at 64 coordinates by number of documents, and how
far its p99 lies above it) and results/rescoring.json (rescoring of 500 candidates). Merging is measured here. Assumed, not measured: 0.5 ms
of network per trip, shards that are slow independently, and that in one of 1,000 answers a shard stalls for 20 ms. A hedged query asks a
second replica when the first is late.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DOCUMENTS, K, QUERIES, SHARDS = 1_000_000_000, 10, 4_000, (10, 20, 50, 100, 200, 500, 1_000)
NETWORK_MS, STALL_SHARE, STALL_MS, LATE = 0.5, 0.001, 20.0, 0.95
Z99 = 2.3263


def fitted() -> dict[str, float]:
    """ms = exp(a) · documents^b for the median of an IVF scan, the spread of its logarithm, and the rescoring step."""
    cells = json.loads((HERE / "results" / "growth.json").read_text())["cells"].values()
    large = [cell for cell in cells if cell["documents"] >= 100_000]
    sizes, medians = np.log([cell["documents"] for cell in large]), np.log([cell["single"]["ivf_us"] / 1e3 for cell in large])
    slope, constant = np.polyfit(sizes, medians, 1)
    spread = np.mean([math.log(cell["p99_us"]["ivf"] / cell["single"]["ivf_us"]) / Z99 for cell in large])
    rescoring = json.loads((HERE / "results" / "rescoring.json").read_text())["results"]
    off = float(np.abs(np.exp(constant + slope * sizes - medians) - 1).max())
    taper = next(row["taper_us"] for row in rescoring if row["width"] == 1024) / 1e3
    found = {"constant": constant, "exponent": slope, "spread": spread, "rescoring_ms": taper, "largest_error_of_fit": off}
    return {name: round(float(value), 4) for name, value in found.items()}


def merging_ms(shards: int) -> float:
    """Measured: the k best of k answers of every shard, the median of some turns."""
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.random((shards, K), np.float32), axis=1)
    taken = []
    for _ in range(200):
        began = time.perf_counter()
        flat = scores.ravel()
        best = np.argpartition(-flat, K)[:K]
        best[np.argsort(-flat[best], kind="stable")]
        taken.append(time.perf_counter() - began)
    return 1e3 * float(np.median(taken))


def shard_ms(rng: np.random.Generator, model: dict[str, float], documents: float, shape: tuple[int, int]) -> np.ndarray:
    """What shards take for queries, network included."""
    middle = math.exp(model["constant"]) * documents ** model["exponent"] + model["rescoring_ms"]
    taken = middle * np.exp(model["spread"] * rng.standard_normal(shape)) + NETWORK_MS
    return taken + STALL_MS * (rng.random(shape) < STALL_SHARE)


def simulate(model: dict[str, float], shards: int) -> dict[str, float]:
    """Queries over so many shards."""
    rng, documents = np.random.default_rng(shards), DOCUMENTS / shards
    first, second = (shard_ms(rng, model, documents, (QUERIES, shards)) for _ in range(2))
    late = float(np.quantile(first, LATE))
    hedged = np.where(first > late, np.minimum(first, late + second), first)
    merge = merging_ms(shards)
    alone, all_of, saved = first[:, 0], first.max(axis=1) + merge, hedged.max(axis=1) + merge
    figures = {
        "merge_ms": merge,
        "hedged_share": float((first > late).mean()),
        "processor_ms": float(shards * np.median(first - NETWORK_MS)),
    }
    for name, values in (("shard", alone), ("query", all_of), ("hedged", saved)):
        figures |= {f"{name}_p50_ms": float(np.quantile(values, 0.5)), f"{name}_p99_ms": float(np.quantile(values, 0.99))}
    return {"shards": shards, "documents_per_shard": int(documents), **{name: round(value, 3) for name, value in figures.items()}}


def main() -> None:
    model = fitted()
    rows = [simulate(model, shards) for shards in SHARDS]
    assumed = {"network_ms": NETWORK_MS, "stall_share": STALL_SHARE, "stall_ms": STALL_MS, "hedged_behind_quantile": LATE}
    result = {
        "command": "python benchmarks/shards.py",
        "documents": DOCUMENTS,
        "queries": QUERIES,
        "fitted": model,
        "assumed": assumed,
        "rows": rows,
    }
    (HERE / "results" / "shards.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
