"""ir_datasets: any of its collections as a Dataset, once an encoder is given."""

from __future__ import annotations

from typing import Any

from ..data import Dataset
from ..errors import DataError, OptionalDependencyError

try:
    import ir_datasets
except ModuleNotFoundError:
    raise OptionalDependencyError("ir-datasets", "ir") from None


def load_ir_dataset(name: str | Any, encoder: Any, *, split: str = "test") -> Dataset:
    """A collection by its id ("beir/scifact/test"), or an object of ir_datasets: its documents, its queries and, if it has any, its labels
    as those of `split`. `encoder` is as in Dataset.from_dicts. What is not on this machine yet, ir_datasets downloads.
    """
    try:
        given = ir_datasets.load(name) if isinstance(name, str) else name
    except KeyError:
        raise DataError(f"ir_datasets has no collection {name!r}: see its catalogue for ids") from None
    called = name if isinstance(name, str) else getattr(name, "dataset_id", lambda: "ir_datasets")()
    for part, there in (("documents", given.has_docs()), ("queries", given.has_queries())):
        if not there:
            raise DataError(f"{called}: this collection of ir_datasets has no {part}: choose a part of it that has")
    corpus = {one.doc_id: one.default_text() for one in given.docs_iter()}
    queries = {one.query_id: one.default_text() for one in given.queries_iter()}
    labels = list(given.qrels_iter()) if given.has_qrels() else None
    return Dataset.from_dicts(corpus, queries, labels, encoder, split=split, name=str(called))
