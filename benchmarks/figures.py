"""The pictures of README and docs, drawn from results/*.json: legible at 380 pixels, on light pages and dark ones.

python benchmarks/figures.py                     (writes docs/figures/*.svg)
"""

import io
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from theme import GRID, INK, METHODS, PAPER, SOFT, themed

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
COLLECTIONS = ("scifact", "medquad", "nl2bash")
DASHED = (0, (4, 3))
WIDE = 7.6  # inches; shown at 380 pixels, letters of 15 points are 10 high
plt.rcParams.update(
    {
        "font.size": 15, "font.family": "DejaVu Sans", "svg.hashsalt": "adawidth",
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": SOFT, "axes.facecolor": "none", "axes.labelcolor": INK,
        "axes.titlesize": 15, "axes.titlelocation": "left", "axes.grid": True, "grid.color": GRID, "text.color": INK,
        "xtick.color": SOFT, "ytick.color": SOFT, "legend.frameon": False, "legend.fontsize": 14, "lines.markersize": 4,
    }
)  # fmt: skip


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def curves() -> None:
    """nDCG@10 against the coordinates read of a candidate, a line a method: means over its seeds."""
    cells = [cell for cell in read("paper/curves")["cells"] if cell["encoder"] == "minilm"]
    figure, axes = plt.subplots(1, 3, figsize=(WIDE, 4.9))
    methods = {"truncation": "truncation", "pca": "PCA", "adawidth:unlabelled": "AdaWidth, no labels", "adawidth": "AdaWidth"}
    for axis, collection in zip(axes, COLLECTIONS, strict=True):
        of_it = [cell for cell in cells if cell["dataset"] == collection]
        axis.axhline(of_it[0]["frozen"], color=INK, lw=1.5, ls=DASHED, label="frozen encoder, all 384")
        for method, label in methods.items():
            runs = [cell["points"] for cell in of_it if cell["method"] == method]
            widths, values = (
                [statistics.mean(point[name] for point in same) for same in zip(*runs, strict=True)] for name in ("mean_width", "nDCG@10")
            )
            axis.plot(widths, values, color=METHODS[method], lw=3 if method == "adawidth" else 2, label=label)
        powers(axis, [32, 64, 128, 384])
        axis.tick_params(axis="x", labelsize=13)
        axis.set_title(collection)
    axes[0].set_ylabel("nDCG@10, test")
    axes[1].set_xlabel("coordinates read of a candidate, mean")
    below(figure, axes[0], columns=2, room=0.24)
    save(figure, "widths")


def policies() -> None:
    """Every policy: nDCG@10 against the mean width."""
    rows = [
        row
        for row in read("taper")
        if row["encoder"] == "minilm" and row["shortlist"] == 500 and not row.get("quality") and not row.get("note")
    ]
    routed = {
        (part["collection"], part["rotation"]): part["results"] for part in read("router")["collections"] if part["encoder"] == "minilm"
    }
    looks = {
        "exhaustive": (METHODS["truncation"], "", "-", "fixed width, every document"),
        "router": (METHODS["router"], "v", "-", "router"),
        "paper": (METHODS["paper"], "^", "-", "router, the paper's set-up"),
        "oracle": (METHODS["oracle"], "D", "", "oracle of the router"),
        "certify": (METHODS["certify"], "P", "", "certified"),
        "funnel": (METHODS["funnel"], "s", "", "fixed funnel"),
        "taper": (METHODS["adawidth"], "o", "-", "taper, from 32 and from 64"),
    }
    kinds = {"pca": "PCA, no labels", "learned": "learned rotation"}
    figure, axes = plt.subplots(3, 2, figsize=(WIDE, 10.6), sharex=True)
    for (down, collection), (across, (kind, name)) in ((d, a) for d in enumerate(COLLECTIONS) for a in enumerate(kinds.items())):
        found = defaultdict(list)
        for row in rows:
            if (row["collection"], row["rotation"]) == (collection, kind) and row["policy"] in looks:
                apart = row["start"] if row["policy"] in ("taper", "certify") else 0
                found[row["policy"], apart].append((row["mean_width"], row["nDCG@10"]))
        for row in routed.get((collection, kind), []):
            if row["policy"] in looks:
                found[row["policy"], 0].append((row["mean_width"], row["routed"]))
        axis, named = axes[down][across], set()
        for (policy, _), points in sorted(found.items(), key=lambda one: list(looks).index(one[0][0])):
            colour, marker, line, label = looks[policy]
            style = {"color": colour, "marker": marker, "ls": line or "none", "lw": 2, "ms": 7, "mec": PAPER, "mew": 0.6}
            axis.plot(*zip(*sorted(points), strict=True), **style, label="_" if policy in named else label)
            named.add(policy)
        powers(axis, [32, 64, 128, 256])
        axis.set_title(f"{collection}, {name}")
    for axis in axes[-1]:
        axis.set_xlabel("mean width")
    axes[1][0].set_ylabel("nDCG@10, test")
    below(figure, axes[0][0], columns=2, room=0.125)
    save(figure, "policies")


