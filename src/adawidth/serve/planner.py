"""How many dimensions would a larger corpus need? The width law, measured on documents of the index.

There are no labels in an index: some documents stand in for queries, and what full width finds first for them for what is relevant.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Dataset, Qrels, Vectors, unit
from ..errors import AdaWidthError
from ..model import Index
from ..sufficiency import WidthLaw

DOCUMENTS, QUERIES = 20_000, 300  # at most
QUANTILE = 0.9


class Planner:
    """The width law of an index, measured at the first question."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._measuring = threading.Lock()

    def plan(self, documents: float, k: int) -> dict[str, Any]:
        """As /v1/width gives it."""
        with self._measuring:
            law = self._law
        if isinstance(law, str):
            nothing = dict.fromkeys(("width", "interval", "bytes_per_document", "memory_bytes", "law"))
            asked = {"documents": round(documents), "k": k, "quantile": QUANTILE, "extrapolated": False, "reason": law}
            return {**asked, **nothing, "full_width": self._index.width, "measured": {"documents": len(self._index), "queries": 0}}
        a, b, c = law.coefficients
        measured = {"documents": int(law.facts["documents"]), "queries": int(law.facts["queries"])}
        answer = law.predict(documents, k).to_json()
        return {**answer, "full_width": self._index.width, "law": {"a": float(a), "b": float(b), "c": float(c)}, "measured": measured}

    @cached_property
    def _law(self) -> WidthLaw | str:
        """The law, or the reason why there is none."""
        try:
            return WidthLaw.fit(self._sampled(), quantile=QUANTILE)
        except AdaWidthError as error:
            return str(error)

    def _sampled(self) -> Dataset:
        """Documents of the index; every n-th of them is a query, whose relevant document is its nearest among the others."""
        rows = unit(self._index.store.sample(DOCUMENTS))
        asking = np.unique(np.linspace(0, len(rows) - 1, min(QUERIES, len(rows) // 4)).astype(np.int64))
        others = np.setdiff1d(np.arange(len(rows)), asking)
        queries, documents = rows[asking], rows[others]
        nearest = (queries @ documents.T).argmax(axis=1).tolist()
        labels = {f"q{query}": [f"d{row}"] for query, row in enumerate(nearest)}
        return Dataset(
            Vectors.of(documents, [f"d{row}" for row in range(len(documents))], name="documents"),
            Vectors.of(queries, [f"q{row}" for row in range(len(queries))], name="queries"),
            {"train": Qrels.of(labels)},
            name="index",
        )
