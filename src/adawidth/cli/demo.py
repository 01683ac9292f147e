"""adawidth demo"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import need
from ..types import Id
from .options import Force
from .output import say

if TYPE_CHECKING:
    from ..data import Dataset
    from ..model import AdaWidth

WIDTHS = (32, 48, 64, 96, 128, 256, "full")
EXAMPLES = 3
ANSWERS = 3


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for report.html and results.json.")] = Path("adawidth-demo"),
    force: Force = False,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the docstrings on a page instead; the index is DIR.index.")] = False,
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65_535, help="Port of --serve.")] = 8080,
) -> None:
    """Fit, compare and search on vectors that come with AdaWidth.

    The vectors are of docstrings of Python and NumPy. If an encoder is installed, questions in words are answered too.
    """
    if serve:
        from .demo_serve import serve_docstrings

        serve_docstrings(Path(f"{out}.index"), port, force=force)
        return
    from .. import bundled
    from ..evaluation import compare, evaluate
    from ..formats import atomic_folder, load_dataset, refuse_out
    from ..model import AdaWidth
    from ..report import write_report
    from .compare import show as show_comparison
    from .demo_text import search_docstrings
    from .evaluate import by_stages
    from .results import RESULTS, write_json

    refuse_out(out, RESULTS, force=force)
    need("torch", "matplotlib")
    data = load_dataset(bundled.path())
    say(f"{len(data.documents)} docstrings of Python and NumPy, {data.documents.width} coordinates each; a query is a first sentence.")
    say("Learning a rotation from the train queries; the test queries are of other modules.\n")
    model = AdaWidth.fit(data)
    comparison = compare(data, ["truncation", "random", "pca", "kyfan", model], widths=WIDTHS).to_json()
    evaluation = evaluate(model, data, widths=[32, 64, 128, "full", "auto"]).to_json()
    show_comparison(comparison)
    policy = evaluation["results"][-1]
    say(f"\nBy stages, the width follows the query:\n{by_stages(policy)}")
    examples = list(_examples(model, data))
    say("\nThree test queries that full width answers, and what 64 coordinates answer (* is the right one):")
    for example in examples:
        _show_example(example, data.documents.width)
    search_docstrings()
    with atomic_folder(out, RESULTS, force=force) as folder:
        results = {**comparison, "evaluation": evaluation, "examples": examples}
        write_json(folder / "results.json", results)
        write_report(folder / "report.html", results)
    say(f"\nwritten: {out / 'report.html'}, {out / 'results.json'}")
    say(
        "\nYour own vectors: put corpus.npy, corpus.ids, queries.npy and queries.ids into DATASET/embeddings/ENCODER/, labels into\n"
        "DATASET/qrels/train.tsv and test.tsv (query-id, corpus-id, score), if there are any, and type\n"
        "  adawidth fit DATASET --out MODEL\n"
        "  adawidth evaluate MODEL DATASET --widths 32,64,128,full,auto\n"
        "Your own texts: adawidth quickstart FOLDER_OR_FILE"
    )


def _examples(model: AdaWidth, data: Dataset) -> Iterator[dict[str, Any]]:
    """Evenly spaced among the test queries that full width answers and whose texts this Python has: answers at 64 and at all."""
    from .. import bundled

    queries, width = data.queries_of("test"), data.documents.width
    index, relevant = model.index(data.documents), data.qrels["test"].grades
    answers = {m: index.search(queries, ANSWERS, width=m, start=m).ids for m in (64, width)}
    known = [
        row for row, name in enumerate(queries.ids) if bundled.query_text_of(str(name)) and relevant[name].keys() & set(answers[width][row])
    ]
    for row in known[len(known) // (2 * EXAMPLES) :: max(1, len(known) // EXAMPLES)][:EXAMPLES]:
        name = queries.ids[row]
        yield {
            "query": bundled.query_text_of(str(name)),
            "relevant": [str(document) for document in relevant[name]],
            "answers": {str(m): found[row] for m, found in answers.items()},
            "texts": {document: _first_words(document) for found in answers.values() for document in found[row]},
        }


def _show_example(example: dict[str, Any], width: int) -> None:
    say(f"\n“{' '.join(example['query'].split())}”")
    for m, answers in example["answers"].items():
        say(f"  {'at 64 coordinates' if m == '64' else f'at all {width}'}")
        for document in answers:
            say(f"    {'*' if document in example['relevant'] else ' '} {document:32} {example['texts'][document]}")


def _first_words(document: Id) -> str:
    from .. import bundled

    return shorten((bundled.text_of(str(document)) or "").removeprefix(str(document)), 76, placeholder=" …")
