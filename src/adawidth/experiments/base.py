"""What an experiment is: what it measures of one cell, what it makes of all of them, and the style that figures share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ..data import Dataset
from ..errors import OptionalDependencyError
from ..rotation import Rotation
from ..sufficiency.figure import GRID, INK, MUTED
from ..sufficiency.law import QUERIES
from ..sufficiency.overtakers import SMALLEST

Cell = Mapping[str, Any]  # what was measured of one dataset with one encoder, as JSON has it


@dataclass(frozen=True)
class Settings:
    """What every cell of a run is measured with."""

    smallest: int = SMALLEST  # documents of the smallest corpus
    queries: int = QUERIES  # measured, at most
    seed: int = 0


@dataclass(frozen=True)
class Verdict:
    """Whether the paper's claim holds on these data, and the paragraph that says so."""

    holds: bool
    paragraph: str


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper. Everything but `measure` works on cells as JSON has them, so that kept ones will do."""

    title: str
    measure: Callable[[Dataset, Rotation | None, Settings], dict[str, Any]]
    table: Callable[[Sequence[Cell]], tuple[list[str], list[list[str]]]]  # header, rows
    judge: Callable[[Sequence[Cell]], Verdict]
    draw: Callable[[Any, Sequence[Cell]], None]  # onto an empty matplotlib figure


def label(cell: Cell) -> str:
    """What tables and figures call a cell."""
    turned = "" if cell["rotation"] == "none" else f", {cell['rotation']}"
    return f"{cell['dataset']}, {cell['encoder']}{turned}"


def need_matplotlib() -> None:
    """Refuses, before any work is done, to go on without the package that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise OptionalDependencyError("matplotlib", "report") from None


def write_figure(experiment: Experiment, cells: Sequence[Cell], file: IO[bytes], kind: str = "svg") -> None:
    """The figure, svg or png; the same cells give the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "adawidth", "font.family": "sans-serif", "font.size": 10.5}
    with matplotlib.rc_context(style):
        figure = Figure(layout="constrained", facecolor="white")
        experiment.draw(figure, cells)
        figure.savefig(file, format=kind, metadata={"Date": None, "Creator": None} if kind == "svg" else None, dpi=150)


def dress(axes: Any, title: str) -> None:
    """The quiet look: a title to the left, one axis line, grey horizontal lines."""
    axes.set_title(title, loc="left", color=INK, fontsize=11)
    axes.grid(axis="y", color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(MUTED)
    axes.tick_params(colors=MUTED, labelcolor=INK, length=0)
