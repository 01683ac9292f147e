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
SHARES = (0.05, 0.07, 0.09, 0.11, 0.14, 0.17, 0.21, 0.26, 0.32, 0.4)  # of the lists of `ivf` to scan, beside as many as a query needs
SAVING = 1.1  # times as fast an nprobe must be that is set
TIMED = 100  # queries that a setting is timed on
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
    """An index, and the nprobe, shortlist and quality that keep a recall on the other queries."""

    def __init__(self, folder: Path, vectors: synthetic.Vectors, storage: str, truth: np.ndarray, wanted: float) -> None:
        """`truth` is the exact answer to the other queries."""
        self.model = fitted(vectors)
        documents = Vectors(vectors.documents, [str(row) for row in range(len(vectors.documents))])
        began = time.process_time()
        self.index = self.model.index(documents, folder, storage=storage)
        self.build_seconds = round(time.process_time() - began, 1)
        self.codes = self.index.store.view.segments[0].codes
        self.disk_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / len(vectors.documents)
        self.nprobe: int | None = None
        self.shortlist, self.quality, self.chosen_recall = SHORTLISTS[0], 1.0, 0.0
        self._choose(vectors.others, truth, wanted)

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        return self.index.search(queries, K, quality=self.quality, shortlist=self.shortlist, nprobe=self.nprobe).rows

    def facts(self, queries: np.ndarray, truth: np.ndarray) -> dict[str, object]:
        """What was chosen, and what it costs and keeps."""
        hits = self.index.search(queries, K, quality=self.quality, shortlist=self.shortlist, nprobe=self.nprobe)
        return {
            "storage": self.codes.storage, "nprobe": self.nprobe,
            "scanned": round(self._scanned(), 3), "typical": round(getattr(self.codes, "share_scanned", 1.0), 3),
            "candidates": self.shortlist, "quality": self.quality, "recall": recall(hits.rows, truth),
            "recall_when_chosen": self.chosen_recall, "mean_width": round(hits.mean_width, 1),
            "bytes_per_document": self.codes.bytes_per_document, "disk_bytes_per_document": round(self.disk_bytes),
            "build_processor_seconds": self.build_seconds,
        }  # fmt: skip

    def _scanned(self) -> float:
        """The share of the lists."""
        return self.nprobe / self.codes.lists if self.nprobe else getattr(self.codes, "share_scanned", 1.0)

    def _choose(self, asked: np.ndarray, truth: np.ndarray, wanted: float) -> None:
        """The quickest nprobe with the smallest shortlist that keeps the recall, then the lowest quality that does."""
        tried: list[tuple[float, int | None, int]] = []
        for self.nprobe in (None, *(round(share * self.codes.lists) for share in SHARES if self.codes.lists)):
            if (shortlist := self._shortest(asked, truth, wanted)) is not None:
                tried.append((self._seconds(asked) * (SAVING if self.nprobe else 1.0), self.nprobe, shortlist))
        if tried:
            _, self.nprobe, self.shortlist = min(tried, key=lambda one: one[0])
        else:  # too much is wanted: what keeps most
            self.nprobe, self.shortlist = None, SHORTLISTS[-1]
        qualities = sorted({float(quality) for quality in self.model.policies.taper.curves[0][0].quality if quality > 0.8})
        for self.quality in qualities:
            self.chosen_recall = recall(self(asked), truth)
            if self.chosen_recall >= wanted:
                break

    def _shortest(self, asked: np.ndarray, truth: np.ndarray, wanted: float) -> int | None:
        """The smallest shortlist that keeps the recall, with something to spare for the taper where there is one that does."""
        self.quality, enough = 1.0, None
        for self.shortlist in SHORTLISTS:
            kept = recall(self(asked), truth)
            if kept >= min(1.0, wanted + SPARE):
                return self.shortlist
            enough = self.shortlist if enough is None and kept >= wanted else enough
        self.shortlist = enough or self.shortlist
        return enough

    def _seconds(self, asked: np.ndarray) -> float:
        """Of a query: the median, since the machine is slower at times."""
        times = []
        for i in range(TIMED):
            began = time.thread_time()
            self(asked[i : i + 1])
            times.append(time.thread_time() - began)
        return float(np.median(times))
