"""Does a model still fit the documents of an index: more of them than it was fitted on, or vectors of another encoder?"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Vectors, as_queries
from ..errors import DataError
from ..policies.select import Policies
from ..rotation import Rotation
from ..stages import Backend, MemoryBackend

if TYPE_CHECKING:
    from .adawidth import AdaWidth
    from .index import Index

log = logging.getLogger("adawidth")

GROWN = 2.0  # times as many documents as a model was fitted on: its thresholds are for fewer rivals
ENOUGH = 20  # vectors, of an index and of what is added, that energies are compared of
SAMPLE = 2_000  # documents of the index that they are measured on
CLOSER = 0.25  # how near to chance, on the way to what the index has, another encoder's energy lies


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
    """The model with its taper set anew, without labels, on all documents of an index; documents stand in where there are no queries."""
    from ..training.taper import RotatedQueries, fit_taper

    model, view = index.model, index.store.view
    rows = index.store.rows_of(list(index.store.ids()))
    backend = MemoryBackend(Vectors(view.vectors(rows), range(len(rows)), "index"), Rotation.identity(view.width))
    given = (
        model.rotation.apply(as_queries(queries, model.width), view.width) if queries is not None else np.empty((0, view.width), np.float32)
    )
    order = np.random.default_rng(seed).permutation(len(given))
    train, dev = (RotatedQueries(given[np.sort(part)]) for part in (order[::2], order[1::2]))
    taper = fit_taper(backend, train, dev, target=min(model.policies.taper.target, view.width))
    policies = Policies(model.width, taper, model.policies.router)
    return replace(model, policies=policies, record=replace(model.record, documents=len(rows)))


def check_encoder(model: AdaWidth, view: Backend, added: Vectors) -> None:
    """Refuses vectors whose energy in the leading coordinates is that of chance where the index's own is far from it.

    A rotation moves one encoder's energy to the front; to another encoder's vectors it is any rotation.
    """
    if len(view) < ENOUGH or len(added) < ENOUGH or view.width < model.width:
        return
    start = min(64, max(1, model.width // 4))
    rows = np.linspace(0, len(view.documents.ids) - 1, SAMPLE).astype(np.int64)
    kept = float(np.square(view.vectors(np.unique(rows))[:, :start]).sum(axis=1).mean())
    some = np.unique(np.linspace(0, len(added) - 1, SAMPLE).astype(np.int64))
    given = float(np.square(model.rotation.apply(added.read(some), start)).sum(axis=1).mean())
    chance = start / model.width
    if kept > 2 * chance and given < chance + CLOSER * (kept - chance):
        raise DataError(
            f"{added.name}: {given:.2f} of their energy lies in the first {start} coordinates, of the index's documents {kept:.2f}, "
            f"by chance it is {chance:.2f}: these are another encoder's vectors; encode them with the index's own"
        )
