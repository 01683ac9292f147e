"""adawidth width"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import need
from ..sizes import in_words
from .options import AsJson, DatasetPath, Force, ModelEncoder, SkipUnknown, encoder_for
from .output import emit, say, table


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(width)


def width(
    dataset: DatasetPath,
    encoder: ModelEncoder = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="Model folder whose rotation to measure.  [default: no rotation]")
    ] = None,
    documents: Annotated[
        float | None,
        typer.Option("--documents", metavar="N", min=1, help="Corpus size to plan for, such as 100e6.  [default: the dataset's]"),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Relevant documents must be in the top k.")] = 10,
    quantile: Annotated[
        float, typer.Option("--quantile", metavar="SHARE", help="Share of the relevant documents that must be there.")
    ] = 0.9,
    split: Annotated[
        str | None, typer.Option("--split", metavar="SPLIT", help="train or dev.  [default: train; dev with a learned --model]")
    ] = None,
    queries: Annotated[int, typer.Option("--queries", metavar="N", min=1, help="Queries to measure, at most.")] = 2_000,
    smallest: Annotated[int, typer.Option("--smallest", metavar="N", min=1, help="Size of the smallest subsample.")] = 500,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same subsamples.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for width.json and the figure width.svg.")] = None,
    skip_unknown: SkipUnknown = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Answer how many dimensions you need.

    Measures the width that each relevant document needs, fits the width law to that, and plans with it.
    """
    from ..formats import atomic_folder, load_dataset, refuse_out
    from ..model import AdaWidth
    from ..sufficiency import WidthLaw
    from ..sufficiency.figure import draw
    from ..sufficiency.overtakers import DEPTHS
    from .results import PLAN, write_json

    if out is not None:
        refuse_out(out, PLAN, force=force, inputs=[dataset, model])
        need("matplotlib")
    fitted = None if model is None else AdaWidth.load(model)
    rotation = None if fitted is None else fitted.rotation
    source = encoder if fitted is None else encoder_for(fitted, dataset, encoder)
    data = load_dataset(dataset, source, skip_unknown=skip_unknown, width=None if fitted is None else fitted.width)
    options: dict[str, Any] = {"smallest": smallest, "queries": queries, "seed": seed, "depths": (*DEPTHS, k), "quantile": quantile}
    law = WidthLaw.fit(data, rotation, split=split, **options)
    asked = law.predict(len(data.documents) if documents is None else documents, k)
    result = {**law.to_json(), "plan": [one.to_json() for one in law.plan(k)], "answer": asked.to_json()}
    if out is not None:
        with atomic_folder(out, PLAN, force=force, inputs=[dataset, model]) as folder:
            write_json(folder / "width.json", result)
            draw(law, asked, folder / "width.svg")
    if as_json:
        emit(result)
        return
    show(result)
    if out is not None:
        say(f"\nwritten: {out / 'width.svg'}, {out / 'width.json'}")


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
    table(["documents", "width", "95 % interval", "bytes per document", "memory"], [_planned(one) for one in (answer, *result["plan"])])
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
    low, high = one["interval"]
    return [
        f"{one['documents']:,}",
        str(one["width"]),
        f"{low} to {high}",
        f"{one['bytes_per_document']:,}",
        in_words(one["memory_bytes"]),
    ]
