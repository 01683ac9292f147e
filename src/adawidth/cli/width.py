"""adawidth width"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArtifactError
from .options import AsJson, DatasetPath, Encoder, Force, SkipUnknown
from .output import emit, refuse_existing, say, table

if TYPE_CHECKING:
    from ..data import Dataset
    from ..rotation import Rotation


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(width)


def width(
    dataset: DatasetPath,
    encoder: Encoder = None,
    model: Annotated[Path | None, typer.Option("--model", help="Model folder whose rotation is measured.")] = None,
    documents: Annotated[
        float | None, typer.Option("--documents", min=1, help="Documents to plan for: 100e6.  [default: those of the dataset]")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Depth: relevant documents must be in the top k.")] = 10,
    quantile: Annotated[float, typer.Option("--quantile", help="Share of the relevant documents that must be there.")] = 0.9,
    split: Annotated[str | None, typer.Option("--split", help="train or dev.  [default: train; with a learned --model dev]")] = None,
    queries: Annotated[int, typer.Option("--queries", min=1, help="Queries measured, at most.")] = 2_000,
    smallest: Annotated[int, typer.Option("--smallest", help="Documents of the smallest corpus measured.")] = 500,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same subsamples.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for width.json and the figure, width.svg.")] = None,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How many dimensions do I need? Measure required widths, fit the width law, and plan with it."""
    from ..formats import atomic_folder, load_dataset
    from ..sufficiency import WidthLaw
    from ..sufficiency.figure import draw
    from ..sufficiency.overtakers import DEPTHS

    if out is not None:
        refuse_existing(out, force)
    data = load_dataset(dataset, encoder, skip_unknown=skip_unknown)
    rotation = None if model is None else _rotation(model, data)
    options: dict[str, Any] = {"smallest": smallest, "queries": queries, "seed": seed, "depths": (*DEPTHS, k), "quantile": quantile}
    law = WidthLaw.fit(data, rotation, split=split, **options)
    asked = law.predict(len(data.documents) if documents is None else documents, k)
    result = {**law.to_json(), "plan": [one.to_json() for one in law.plan(k)], "answer": asked.to_json()}
    if out is not None:
        with atomic_folder(out, force=force) as folder:
            (folder / "width.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            draw(law, asked, folder / "width.svg")
    if as_json:
        emit(result)
        return
    show(result)
    if out is not None:
        say(f"\nwritten: {out / 'width.svg'}, {out / 'width.json'}")


def _rotation(path: Path, data: Dataset) -> Rotation:
    """The rotation of a model of the dataset's encoder."""
    from ..model import AdaWidth

    rotation = AdaWidth.load(path).rotation
    if rotation.width != data.documents.width:
        raise ArtifactError(
            f"{path}: the model is {rotation.width} wide, the vectors of {data.documents.name} {data.documents.width}: "
            "use the encoder the model was fitted for"
        )
    return rotation


def show(result: Mapping[str, Any]) -> None:
    """The answer in one sentence, the law and its tests, the table over sizes and depths, and what the width costs."""
    answer, law, held_out = result["answer"], result["law"], result["held_out"]
    say(sentence(answer, result["encoder_width"]))
    say(
        f"\n{result['dataset']}, {result['encoder']}, rotation {result['rotation']}: {result['pairs']} relevant documents of "
        f"{result['queries']} {result['split']} queries, {result['chains']} nested subsamples"
    )
    say(f"law: {law['a']:.1f} {law['b']:+.2f} ln N {law['c']:+.2f} ln k, R² of the cells' means {law['r2_mean_point']:.3f}")
    largest = held_out["largest_size"]
    if largest is not None:
        say(
            f"fitted without the largest corpus it misses that by {largest['rmse']:.1f} coordinates ({100 * largest['relative']:.0f} %); "
            f"best of all forms there: {best_form(result)}"
        )
    say(f"\nwidth that is enough for {100 * result['quantile']:g} % of the relevant documents to be in the top k of N (–: no width is)\n")
    cells = {(cell["documents"], cell["k"]): cell["width"] for cell in result["cells"]}
    rows = [[f"{n:,}", *(_width(cells[n, k]) for k in result["depths"])] for n in result["sizes"]]
    table(["N", *(f"k = {k}" for k in result["depths"])], rows)
    say(f"\nplan for k = {answer['k']} (float32)\n")
    table(["documents", "width", "95 % interval", "bytes a document", "memory"], [_planned(one) for one in (answer, *result["plan"])])
    first = next((one for one in result["plan"] if one["reason"] is not None), None)
    if first is not None:
        say(f"\nwhy not {first['documents']:,}: {first['reason']}")


def sentence(answer: Mapping[str, Any], encoder_width: int) -> str:
    """The answer to the question."""
    where = f"the top {answer['k']} of {answer['documents']:,} documents"
    if answer["width"] is None:
        share = f"{100 * answer['quantile']:g} %"
        return f"The data can't say which width puts {share} of the relevant documents into {where}: {answer['reason']}."
    low, high = answer["interval"]
    beyond = ", extrapolated" if answer["extrapolated"] else ""
    return (
        f"{answer['width']} of {encoder_width} coordinates are enough for {100 * answer['quantile']:g} % of the relevant documents "
        f"to be in {where} (95 % interval {low} to {high}{beyond})."
    )


def best_form(result: Mapping[str, Any]) -> str:
    """The form with the smallest error on the largest corpus when that is left out."""
    errors = {entry["form"]: entry["held_out_rmse"][0] for entry in result["forms"] if entry["held_out_rmse"][0] is not None}
    name = min(errors, key=lambda form: errors[form])
    return f"{name}, {errors[name]:.1f}"


def _width(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _planned(one: Mapping[str, Any]) -> list[str]:
    if one["width"] is None:
        return [f"{one['documents']:,}", "can't say", "", "", ""]
    memory = one["memory_bytes"]
    unit, scale = next(
        (unit, scale) for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)) if memory >= scale or unit == "KB"
    )
    low, high = one["interval"]
    return [
        f"{one['documents']:,}",
        str(one["width"]),
        f"{low} to {high}",
        f"{one['bytes_per_document']:,}",
        f"{memory / scale:.1f} {unit}",
    ]
