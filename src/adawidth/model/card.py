"""The card of a model folder: what it is, how it was chosen and how to use it, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from ..record import Record, TaskRecord


def describe(record: Record, width: int, tasks: Mapping[str, TaskRecord] | None = None) -> str:
    """A README.md from a model's record and those of its tasks: every recipe tried with its dev figures, the one that ships, and how
    to use it."""
    widths = sorted({m for trial in record.trials for m in trial.dev})
    lines = [
        f"# AdaWidth model for {record.encoder or 'a frozen encoder'} ({width} coordinates)",
        "",
        f"Fitted on {record.dataset} with {'labels' if record.labels else 'no labels'}, seed {record.seed}; "
        f"{record.train_queries} train and {record.dev_queries} dev queries, {record.documents} documents.",
        "",
        f"Shipped: **{record.chosen}**. {record.reason}",
        "",
        f"## Recipes tried ({record.dev_measure} on dev queries, exhaustive ranking)",
        "",
        "| recipe | steps | " + " | ".join(map(str, widths)) + " | mean |",
        "|---|---|" + "---|" * (len(widths) + 1),
    ]
    for trial in record.trials:
        figures = " | ".join(f"{trial.dev[m]:.4f}" for m in widths)
        lines.append(f"| {trial.recipe} | {trial.steps} | {figures} | {trial.mean:.4f} |")
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
        "index = model.index(documents)          # one vector per row, from the same encoder",
        "hits = index.search(queries, k=10)      # hits.ids, hits.scores, hits.mean_width",
        "```",
        "",
    ]
    return "\n".join(lines)


def _task(record: TaskRecord) -> str:
    return (
        f"A query map for {record.dataset}, seed {record.seed}, from {record.train_queries} train and {record.dev_queries} dev queries: "
        f"**{record.chosen}** at strength {record.strength:g}. {record.reason} Documents keep the rotation above."
    )