def few_labels() -> None:
    """What a query map learned from few labels gains over the frozen full width, read by the taper, with two standard errors."""
    cells = read("query_map")
    figure, axis = plt.subplots(figsize=(WIDE, 4.9))
    axis.axhline(0, color=INK, lw=1.5, ls=DASHED)
    for collection, colour in zip(COLLECTIONS, ("#e45756", "#4c86c6", "#3aa39b"), strict=True):
        place = f"curve/{collection}/minilm/seed 0/"
        points = sorted((int(name.removeprefix(place)), cell["auto"]) for name, cell in cells.items() if name.startswith(place))
        labels, gains, errors = zip(*((count, cell["gain"], 2 * cell["error"]) for count, cell in points), strict=True)
        axis.plot(labels, gains, color=colour, lw=2.5, marker="o", ms=6, label=collection)
        low, high = ([gain + sign * error for gain, error in zip(gains, errors, strict=True)] for sign in (-1, 1))
        axis.fill_between(labels, low, high, color=colour, alpha=0.18, lw=0)
    powers(axis, [50 * 4**step for step in range(4)])
    axis.set_xlabel("labelled queries, those to choose on among them")
    axis.set_ylabel("nDCG@10 gained")
    axis.legend(loc="upper left")
    figure.tight_layout()
    save(figure, "few_labels")


def growth() -> None:
    """Microseconds of a scan against the number of documents, with the time that memory needs for the codes as a line."""
    cells = read("growth")["cells"].values()
    documents = [cell["documents"] for cell in cells]
    figure, axis = plt.subplots(figsize=(WIDE, 6.0))
    axis.plot(documents, [cell["memory_us"] for cell in cells], color=INK, lw=1.5, ls=DASHED, label="memory gives all codes once")
    for storage, colour, label in (("pq4", METHODS["pca"], "all codes (pq4)"), ("ivf", METHODS["adawidth"], "nearest lists (ivf)")):
        middle, late = [cell["single"][f"{storage}_us"] for cell in cells], [cell["p99_us"][storage] for cell in cells]
        axis.plot(documents, middle, color=colour, lw=2.5, marker="o", ms=6, label=f"{label}: median, shaded to p99")
        axis.fill_between(documents, middle, late, color=colour, alpha=0.18, lw=0)
        axis.plot(documents, [cell["batch"][f"{storage}_us"] for cell in cells], color=colour, lw=2, ls=":", label=f"{label}, in batches")
    logarithmic(axis, "documents", "µs a query, one thread")
    below(figure, axis, columns=1, room=0.31)
    save(figure, "growth")


def sizes() -> None:
    """What 100 candidates hold of the exact top 10, and what an index loses of nDCG@10, against the bytes of codes: a line a pair."""
    pairs = read("codes")["bytes"]
    figure, (held, lost) = plt.subplots(1, 2, figsize=(WIDE, 5.4))
    colours = dict(zip(sorted({name.split("/")[0] for name in pairs}), ("#4c86c6", "#3aa39b", "#e45756", "#b279a2"), strict=False))
    for name, cell in pairs.items():
        bytes_of = [size for size in cell if size != "exact"]
        collection, encoder = name.split("/")
        look = {"color": colours[collection], "ls": "-" if encoder == "minilm" else ":", "lw": 2.5, "marker": "o", "ms": 6}
        shares = [cell[size]["shapes"][cell[size]["chosen"]]["100"] for size in bytes_of]
        held.plot([int(size) for size in bytes_of], shares, label=f"{collection}, {encoder}", **look)
        lost.plot([int(size) for size in bytes_of], [cell[size]["nDCG@10"] - cell["exact"] for size in bytes_of], **look)
    for axis, title in ((held, "of the top 10, in 100"), (lost, "nDCG@10 less exact")):
        axis.set_xticks([16, 24, 32, 48])
        axis.set_title(title)
    lost.axhline(0, color=INK, lw=1.5, ls=DASHED)
    figure.supxlabel("bytes of codes a document", y=0.31, fontsize=15)
    below(figure, held, columns=2, room=0.29)
    save(figure, "bytes")


def shards() -> None:
    """Milliseconds of a query over many shards, simulated."""
    rows = read("shards")["rows"]
    figure, axis = plt.subplots(figsize=(WIDE, 6.0))
    counts = [row["shards"] for row in rows]
    looks = (("shard_p50", METHODS["truncation"], "-", "one shard, median"), ("query_p50", METHODS["pca"], "-", "query, median"),
             ("query_p99", METHODS["pca"], ":", "query, p99"), ("hedged_p50", METHODS["adawidth"], "-", "hedged, median"),
             ("hedged_p99", METHODS["adawidth"], ":", "hedged, p99"), ("merge", METHODS["paper"], "-", "merging"))  # fmt: skip
    for name, colour, line, label in looks:
        axis.plot(counts, [row[f"{name}_ms"] for row in rows], color=colour, ls=line, lw=2.5, marker="o", ms=6, label=label)
    logarithmic(axis, "shards of a billion documents", "milliseconds, simulated")
    axis.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    below(figure, axis, columns=2, room=0.2)
    save(figure, "shards")


def powers(axis: Axes, ticks: Sequence[int]) -> None:
    """A logarithmic axis with these ticks and no others."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()


def logarithmic(axis: Axes, x: str, y: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.minorticks_off()
    axis.set_xlabel(x)
    axis.set_ylabel(y)


def below(figure: plt.Figure, axis: Axes, *, columns: int, room: float) -> None:
    """The legend, under everything, where it covers nothing."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(*ordered(handles, labels), loc="lower center", ncols=columns, columnspacing=1.2, handlelength=1.6)
    figure.tight_layout(rect=(0, room, 1, 1), w_pad=0.6)


def ordered(handles: Iterable[Any], labels: Sequence[str]) -> tuple[list[Any], list[str]]:
    shown = [(handle, label) for handle, label in zip(handles, labels, strict=True) if not label.startswith("_")]
    return [handle for handle, _ in shown], [label for _, label in shown]


def save(figure: plt.Figure, name: str) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, facecolor=PAPER)
    lines = themed(file.getvalue()).splitlines()
    (FIGURES / f"{name}.svg").write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for draw in (curves, policies, few_labels, growth, sizes, shards):
        draw()
