"""Quality against width, or against what it costs, one curve per method, from the JSON that `evaluate` and `compare` print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..record import Record
from .widths import AUTO, FROZEN, in_numbers

WIDTH = "width (coordinates read per document)"


@dataclass(frozen=True)
class Curve:
    """A method's quality at each width or cost, ascending, with the spread over seeds (0 for one)."""

    name: str
    widths: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]


@dataclass(frozen=True)
class Spot:
    """A single operating point: what a policy reached at a mean width."""

    name: str
    mean_width: float
    mean: float


@dataclass(frozen=True)
class Chart:
    """Everything one picture shows."""

    measure: str
    curves: tuple[Curve, ...]
    spots: tuple[Spot, ...]
    frozen: float | None  # the frozen full-width figure, a line across
    encoder_width: int
    axis: str = WIDTH


def of_comparison(result: Mapping[str, Any]) -> Chart:
    """From the object of `compare --json`."""
    width = int(result["encoder_width"])
    cells: dict[str, dict[int, tuple[float, float]]] = {}
    for cell in result["summary"]:
        cells.setdefault(cell["method"], {})[in_numbers(cell["width"], width)] = (cell["mean"], cell["sd"])
    return Chart(
        result["measure"], tuple(_curve(name, points) for name, points in cells.items()), (), result["frozen"][result["measure"]], width
    )


def of_costs(result: Mapping[str, Any], entry: str, axis: str, scale: float = 1.0) -> Chart:
    """From the object of `compare --json`: quality against an entry of its results, mean over the seeds.

    Points that cost as much as another of the same method, or more, and are no better are left out: nobody would choose them.
    """
    width, measure = int(result["encoder_width"]), result["measure"]
    means = {(cell["method"], str(cell["width"])): (cell["mean"], cell["sd"]) for cell in result["summary"]}
    costs: dict[tuple[str, str], list[float]] = {}
    for row in result["results"]:
        costs.setdefault((row["method"], str(row["width"])), []).append(scale * row[entry])
    curves = []
    for method in dict.fromkeys(name for name, _ in means):
        points = sorted(((sum(spent) / len(spent), *means[key]) for key, spent in costs.items() if key[0] == method), key=_cheap_and_good)
        worth = [(x, mean, sd) for i, (x, mean, sd) in enumerate(points) if all(mean > before for _, before, _ in points[:i])]
        curves.append(Curve(method, *zip(*worth, strict=True)))
    return Chart(measure, tuple(curves), (), result["frozen"][measure], width, axis)


def _cheap_and_good(point: tuple[float, float, float]) -> tuple[float, float]:
    return point[0], -point[1]


def of_evaluation(result: Mapping[str, Any]) -> Chart:
    """From the object of `evaluate --json`; its first measure."""
    width = int(result["encoder_width"])
    entries = result["results"]
    measure = next(name for name in entries[0] if "@" in name)
    fixed = {in_numbers(entry["width"], width): (entry[measure], 0.0) for entry in entries if entry["width"] not in (AUTO, FROZEN)}
    spots = tuple(Spot(entry["policy"], entry["mean_width"], entry[measure]) for entry in entries if entry["width"] == AUTO)
    frozen = next((entry[measure] for entry in entries if entry["width"] == FROZEN), None)
    return Chart(measure, (_curve("adawidth", fixed),) if fixed else (), spots, frozen, width)


def of_record(record: Record, width: int) -> Chart:
    """From a model's record: the dev curve of every recipe tried."""
    curves = [_curve(trial.recipe, {m: (figure, 0.0) for m, figure in trial.dev.items()}) for trial in record.trials]
    return Chart(record.dev_measure, tuple(curves), (), None, width)


def _curve(name: str, points: Mapping[int, tuple[float, float]]) -> Curve:
    widths = tuple(sorted(points))
    return Curve(name, widths, tuple(points[m][0] for m in widths), tuple(points[m][1] for m in widths))
