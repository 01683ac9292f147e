"""What an experiment is: the parts it measures of each dataset and encoder, what it makes of them, and the style figures share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ..data import Dataset
from ..errors import ArtifactError, OptionalDependencyError, OptionError
from ..rotation import Rotation
from ..sufficiency.figure import GRID, INK, MUTED
from ..sufficiency.law import QUERIES
from ..sufficiency.overtakers import SMALLEST

Cell = Mapping[str, Any]  # what was measured of one part with one dataset and encoder, as JSON has it


@dataclass(frozen=True)
class Settings:
    """What a run is measured with; each experiment reads what concerns it."""

    smallest: int = SMALLEST  # documents of the smallest corpus (scaling, stable-widths)
    queries: int = QUERIES  # measured, at most (scaling, stable-widths)
    seed: int = 0  # of the subsamples (scaling, stable-widths)
    rotation: Rotation | None = None  # measured instead of the frozen axes (scaling, stable-widths)
    seeds: int = 3  # how often everything that is fitted is fitted
    train_queries: int = 4_000  # learned from, at most
    methods: tuple[str, ...] | None = None  # compared; None: all of them
    whole_grid: bool = False  # of the sweep, instead of one factor at a time


@dataclass(frozen=True)
class Part:
    """One measurement. Experiments that have a part in common share what was measured of it."""

    name: str
    head: Mapping[str, Any]  # the settings that make a kept cell the same as one to measure
    measure: Callable[[Dataset], dict[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """Whether the paper's claim holds on these data, and the paragraph that says so."""

    holds: bool
    paragraph: str


def verdict(holds: bool, in_part: bool, *sentences: str) -> Verdict:
    """The paragraph opens with the verdict itself."""
    opening = "**The claim holds.**" if holds else "**The claim holds in part.**" if in_part else "**The claim does not hold.**"
    return Verdict(holds, " ".join([opening, *sentences]))


def interval(entry: Cell) -> str:
    """A signed mean with the ends of its interval."""
    return f"{entry['mean']:+.4f} ({entry['low']:+.4f} to {entry['high']:+.4f})"


def nothing(cells: Sequence[Cell]) -> dict[str, Any]:
    """The summary of an experiment whose cells say everything."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper. Everything but the parts' measuring works on cells as JSON has them, so kept ones will do."""

    title: str
    parts: Callable[[Settings], Sequence[Part]]
    table: Callable[[Sequence[Cell]], tuple[list[str], list[list[str]]]]  # header, rows
    judge: Callable[[Sequence[Cell]], Verdict]
    draw: Callable[[Any, Sequence[Cell]], None]  # onto an empty matplotlib figure
    summarise: Callable[[Sequence[Cell]], dict[str, Any]] = nothing  # figures over all cells


def label(cell: Cell) -> str:
    """What tables and figures call a cell."""
    rotation = "" if cell.get("rotation", "none") == "none" else f", {cell['rotation']}"
    return f"{cell['dataset']}, {cell['encoder']}{rotation}"


def pairs(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Every dataset with its encoder, in order."""
    return list(dict.fromkeys((cell["dataset"], cell["encoder"]) for cell in cells))


def refuse_rotation(settings: Settings) -> None:
    """For experiments that learn their own rotations."""
    if settings.rotation is not None:
        raise OptionError("this experiment learns its own rotations: leave the rotation out (--model)")


def check_width(rotation: Rotation | None, data: Dataset) -> None:
    """Refuses a rotation that is not as wide as the vectors."""
    if rotation is not None and rotation.width != data.documents.width:
        raise ArtifactError(
            f"the model is {rotation.width} wide, the vectors of {data.documents.name} {data.documents.width}: "
            "use the encoder the model was fitted for"
        )


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


def log_widths(axes: Any, widths: Sequence[int]) -> None:
    """A logarithmic axis of widths, each named."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(widths), [str(m) for m in widths])
    axes.set_xticks([], minor=True)
