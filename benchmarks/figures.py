"""The pictures of README and docs, drawn from results/*.json.

python benchmarks/figures.py                     (writes docs/figures/*.svg)
"""

import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
COLLECTIONS = ("scifact", "medquad", "nl2bash")
TITLES = {"scifact": "scifact: claim → abstract", "medquad": "medquad: question → answer", "nl2bash": "nl2bash: words → command"}
STYLE = {
    "truncation": ("#9a9a9a", "truncation"),
    "pca": ("#4c78a8", "PCA"),
    "kyfan": ("#72b7b2", "Ky Fan, closed form"),
    "adawidth-no-labels": ("#b279a2", "AdaWidth, no labels"),
    "adawidth": ("#e45756", "AdaWidth"),
}
plt.rcParams.update(
    {"font.size": 10, "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "adawidth"}
)


def curves() -> None:
    """nDCG@10 against width, every method, the frozen full width as a line, the taper's points."""
    cells = json.loads((RESULTS / "rotations.json").read_text())["cells"]
    tapers = [row for row in json.loads((RESULTS / "taper.json").read_text()) if row["policy"] == "taper" and row.get("budget")]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.1))
    for axis, collection in zip(axes, COLLECTIONS, strict=True):
        full = cells[f"{collection}/minilm/truncation/0"]["all"]["384"]
        axis.axhline(full, color="#333", lw=1, ls=(0, (4, 3)), label="frozen encoder, all 384")
        for method, (colour, label) in STYLE.items():
            runs = [cell["all"] for name, cell in cells.items() if name.startswith(f"{collection}/minilm/{method}/")]
            widths = sorted(map(int, runs[0]))
            values = [[run[str(m)] for run in runs] for m in widths]
            means = [sum(v) / len(v) for v in values]
            axis.plot(widths, means, color=colour, label=label, lw=2.2 if method == "adawidth" else 1.4, marker="o", ms=2.5)
            axis.fill_between(widths, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15, lw=0)
        wanted = (collection, "minilm", "learned", 32)
        points = [row for row in tapers if (row["collection"], row["encoder"], row["rotation"], row["start"]) == wanted]
        points = [(row["mean_width"], row["nDCG@10"]) for row in points if row["budget"] <= 64]
        axis.plot(*zip(*points, strict=True), "k*", ms=8, label="AdaWidth by stages (mean width)")
        axis.set_xscale("log", base=2)
        axis.set_xticks([32, 48, 64, 96, 128, 192, 256, 384], [32, 48, 64, 96, 128, 192, 256, 384], fontsize=8)
        axis.minorticks_off()
        axis.set_title(TITLES[collection], fontsize=10, loc="left")
        axis.set_xlabel("coordinates read")
        axis.grid(alpha=0.2)
    axes[0].set_ylabel("nDCG@10, test")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=7, frameon=False, fontsize=8.5, columnspacing=1.2)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    save(figure, "widths")


