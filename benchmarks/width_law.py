"""Does the width law hold, and what does measuring it cost?

    python benchmarks/width_law.py ../shared/datasets            (about ten minutes on one core; writes results/width_law.json)

Each collection with each encoder: the frozen coordinates, PCA and, where a fitted model is kept in benchmarks/.models (made by
rotations.py), its learned rotation. All three on the same dev queries, which the learned rotation was chosen but not trained on;
frozen and PCA also on train queries, of which there are more. Finished cells are kept in the JSON, so an interrupted run goes on
where it stopped. `--speed` times the counts against the bare matrix products at the same widths.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidthError, Dataset, Rotation, WidthLaw
from adawidth.artifact import read_model
from adawidth.sufficiency import RequiredWidths, compare_rates
from adawidth.sufficiency.overtakers import DOCUMENT_BLOCK, required_widths, width_grid
from models import KEPT, datasets

RESULTS = Path(__file__).parent / "results" / "width_law.json"
QUANTILES = (0.9, 0.75, 0.5)
QUERIES = 2_000


def rotations(data: Dataset) -> dict[str, Rotation | None]:
    """Frozen, PCA and, where it is kept, learned."""
    found: dict[str, Rotation | None] = {"frozen": None, "pca": Rotation.pca(data.documents)}
    kept = KEPT / f"{data.name}-{data.encoder}-auto-labels-0"
    if kept.exists():
        config, tensors = read_model(kept)
        found["learned"] = Rotation(tensors["rotation"], config["rotation"]["kind"])
    return found


def figures(required: RequiredWidths, facts: dict[str, Any]) -> dict[str, Any]:
    """The law at each quantile, or the line that says why there is none."""
    out: dict[str, Any] = {}
    for quantile in QUANTILES:
        law = WidthLaw(required, quantile, facts)
        if not law.fits_anything:
            out[str(quantile)] = {"undefined_cells": int((~law.defined).sum()), "cells": int(law.defined.sum())}
            continue
        out[str(quantile)] = slim(law.to_json(), law.predict(facts["documents"], 10).to_json())
    return out


def slim(whole: dict[str, Any], at_10: dict[str, Any]) -> dict[str, Any]:
    """What the guide's tables are made of."""
    held_out = {name: whole["held_out"][name] for name in ("largest_size", "chain")}
    forms = {entry["form"]: {"aic": entry["aic"], "held_out_rmse": (entry["held_out_rmse"] or [None])[0]} for entry in whole["forms"]}
    kept = {name: whole[name] for name in ("law", "away_from_floor", "best_positive", "alpha")}
    return {**kept, "held_out": held_out, "forms": forms, "at_10": {name: at_10[name] for name in ("width", "interval", "reason")}}


def rounded(value: Any) -> Any:
    """Floats with five digits."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measure(data: Dataset, split: str) -> dict[str, Any]:
    """Every rotation on the same queries."""
    out: dict[str, Any] = {}
    frozen: RequiredWidths | None = None
    for name, rotation in rotations(data).items():
        if split == "train" and name == "learned":
            continue
        begun = time.perf_counter()
        law = WidthLaw.fit(data, rotation, split=split, quantile=0.2, queries=QUERIES)  # the others below, from the same widths
        seconds = time.perf_counter() - begun
        frozen = law.required if frozen is None else frozen
        whole = law.to_json()
        out[name] = {
            "queries": law.facts["queries"],
            "pairs": law.facts["pairs"],
            "seconds": round(seconds, 1),
            "quantiles": figures(law.required, law.facts),
            "rates": whole["rates"],
            "rate_change": compare_rates(frozen, law.required),
            "tail": whole["tail"],
            "censored_at_10": law.required.censored()[-1, law.required.depths.tolist().index(10)],
        }
    return out


def speed(data: Dataset) -> dict[str, Any]:
    """Seconds of the counts and of the bare products of the same blocks at every width of the grid, least of three."""
    queries = data.split("train").select(np.arange(500))
    required_widths(data.documents, queries.select(np.arange(8)))  # compiles
    counted, bare = [], []
    grid, asked = width_grid(data.documents.width), queries.vectors.all()
    for _ in range(3):
        begun = time.perf_counter()
        required_widths(data.documents, queries)
        counted.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        for _, block in data.documents.blocks(DOCUMENT_BLOCK):
            for width in grid.tolist():
                asked[:, :width] @ block[:, :width].T
        bare.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {"counts": round(min(counted), 2), "bare_products": round(min(bare), 2)}
    return {
        "queries": len(queries),
        "documents": len(data.documents),
        **seconds,
        "ratio": round(min(counted) / min(bare), 2),
        "peak_mb": round(peak),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--speed", action="store_true", help="only the times")
    parser.add_argument("--anew", action="store_true", help="measure cells again that the JSON has")
    options = parser.parse_args()
    done: dict[str, Any] = {"command": "python benchmarks/width_law.py ../shared/datasets", "cells": {}}
    if RESULTS.exists():
        done = json.loads(RESULTS.read_text())
    for data in datasets(options.folder):
        if options.speed:
            if (data.name, data.encoder) == ("medquad", "minilm"):
                done["speed"] = speed(data)
                print(done["speed"], flush=True)
        else:
            for split in ("dev", "train"):
                cell = f"{data.name}/{data.encoder}/{split}"
                if cell in done["cells"] and not options.anew:
                    continue
                try:
                    done["cells"][cell] = measure(data, split)
                except AdaWidthError as error:
                    done["cells"][cell] = {"error": str(error)}
                show(cell, done["cells"][cell])
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rounded(done), indent=1) + "\n")


def show(cell: str, measured: dict[str, Any]) -> None:
    """One line a rotation and quantile."""
    for name, entry in measured.items():
        if name == "error":
            print(cell, entry, flush=True)
            continue
        change = entry["rate_change"]
        print(cell, name, f"{entry['pairs']} pairs {entry['seconds']} s, γ {change['before']:.4f} -> {change['after']:.4f}", flush=True)
        for quantile, one in entry["quantiles"].items():
            law = one.get("law")
            if law is None:
                print(f"  {quantile}: {one}")
                continue
            held = one["held_out"]["largest_size"]
            far = one["away_from_floor"]
            away = "–" if far is None else f"{far['b']:+.2f} {far['c']:+.2f} R² {far['r2_mean_point']:.3f} ({far['cells']} cells)"
            missed = "–" if held is None else f"{held['rmse']:.1f} ({100 * held['relative']:.0f} %)"
            print(
                f"  {quantile}: {law['a']:.1f} {law['b']:+.2f} ln N {law['c']:+.2f} ln k, R² {law['r2_mean_point']:.3f}, "
                f"{law['undefined_cells']} undefined, largest missed by {missed}; away from the floor {away}",
                flush=True,
            )


if __name__ == "__main__":
    main()
