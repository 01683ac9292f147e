"""Dataset: documents, queries and the labels of each split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import DataError, LeakError, OptionError
from ..types import Id, Rows
from .labels import Qrels
from .learning import Learning, Queries, check_seed, held_out
from .texts import encoded, encoding_of
from .vectors import Vectors


@dataclass(frozen=True, eq=False)
class Dataset:
    """Documents, queries and, for each split, labels.

    >>> documents = Vectors.of([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], ["d1", "d2", "d3"])
    >>> queries = Vectors.of([[0.8, 0.6], [0.0, 1.0], [1.0, 0.0]], ["q1", "q2", "q3"])
    >>> qrels = {"train": Qrels.of({"q1": ["d3"], "q2": ["d2"]}), "test": Qrels.of({"q3": ["d1"]})}
    >>> data = Dataset(documents, queries, qrels, name="tiny")
    """

    documents: Vectors
    queries: Vectors
    qrels: Mapping[str, Qrels] = field(default_factory=dict)
    name: str = "dataset"
    encoder: str = ""
    queries_are_documents: bool = False
    encoding: Mapping[str, Any] = field(default_factory=dict)  # what meta.json says of the encoder: its name, fingerprint and prompts

    def __post_init__(self) -> None:
        if self.queries.width != self.documents.width:
            raise DataError(
                f"{self.queries.name}: queries are {self.queries.width} wide, documents ({self.documents.name}) "
                f"{self.documents.width}: encode both with one encoder"
            )

    @classmethod
    def from_dicts(
        cls,
        corpus: Mapping[Id, Any],
        queries: Mapping[Id, Any],
        relevant_docs: Any = None,
        encoder: Any = None,
        *,
        split: str = "test",
        name: str = "dictionaries",
    ) -> Dataset:
        """From the dictionaries that evaluators of sentence-transformers take: texts by id, and for each query its relevant documents.

        `encoder` is a SentenceTransformer, an encoder of AdaWidth, or a function from texts to vectors; it is not needed where the
        dictionaries hold vectors. The labels are those of `split`: nothing is fitted on a test split.

        >>> corpus, queries = {"d1": [1.0, 0.0], "d2": [0.0, 1.0]}, {"q1": [0.6, 0.8]}
        >>> Dataset.from_dicts(corpus, queries, {"q1": {"d2"}}, split="train")
        Dataset(dictionaries, no encoder named: 2 documents, 1 queries of width 2; labels train: 1)
        """
        documents, asked = encoded(corpus, encoder, "document", "corpus"), encoded(queries, encoder, "query", "queries")
        labels = {} if relevant_docs is None else {split: Qrels.of(relevant_docs, "relevant_docs").known(asked, documents)}
        encoding = encoding_of(encoder)
        return cls(documents, asked, labels, name=name, encoder=str(encoding.get("encoder", "")), encoding=encoding)

    def __repr__(self) -> str:
        labels = ", ".join(f"{split}: {len(qrels):,}" for split, qrels in self.qrels.items()) or "none"
        sizes = f"{len(self.documents):,} documents, {len(self.queries):,} queries of width {self.documents.width}"
        return f"Dataset({self.name}, {self.encoder or 'no encoder named'}: {sizes}; labels {labels})"

    @property
    def origin(self) -> dict[str, Any]:
        """Where the vectors come from, for the record of a fit."""
        return {"dataset": self.name, "encoder": self.encoder, **({"encoding": dict(self.encoding)} if self.encoding else {})}

    def queries_of(self, split: str) -> Vectors:
        """The query vectors of a split, in the order of its labels. They carry its name, so that a fit can refuse test queries.

        >>> data.queries_of("train").ids
        ['q1', 'q2']
        """
        return self.queries.select([self.queries.row_of[q] for q in self._split(split).grades], split)

    def split(self, split: str) -> Queries:
        """The queries of a split with their judgements.

        >>> data.split("test").judged.positives(0).tolist()
        [0]
        """
        vectors = self.queries_of(split)
        return Queries(vectors, self._split(split).judged(vectors, self.documents), self._own(vectors))

    def learning(self, *, labels: bool = True, seed: int = 0) -> Learning:
        """Train and dev queries. Without a dev split, about 15 % of train are held out as dev (see `held_out`).

        `labels=False` leaves the labels out.

        >>> learning = data.learning()
        >>> len(learning.train), len(learning.dev)
        (1, 1)
        """
        check_seed(seed)
        if labels and "train" not in self.qrels:
            found = ", ".join(sorted(self.qrels)) or "none"
            raise DataError(f"{self.name}: no labels for the train split, found {found}: add qrels/train.tsv")
        train = self.split("train") if "train" in self.qrels else self._unlabelled()
        dev = self.split("dev") if "dev" in self.qrels else None
        self._refuse_leaks(train, dev)
        if not len(self.queries):
            return Learning(self.documents, train, train)
        if len(train) < (2 if dev is None else 1):
            raise DataError(f"{self.name}: {len(train)} queries are left to fit on, the others are held back: add queries or a train split")
        if dev is None:
            train, dev = held_out(train, seed)
        if not labels:
            train, dev = (replace(part, judged=None) for part in (train, dev))
        return Learning(self.documents, train, dev)

    def _split(self, split: str) -> Qrels:
        if split not in self.qrels:
            raise OptionError(f"{self.name} has no split {split!r}; it has {', '.join(sorted(self.qrels)) or 'none (no labels)'}")
        return self.qrels[split]

    def _refuse_leaks(self, *parts: Queries | None) -> None:
        tested = self.qrels["test"].grades if "test" in self.qrels else {}
        leaks = [q for part in parts if part is not None for q in part.vectors.ids if q in tested]
        if leaks:
            both = f"{len(leaks)} of {len(tested)} test queries are"
            raise LeakError(f"{self.name}: query {leaks[0]!r} is in the test split and in train or dev; {both}: keep each in one split")

    def _unlabelled(self) -> Queries:
        """All queries but those of other labelled splits, which are kept for testing."""
        tested = {q for name, qrels in self.qrels.items() if name != "train" for q in qrels.grades}
        vectors = self.queries.select([row for row, q in enumerate(self.queries.ids) if q not in tested])
        return Queries(vectors, None, self._own(vectors))

    def _own(self, vectors: Vectors) -> Rows:
        row_of = self.documents.row_of if self.queries_are_documents else {}
        return np.array([row_of.get(q, -1) for q in vectors.ids], np.int64)