def policies() -> None:
    """Every policy: nDCG@10 against mean width, and against all multiply-adds of a query."""
    rows = [row for row in json.loads((RESULTS / "taper.json").read_text()) if row["encoder"] == "minilm" and row["shortlist"] == 500]
    routed = {
        (part["collection"], part["rotation"]): part["results"]
        for part in json.loads((RESULTS / "router.json").read_text())["collections"]
        if part["encoder"] == "minilm"
    }
    looks = {
        "exhaustive": ("#9a9a9a", "o", "-", "fixed width, every document"),
        "funnel": ("#72b7b2", "s", "", "fixed funnel"),
        "taper": ("#e45756", "*", "-", "taper"),
        "router": ("#4c78a8", "v", "-", "router"),
        "paper": ("#54a24b", "^", "-", "router, the paper's set-up"),
        "oracle": ("#eeca3b", "D", "", "oracle of the router"),
        "certify": ("#b279a2", "P", "", "certified"),
    }
    kinds = [kind for kind in ("pca", "learned") if any(row["rotation"] == kind for row in rows)]
    figure, axes = plt.subplots(2 * len(kinds), 3, figsize=(12, 7 * len(kinds)), squeeze=False)
    for r, kind in enumerate(kinds):
        for c, collection in enumerate(COLLECTIONS):
            found = defaultdict(list)
            for row in rows:
                if (row["collection"], row["rotation"]) == (collection, kind) and row["policy"] in looks and not row.get("quality"):
                    key = (row["policy"], row["start"] if row["policy"] in ("taper", "certify") else 0)
                    found[key].append((row["mean_width"], row["multiply_adds"] / 1e6, row["nDCG@10"]))
            scan = {row["start"]: row["multiply_adds"] for row in rows if (row["collection"], row["policy"]) == (collection, "exhaustive")}
            for row in routed.get((collection, kind), []):
                if row["policy"] in looks:
                    cost = scan[64] + 500 * (row["mean_width"] - 64)
                    found[row["policy"], 0].append((row["mean_width"], cost / 1e6, row["routed"]))
            for half, axis in enumerate((axes[2 * r][c], axes[2 * r + 1][c])):
                named = set()
                for (policy, _), points in sorted(found.items()):
                    colour, marker, line, label = looks[policy]
                    points = sorted(points)
                    axis.plot(
                        [p[half] for p in points], [p[2] for p in points], color=colour, marker=marker, ls=line or "none", lw=1, ms=5,
                        label=None if policy in named else label,
                    )  # fmt: skip
                    named.add(policy)
                if half == 0:
                    axis.set_xscale("log", base=2)
                    axis.set_xticks([32, 64, 128, 256, 384], [32, 64, 128, 256, 384])
                    axis.set_title(f"{collection}, {'PCA, no labels' if kind == 'pca' else 'learned rotation'}", fontsize=10, loc="left")
                axis.minorticks_off()
                axis.set_xlabel("mean width" if half == 0 else "million multiply-adds a query, scan and rotation included", fontsize=9)
                axis.grid(alpha=0.2)
        axes[2 * r][0].set_ylabel("nDCG@10, test")
        axes[2 * r + 1][0].set_ylabel("nDCG@10, test")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.045, 1, 1))
    save(figure, "policies")


def few_labels() -> None:
    """What a query map learned from few labels gains over the frozen full width, read by the taper, with two standard errors."""
    cells = json.loads((RESULTS / "query_map.json").read_text())
    figure, axis = plt.subplots(figsize=(7.4, 4.0))
    axis.axhline(0, color="#333", lw=1, ls=(0, (4, 3)))
    for collection, colour in zip(COLLECTIONS, ("#e45756", "#4c78a8", "#72b7b2"), strict=True):
        place = f"curve/{collection}/minilm/seed 0/"
        points = sorted((int(name.removeprefix(place)), cell["auto"]) for name, cell in cells.items() if name.startswith(place))
        labels, gains, errors = zip(*((count, cell["gain"], 2 * cell["error"]) for count, cell in points), strict=True)
        axis.plot(labels, gains, color=colour, lw=2, marker="o", ms=4, label=TITLES[collection])
        low, high = ([gain + sign * error for gain, error in zip(gains, errors, strict=True)] for sign in (-1, 1))
        axis.fill_between(labels, low, high, color=colour, alpha=0.15, lw=0)
    axis.set_xscale("log", base=2)
    ticks = [50 * 2**step for step in range(8)]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("labelled queries, those to choose on among them")
    axis.set_ylabel("nDCG@10 gained over the frozen full width")
    axis.grid(alpha=0.2)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    save(figure, "few_labels")


def growth() -> None:
    """Microseconds of a scan against the number of documents, with the time that memory needs for the codes as a line."""
    cells = json.loads((RESULTS / "growth.json").read_text())["cells"].values()
    documents = [cell["documents"] for cell in cells]
    figure, axis = plt.subplots(figsize=(7.4, 4.2))
    axis.plot(documents, [cell["memory_us"] for cell in cells], color="#333", lw=1, ls=(0, (4, 3)), label="memory gives all codes once")
    for storage, colour, label in (("pq4", "#4c78a8", "all codes (pq4)"), ("ivf", "#e45756", "the nearest lists (ivf)")):
        middle, late = [cell["single"][f"{storage}_us"] for cell in cells], [cell["p99_us"][storage] for cell in cells]
        axis.plot(documents, middle, color=colour, lw=2, marker="o", ms=4, label=f"{label}, one query: median, and up to p99")
        axis.fill_between(documents, middle, late, color=colour, alpha=0.15, lw=0)
        axis.plot(documents, [cell["batch"][f"{storage}_us"] for cell in cells], color=colour, lw=1.2, ls=":", label=f"{label}, in batches")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("documents")
    axis.set_ylabel("microseconds a query, one thread")
    axis.grid(alpha=0.2)
    axis.legend(frameon=False, fontsize=8.5)
    figure.tight_layout()
    save(figure, "growth")


def save(figure: plt.Figure, name: str) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    curves()
    policies()
    few_labels()
    growth()
