"""The tables of benchmarks/README.md, written from results/*.json.

    python benchmarks/tables.py
"""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

HERE = Path(__file__).parent
METHODS = {
    "truncation": "truncation",
    "pca": "PCA",
    "kyfan": "Ky Fan",
    "adawidth-no-labels": "AdaWidth, no labels",
    "paper": "paper's recipe",
    "adawidth": "AdaWidth",
}


def result(name: str) -> Any:
    """What a benchmark wrote, or nothing where it has not run."""
    file = HERE / "results" / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Markdown."""
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def number(values: list[float]) -> str:
    """Mean over seeds, with its spread where there are several."""
    text = f"{mean(values):.3f}".lstrip("0")
    return f"{text} ± {stdev(values):.3f}".replace("± 0.", "± .") if len(values) > 1 else text


def rotations() -> str:
    cells = result("rotations")["cells"]
    parts = ["## Rotations", "", "Test nDCG@10, every document ranked, mean ± sd over seeds. Choices were made on dev inside `fit`.", ""]
    parts += ["`python benchmarks/rotations.py ../shared/datasets`", ""]
    for place in dict.fromkeys(name.rsplit("/", 2)[0] for name in cells):
        widths = list(next(cell["all"] for name, cell in cells.items() if name.startswith(f"{place}/")))
        rows = []
        for method, label in METHODS.items():
            runs = [cell for name, cell in cells.items() if name.startswith(f"{place}/{method}/")]
            if not runs:
                continue
            partly = runs[0]["unseen"] and runs[0]["unseen"] != runs[0]["all"]
            rows.append([label, len(runs), *(number([run["all"][m] for run in runs]) for m in widths)])
            if partly:
                rows.append([f"{label}, unseen", len(runs), *(number([run["unseen"][m] for run in runs]) for m in widths)])
        parts += [f"### {place}", "", table(["", "seeds", *widths], rows), ""]
    return "\n".join(parts)


def tapers() -> str:
    rows = result("taper")
    parts = ["## Policies", "", "Test nDCG@10 at the realised mean width; the share is of the frozen full width.", ""]
    parts += ["`python benchmarks/taper.py ../shared/datasets --rotations pca,learned`", ""]
    for rotation in dict.fromkeys(row["rotation"] for row in rows):
        shown = []
        for row in rows:
            if row["rotation"] != rotation or row["shortlist"] != 500:
                continue
            if row["policy"] == "exhaustive" and row["start"] not in (32, 64, 256, 384):
                continue
            knob = f"budget {row['budget']}" if "budget" in row else f"quality {row['quality']}" if "quality" in row else ""
            if row["policy"] == "taper" and row.get("budget") not in (40, 42, 56, 80, 96):
                continue
            unseen = f"{row['unseen']['nDCG@10']:.3f}".lstrip("0") if row.get("unseen") else ""
            shown.append(
                [row["collection"], row["encoder"], row["policy"], row["start"], knob, row["mean_width"], f"{row['nDCG@10']:.4f}",
                 f"{row['share']:.3f}", unseen, f"{row['multiply_adds'] / 1e6:.2f} M"]
            )  # fmt: skip
        head = ["collection", "encoder", "policy", "start", "", "mean width", "nDCG@10", "share", "unseen", "multiply-adds"]
        parts += [f"### {'PCA, no labels' if rotation == 'pca' else 'learned rotation'}", "", table(head, shown), ""]
    return "\n".join(parts)


def router() -> str:
    parts = ["## Router", "", "Credit: routed nDCG@10 less that of the fixed width of the same mean, over the same shortlist.", ""]
    learned = "--rotations learned --encoders minilm --seed 2 --out benchmarks/results/router_learned.json"
    for name, options in {"router": "--rotations pca,identity", "router_learned": learned}.items():
        if found := result(name):
            parts += [f"`python benchmarks/router.py ../shared/datasets {options}`", "", routed(found)]
    return "\n".join(parts)


def routed(found: Any) -> str:
    parts = []
    rows = []
    for name, summary in found["summary"].items():
        interval = f"{summary['low']:+.4f} to {summary['high']:+.4f}" if "low" in summary else ""
        rows.append([name, summary["cells"], f"{summary['credit']:+.4f}", interval, summary["ahead"], summary["interval_above_zero"],
                     summary["interval_below_zero"], f"{summary['captured']:.3f}"])  # fmt: skip
    parts += [table(["", "cells", "credit", "95 %", "ahead", "interval above 0", "below 0", "share of the oracle's"], rows), ""]
    rows = []
    for part in found["collections"]:
        for row in part["results"]:
            if row["policy"] in ("router", "paper"):
                place = [part["collection"], part["encoder"], part["rotation"], row["policy"], row["budget"], f"{row['mean_width']:.1f}"]
                interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
                figures = [f"{row['routed']:.4f}", f"{row['fixed']:.4f}", f"{row['credit']:+.4f}", interval, f"{row['oracle_credit']:+.4f}"]
                rows.append([*place, *figures])
    head = ["collection", "encoder", "rotation", "router", "budget", "mean width", "routed", "fixed", "credit", "95 %", "oracle's credit"]
    return "\n".join([*parts, table(head, rows), ""])


def speed() -> str:
    parts = ["## Speed and memory", ""]
    if rotate := result("rotate"):
        size = f"{rotate['rows']:,} rows of {rotate['width']:,}"
        parts += [f"`{rotate['command']}`: rotating {size} takes {rotate['ratio']} × numpy's `X @ R.T`.", ""]
    if memory := result("fit_memory"):
        keys = ("rows", "width", "file_mb", "grown_mb", "bound_mb", "fit_seconds", "chosen")
        rows = [[row[key] for key in keys] for row in memory["results"]]
        parts += [f"`{memory['command']}`", "", table(["rows", "width", "file MB", "grown MB", "bound MB", "seconds", "chosen"], rows), ""]
    if routing := result("routing"):
        parts += ["`python benchmarks/routing.py`: features and trees for one query, 500 candidates, medians of interleaved runs.", ""]
        keys = list(routing["results"][0])
        parts += [table(keys, [[row[key] for key in keys] for row in routing["results"]]), ""]
    return "\n".join(parts)


def encoding() -> str:
    found = result("encode")
    if found is None:
        return ""
    scifact, keys = found["scifact"], ("collection", "texts", "mean_characters", "turns", "ratio")
    parts = ["## Encoding", "", f"`{found['command']}`", ""]
    parts += [f"SciFact from text with all-MiniLM-L6-v2: nDCG@10 {scifact['nDCG@10']:.4f}, published {scifact['published']:.4f}.", ""]
    parts += ["Speed of `adawidth encode` as a share of one call of sentence-transformers' `encode`, in turns, by processor time:", ""]
    rows = [[row[key] for key in keys] for row in found["throughput"]]
    return "\n".join([*parts, table(["collection", "texts", "characters a text", "turns", "share"], rows), ""])


def main() -> None:
    head = "# Benchmarks\n\nOne script a question, results in results/*.json, tables by `python benchmarks/tables.py`, pictures by\n"
    head += "`python benchmarks/figures.py`. The machine has two cores and is shared: read ratios, not seconds.\n"
    parts = [rotations(), tapers(), router(), encoding(), speed()]
    (HERE / "README.md").write_text("\n".join([head, *parts]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
