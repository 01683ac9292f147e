"""Makes the model and index folders in tests/compat/<version>, and the answers that they gave, with the version they are of:

    python tools/make_compat.py tests/compat/0.2.0

Run once per release that changes a format. Folders that are committed are never made again: tests/compat shows that later
versions open them. (Those of 0.1.0 were made by the script of its time.) The documents are synthetic, 64 and 128 wide, so that
all of it takes about a megabyte.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Dataset, Qrels, Vectors, __version__
from adawidth.data import unit

STORAGES: tuple[Any, ...] = ("flat", "int8", "pq4", "ivf", "graph")
SMALL = 16  # bytes of a document's codes in the ivf index
WORDED = ("flat", "pq4")  # with the words of titles and texts
CLUSTERS, MEMBERS, K = 40, 6, 5
QUERIES = {"train": 400, "dev": 80, "test": 8}
NARROW, WIDE = 64, 128


def collection(width: int) -> Dataset:
    """240 documents in clusters, and queries near one document each, which is relevant.

    The signal falls from axis to axis. All queries stray in the same two directions, which labels can teach a query map.
    """
    rng = np.random.default_rng(width)
    spectrum = np.exp(-np.arange(width) / 40)
    axes = np.linalg.qr(rng.standard_normal((width, width)))[0]
    centres = np.repeat(rng.standard_normal((CLUSTERS, width)), MEMBERS, axis=0)
    documents = (centres + 0.6 * rng.standard_normal(centres.shape)) * spectrum
    count = sum(QUERIES.values())
    source = rng.integers(len(documents), size=count)
    stray = rng.standard_normal((count, 2)) @ rng.standard_normal((2, width)) * spectrum
    queries = documents[source] + stray + 0.1 * rng.exponential(size=(count, 1)) * rng.standard_normal((count, width))
    splits = np.repeat(list(QUERIES), list(QUERIES.values())).tolist()
    return Dataset(
        Vectors.of(unit(documents @ axes), [f"d{i}" for i in range(len(documents))], name="documents"),
        Vectors.of(unit(queries @ axes), [f"q{i}" for i in range(count)], name="queries"),
        {split: Qrels({f"q{i}": {f"d{source[i]}": 1.0} for i in range(count) if splits[i] == split}, split) for split in QUERIES},
        name="compat",
        encoder="synthetic",
    )


def answers(index: Any, queries: Vectors, **options: Any) -> dict[str, Any]:
    """What an index answers, to be compared with later."""
    hits = index.search(queries, K, **options)
    return {"options": options, "ids": [list(row) for row in hits.ids], "scores": np.asarray(hits.scores, np.float64).round(5).tolist()}


def make_indexes(out: Path) -> dict[str, Any]:
    """One index per storage; the flat one with what is known of its documents, words, a second segment and removals."""
    data = collection(NARROW)
    model, queries = AdaWidth.fit(data, recipe="pca"), data.queries_of("test")
    model.save(out / "models" / "pca")
    np.save(out / f"queries-{NARROW}.npy", queries.all())
    expected = {}
    for storage in STORAGES:
        path, titles = out / "indexes" / storage, [f"Title {i}" for i in range(len(data.documents))]
        size = SMALL if storage == "ivf" else None
        with model.index(
            data.documents, path=path, titles=titles, storage=storage, bytes_per_document=size, hybrid=storage in WORDED
        ) as index:
            if storage == "flat":
                told: Any = {"titles": ["Near 0", "Near 1"], "texts": ["ünïcode", ""], "metadata": [{"lang": "en"}, {"lang": "de"}]}
                index.add(queries.all()[:2], ["near 0", "near 1"], **told)
                index.remove([index.search(queries, K).ids[3][0], "d7"])
            found = [answers(index, queries), answers(index, queries, width=NARROW)]
            if storage == "flat":
                found.append(answers(index, queries, where="lang = 'de'"))
            if storage in WORDED:
                found.append(answers(index, queries, hybrid=True, text=["unicode title 11"] * len(queries)))
            expected[storage] = {"documents": len(index), "answers": found}
    return expected


def make_model(out: Path) -> dict[str, Any]:
    """A model with a router and a query map, and answers over the documents in memory."""
    data = collection(WIDE)
    model, queries = AdaWidth.fit(data, recipe="pca").refit(data, task="support"), data.queries_of("test")
    model.save(out / "models" / "routed")
    np.save(out / f"documents-{WIDE}.npy", data.documents.all().astype(np.float16))
    np.save(out / f"queries-{WIDE}.npy", queries.all())
    index = AdaWidth.load(out / "models" / "routed").index(np.load(out / f"documents-{WIDE}.npy").astype(np.float32))
    options: list[dict[str, Any]] = [{}, {"policy": "router"}, {"policy": "certify"}, {"width": WIDE}, {"task": "support"}]
    return {"answers": [answers(index, queries, **given) for given in options]}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    record = {"version": __version__, "indexes": make_indexes(folder), "routed": make_model(folder)}
    (folder / "expected.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
