"""The card of a model folder: what it is, how it was chosen and how to use it, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def describe(record: Mapping[str, Any], width: int, tasks: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """A README.md from a model's record and those of its tasks: every recipe tried with its dev figures, the one shipped, and the
    lines that use it."""
    trials = record.get("trials", [])
    widths = sorted({int(m) for trial in trials for m in trial["dev"]})
    lines = [
        f"# AdaWidth model for {record.get('encoder') or 'a frozen encoder'} ({width} coordinates)",
        "",
        f"Fitted on {record.get('dataset', 'arrays')} with {'labels' if record.get('labels') else 'no labels'}, "
        f"seed {record.get('seed', 0)}; {record.get('train_queries', 0)} train and {record.get('dev_queries', 0)} dev queries, "
        f"{record.get('documents', 0)} documents.",
        "",
        f"Shipped: **{record.get('chosen', '')}**. {record.get('reason', '')}",
        "",
        f"## Recipes tried ({record.get('dev_measure', 'nDCG@10')} on dev queries, exhaustive ranking)",
        "",
        "| recipe | steps | " + " | ".join(map(str, widths)) + " | mean |",
        "|---|---|" + "---|" * (len(widths) + 1),
    ]
    for trial in trials:
        figures = " | ".join(f"{trial['dev'][str(m)]:.4f}" for m in widths)
        mean = sum(trial["dev"].values()) / max(len(trial["dev"]), 1)
        lines.append(f"| {trial['recipe']} | {trial['steps']} | {figures} | {mean:.4f} |")
    for name, learned in (tasks or {}).items():
        lines += ["", f"## Task {name}", "", _task(learned)]
    lines += [
        "",
        "## Use",
        "",
        "```python",
        "from adawidth import AdaWidth",
        "",
        'model = AdaWidth.load("this-folder")',
        "index = model.index(documents)          # one vector a row, from the same encoder",
        "hits = index.search(queries, k=10)      # hits.ids, hits.scores, hits.mean_width",
        "```",
        "",
    ]
    return "\n".join(lines)


def _task(record: Mapping[str, Any]) -> str:
    return (
        f"A query map for {record.get('dataset', 'arrays')}, seed {record.get('seed', 0)}, from {record.get('train_queries', 0)} train and "
        f"{record.get('dev_queries', 0)} dev queries: **{record.get('chosen', '')}** at strength {record.get('strength', 0):g}. "
        f"{record.get('reason', '')} Documents keep the rotation above."
    )
