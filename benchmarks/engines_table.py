"""The table of docs/engines.md, from what benchmarks/engines.py measured.

python benchmarks/engines_table.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tables import table

RESULTS = Path(__file__).parent / "results" / "engines.json"
PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
BEGIN, END = "<!-- figures of engines -->\n", "<!-- end of figures -->"
HEAD = (
    "engine", "documents", "start width", "recall@10", "own, full width: ms", "adaptive: ms", "faster", "the same by processor time",
    "in steps: ms", "index, own → ours: MB", "load, own → ours: s",
)  # fmt: skip


def row(entry: Mapping[str, Any]) -> list[str]:
    times, wall, load = entry["milliseconds"]["wall"], entry["speedup"]["wall"], entry["load_seconds"]["processor"]
    size = f"{entry['documents']:,} × {entry['encoder_width']:,}"
    return [
        entry["engine"],
        f"{entry['dataset'].capitalize()}, {size}",
        str(entry["widths"][0]),
        f"{entry['equal_recall']:.3f}".lstrip("0"),
        " / ".join(_short(times[way]) for way in wall),
        _short(times["adaptive"]),
        " / ".join(f"{value:.1f}" for value in wall.values()),
        " / ".join(f"{value:.1f}" for value in entry["speedup"]["processor"].values()),
        _short(times["in_steps"]),
        _megabytes(entry["index_bytes"]),
        f"{load['own']:.0f} → {load['ours']:.0f}",
    ]


def written(page: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """The page with this table."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table(HEAD, map(row, entries))}\n{END}{rest.partition(END)[2]}"


def write() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page, json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _megabytes(sizes: Mapping[str, int | None]) -> str:
    return "–" if sizes["own"] is None or sizes["ours"] is None else f"{sizes['own'] / 1e6:.1f} → {sizes['ours'] / 1e6:.1f}"


if __name__ == "__main__":
    write()
