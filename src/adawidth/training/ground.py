"""What a rotation is learned from, and what it is judged on: a pool of documents in memory, and all documents of the corpus."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..data import Learning, Queries
from ..metrics import evaluate
from ..rotation import Rotation
from ..types import F64
from .corpus import Scanned, fits
from .pool import sample
from .ranking import NDCG, DevCurve, nearest
from .span import SPAN, Span
from .task import Task, as_judged, dev_widths

PAPER_WIDTH, PAPER_SHORTLIST = 64, 500  # the paper mines candidates by the frozen first 64 coordinates


@dataclass(frozen=True, eq=False)
class Ground:
    """A task for rotations. Without labels the first document that the frozen encoder finds stands in for the relevant one."""

    learning: Learning  # all documents, as the encoder gives them
    span: Span
    pool: Learning  # in the span and in memory
    moment: F64  # second moment of the documents in the span
    labelled: bool
    paper: bool  # in the encoder's own coordinates, with candidates as the paper has them

    @classmethod
    def of(cls, learning: Learning, moment: F64, *, paper: bool = False, seed: int = 0) -> Ground:
        """From at most so many queries as a fit takes (`pool.limited`) and the documents' second moment."""
        pca = Rotation.principal(moment, "pca")
        span = Span(pca, pca.width if paper else min(pca.width, SPAN))
        taught = learning if learning.labelled else replace(learning, train=_first(learning, "train"), dev=_first(learning, "dev"))
        pool = sample(taught, seed, span=span, mined=min(PAPER_WIDTH, pca.width) if paper else None)
        return cls(taught, span, pool, span.moment(moment), learning.labelled, paper)

    @property
    def whole(self) -> bool:
        """Whether all documents are in the pool."""
        return len(self.pool.documents) == len(self.learning.documents)

    def task(self, pool: Learning | None = None) -> Task:
        """The task of the pool, or of one with other queries: candidates by the full width, or as the paper has them."""
        mined = {"width": PAPER_WIDTH, "shortlist": PAPER_SHORTLIST} if self.paper else {}
        return replace(Task.of(self.pool if pool is None else pool, **mined), labelled=self.labelled)

    def curve(self, rotation: Rotation, task: Task) -> DevCurve:
        """nDCG@10 of every dev query at each width, all documents ranked; the rotation is of the span or of the encoder."""
        if self.whole and rotation.width == task.width:
            return task.dev_curve(rotation)
        dev, whole, widths = self.learning.dev, self.span.lift(rotation), dev_widths(self.span.pca.width)
        assert dev.judged is not None
        found = Scanned(self.learning.documents, whole).rankings(whole.apply(dev.vectors.all(), max(widths)), widths, NDCG.k, dev.own)
        return {m: evaluate([NDCG], rows, dev.judged)[str(NDCG)] for m, rows in found.items()}


def _first(learning: Learning, part: str) -> Queries:
    """Queries with the first of all documents at the frozen full width as the relevant one."""
    queries: Queries = getattr(learning, part)
    if not len(queries):
        return queries
    documents, vectors = learning.documents, queries.vectors.all()
    if fits(documents):
        return replace(queries, judged=as_judged(nearest(vectors, documents.all(), 1, queries.own)))
    frozen = Scanned(documents, Rotation.identity(documents.width))
    return replace(queries, judged=as_judged(frozen.rankings(vectors, [frozen.width], 1, queries.own)[frozen.width]))
