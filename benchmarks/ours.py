"""An index folder over synthetic vectors, searched as a user does: `index.search(query)`, with settings chosen on other queries."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import synthetic
from adawidth import AdaWidth, Rotation, Vectors
from adawidth.policies.select import Policies
from adawidth.record import Record
from adawidth.stages import MemoryBackend
from adawidth.training.taper import RotatedQueries, fit_taper
from turns import recall

START, K = 64, 10
SAMPLE = 200_000  # documents that the taper is calibrated on
SHORTLISTS = (200, 250, 300, 400, 500, 600, 700, 850, 1_000, 1_200, 1_400, 1_700, 2_000, 3_000, 4_000, 6_000)
SPARE = 0.004  # of recall, that the taper may lose of what a shortlist holds


def fitted(vectors: synthetic.Vectors) -> AdaWidth:
    """A model whose rotation changes nothing (the vectors lie in their own principal axes already) and whose taper was calibrated."""
    rows = vectors.documents[:SAMPLE].astype(np.float32)
    rotation = Rotation.identity(rows.shape[1])
    index = MemoryBackend(Vectors.of(rows), rotation)
    train, dev = RotatedQueries(vectors.others[:200]), RotatedQueries(vectors.others[200:])
    taper = fit_taper(index, train, dev, target=rotation.width, starts=(START,))
    return AdaWidth(rotation, Policies(rotation.width, taper, None), Record())


class Ours:
    """An index, and the smallest shortlist and lowest quality that keep a recall on the other queries."""

    def __init__(self, folder: Path, vectors: synthetic.Vectors, storage: str, truth: np.ndarray, wanted: float) -> None:
        """`truth` is the exact answer to the other queries."""
        self.model = fitted(vectors)
        documents = Vectors(vectors.documents, [str(row) for row in range(len(vectors.documents))])
        began = time.process_time()
        self.index = self.model.index(documents, folder, storage=storage)
        self.build_seconds = round(time.process_time() - began, 1)
        self.codes = self.index.store.view.segments[0].codes
        self.disk_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / len(vectors.documents)
        self.shortlist, self.quality, self.chosen_recall = self._choose(vectors.others, truth, wanted)

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        return self.index.search(queries, K, quality=self.quality, shortlist=self.shortlist).rows

    def facts(self, queries: np.ndarray, truth: np.ndarray) -> dict[str, object]:
        """What was chosen, and what it costs and keeps."""
        hits = self.index.search(queries, K, quality=self.quality, shortlist=self.shortlist)
        return {
            "storage": self.codes.storage, "scanned": round(getattr(self.codes, "share_scanned", 1.0), 3),
            "candidates": self.shortlist, "quality": self.quality, "recall": recall(hits.rows, truth),
            "recall_when_chosen": self.chosen_recall, "mean_width": round(hits.mean_width, 1),
            "bytes_per_document": self.codes.bytes_per_document, "disk_bytes_per_document": round(self.disk_bytes),
            "build_processor_seconds": self.build_seconds,
        }  # fmt: skip

    def _choose(self, asked: np.ndarray, truth: np.ndarray, wanted: float) -> tuple[int, float, float]:
        qualities = sorted({float(quality) for quality in self.model.policies.taper.curves[0][0].quality if quality > 0.8})
        held: dict[int, float] = {}
        for self.shortlist in SHORTLISTS:
            self.quality = 1.0
            held[self.shortlist] = recall(self(asked), truth)
            if held[self.shortlist] >= min(1.0, wanted + SPARE):
                break
        else:  # the taper itself does not keep so much: what is wanted, without anything to spare
            self.shortlist = next((size for size, kept in held.items() if kept >= wanted), self.shortlist)
        for self.quality in qualities:
            kept = recall(self(asked), truth)
            if kept >= wanted:
                break
        return self.shortlist, self.quality, kept
