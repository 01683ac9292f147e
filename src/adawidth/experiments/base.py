"""What an experiment is: the parts it measures of each dataset and encoder, what it makes of them, and the style figures share."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from ..colours import PAGE, themed
from ..data import Dataset
from ..errors import ArtifactError, OptionalDependencyError, OptionError
from ..evaluation.shortlist import EXHAUSTIVE
from ..rotation import Rotation
from ..sufficiency.law import QUERIES
from ..sufficiency.overtakers import SMALLEST

Cell = Mapping[str, Any]  # what was measured of one part with one dataset and encoder: as JSON has it, and arrays of single queries


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
    protocol: str = EXHAUSTIVE  # what methods rank: all documents, or the paper's frozen shortlist
    whole_grid: bool = False  # of the sweep, instead of one factor at a time


@dataclass(frozen=True)
class Part:
    """One measurement. Experiments that have a part in common share what was measured of it."""

    name: str
    head: Mapping[str, Any]  # the settings that make a kept cell the same as one to measure
    measure: Callable[[Dataset], dict[str, Any]]
    sources: tuple[str, ...]  # definitions that it rests on, as "module:name": when one changes, a kept cell is stale


Outcome = Literal["holds", "holds in part", "does not hold", "not shown"]
OPENINGS: Mapping[Outcome, str] = {
    "holds": "**The claim holds.**",
    "holds in part": "**The claim holds in part.**",
    "does not hold": "**The claim does not hold.**",
    "not shown": "**Not shown.**",
}


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, what was found, and the verdict: a row of docs/paper.md."""

    says: str
    paper: str  # its own figure
    here: str  # ours, with the interval
    data: str  # pairs, queries, seeds
    verdict: Outcome


@dataclass(frozen=True)
class Verdict:
    """Whether the paper's claims hold on these data, the paragraph that says so, and the claims one by one."""

    holds: bool
    paragraph: str
    claims: tuple[Claim, ...] = ()


def verdict(holds: bool, in_part: bool, *sentences: str) -> Verdict:
    """The paragraph opens with the verdict itself."""
    opening = OPENINGS["holds" if holds else "holds in part" if in_part else "does not hold"]
    return Verdict(holds, " ".join([opening, *sentences]))


def interval(entry: Cell) -> str:
    """A signed mean with the ends of its interval."""
    return f"{entry['mean']:+.4f} ({entry['low']:+.4f} to {entry['high']:+.4f})"


def nothing(cells: Sequence[Cell]) -> dict[str, Any]:
    """The summary of an experiment whose cells say everything."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper. Everything but the parts' measuring works on cells, so kept ones will do."""

    title: str
    parts: Callable[[Settings], Sequence[Part]]
    table: Callable[[Sequence[Cell]], tuple[list[str], list[list[str]]]]  # header, rows
    judge: Callable[[Sequence[Cell]], Verdict]
    draw: Callable[[Any, Sequence[Cell]], None]  # onto an empty matplotlib figure
    summarise: Callable[[Sequence[Cell]], dict[str, Any]] = nothing  # figures over all cells
    differs: str = ""  # how figure and table are not the paper's


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
    """The figure, png, or svg that follows a dark page; the same cells give the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    paper = PAGE["page"][0]
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "adawidth", "font.family": "sans-serif", "font.size": 10.5}
    with matplotlib.rc_context({**style, "axes.facecolor": paper}):
        figure = Figure(layout="constrained", facecolor=paper)
        experiment.draw(figure, cells)
        if kind != "svg":
            figure.savefig(file, format=kind, dpi=150)
            return
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        file.write(themed(drawn.getvalue()).encode())


def log_widths(axes: Any, widths: Sequence[int]) -> None:
    """A logarithmic axis of widths, each named."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(widths), [str(m) for m in widths])
    axes.set_xticks([], minor=True)
