"""Does a model still fit the documents of an index, or are there many more than it was fitted on?"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Vectors, as_queries
from ..rotation import Rotation
from ..stages import MemoryBackend

if TYPE_CHECKING:
    from .adawidth import AdaWidth
    from .index import Index

log = logging.getLogger("adawidth")

GROWN = 2.0  # times as many documents as a model was fitted on: its thresholds are for fewer rivals


def warn_if_grown(model: AdaWidth, documents: int) -> None:
    """Says so where an index has outgrown the thresholds of its model."""
    fitted = model.record.documents
    if fitted and documents > GROWN * fitted:
        log.warning(
            "the model was fitted on %d documents, the index has %d: answers may miss more than quality says; "
            "index.calibrate() sets the thresholds for these documents, without labels",
            fitted, documents,
        )  # fmt: skip


def calibrated(index: Index, queries: Any = None, seed: int = 0) -> AdaWidth:
    """The model with its taper set again, without labels, on all documents of an index; documents stand in where there are no queries."""
    from ..training.taper import RotatedQueries, fit_taper

    model, view = index.model, index.store.view
    kept = index.store.vectors(list(index.store.ids()))
    backend = MemoryBackend(Vectors(kept, range(len(kept)), "index"), Rotation.identity(view.width))
    given = (
        model.rotation.apply(as_queries(queries, model.width), view.width) if queries is not None else np.empty((0, view.width), np.float32)
    )
    order = np.random.default_rng(seed).permutation(len(given))
    train, dev = (RotatedQueries(given[np.sort(part)]) for part in (order[::2], order[1::2]))
    taper = fit_taper(backend, train, dev, target=min(model.policies.taper.target, view.width))
    policies = replace(model.policies, taper=taper)
    return replace(model, policies=policies, record=replace(model.record, documents=len(kept)))
