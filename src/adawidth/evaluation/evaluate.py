"""How good a model's rankings are at each width, and what they cost: the `evaluate` command as a function."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np

from .. import metrics
from ..data import Dataset, Queries
from ..errors import DataError
from ..hits import Hits
from ..model import AdaWidth
from ..policies import Fixed, Policy
from ..policies.base import DEFAULT_QUALITY
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import SHORTLIST, by_stages, exhaustive
from ..tasks import DEFAULT, TaskMap
from ..types import F32, Mask, Rows
from .online import controller
from .points import Evaluation, Point, unseen_queries
from .shortlist import EXHAUSTIVE, OWN, Protocol, check_protocol, limits, mine, mined_at
from .shortlist import FROZEN as FROZEN_SHORTLIST
from .significance import paired_bootstrap
from .watch import Watched
from .widths import AUTO, FROZEN, FULL, Width, in_numbers, usable_widths

WIDTHS: tuple[Width, ...] = (32, 64, 128, 256, FULL)
MEASURES = ("nDCG@10", "R@100")
TIES = 0.01  # share of queries with equal scores at a cut-off above which that is said

log = logging.getLogger("adawidth")


def evaluate(
    model: AdaWidth,
    dataset: Dataset,
    *,
    split: str = "test",
    widths: Sequence[Width] | None = None,
    measures: Sequence[str] = MEASURES,
    protocol: Protocol = "exhaustive",
    policy: str | None = None,
    budget: float | None = None,
    quality: float | None = None,
    start: int | None = None,
    shortlist: int = SHORTLIST,
    transductive: bool = False,
    online: bool = False,
    task: str | None = None,
) -> Evaluation:
    """The quality and cost of a model on a split at each of `widths` (default 32, 64, 128, 256, full), and of the frozen encoder.

    Protocols: `exhaustive` ranks every document at each width; `own-shortlist` ranks the candidates that the model's first
    64 coordinates find; `frozen-shortlist` (the paper's) those that the frozen encoder's first 64 find. At the width "auto",
    which any option of a policy implies, a policy decides how far to read; the fixed width of the same mean is measured beside it.
    `task` names a query map and its policies: by default the task called "default", if there is one; "none" is the rotation alone.

    >>> from adawidth import bundled, load_dataset
    >>> data = load_dataset(bundled.path())
    >>> model = AdaWidth.fit(data.documents.select(range(300)), recipe="pca")
    >>> result = evaluate(model, data, widths=[64, "full"])
    >>> result["full"].mean("nDCG@10") == result["frozen"].mean("nDCG@10") > result[64].mean("nDCG@10")
    True
    """
    check_protocol(protocol, get_args(Protocol))
    if dataset.documents.width != model.width:
        raise DataError(
            f"{dataset.documents.name}: vectors are {dataset.documents.width} wide, the model {model.width}: "
            "use the encoder it was fitted for (--encoder)"
        )
    routed = any(option is not None for option in (policy, budget, quality, start)) or transductive or online
    asked = asked_widths(widths, model.width, routed=routed)
    picked = model.task(task)
    policies = model.policies if picked is None else picked.policies
    bench = _Bench(model, picked, dataset, dataset.split(split), metrics.parse_measures(" ".join(measures)), protocol, shortlist)
    results = [bench.fixed(width) for width in asked if width != AUTO] + [bench.frozen()]
    if AUTO in asked:
        k = bench.measures[0].k
        if online:
            chosen: Policy = controller(policies, policy, budget=budget, quality=quality, start=start, k=k)
        else:
            chosen = policies.choose(policy, budget=budget, quality=quality, start=start, k=k, transductive=transductive)
        results.append(bench.auto(chosen, _asked(policy, budget, quality, online, transductive), whole=transductive))
    return Evaluation(
        dataset.name,
        dataset.encoder,
        model.width,
        split,
        len(dataset.documents),
        tuple(bench.queries.vectors.ids),
        protocol,
        tuple(results),
        None if picked is None else task or DEFAULT,
        bench.limits(),
    )


def asked_widths(widths: Sequence[Width] | None, encoder_width: int, *, routed: bool = False) -> tuple[Width, ...]:
    """The widths that `evaluate` measures; `routed`, where there are options of a policy, implies "auto"."""
    asked = usable_widths(widths, WIDTHS, encoder_width, (FULL, AUTO))
    return (*asked, AUTO) if routed and AUTO not in asked else asked


def _asked(policy: str | None, budget: float | None, quality: float | None, online: bool, transductive: bool) -> dict[str, Any]:
    """What was asked of a policy, as results repeat it."""
    name = policy or "taper"
    if budget is None and quality is None and name in ("taper", "router", "paper-router"):
        quality = DEFAULT_QUALITY
    given = {"budget": budget, "quality": quality, "online": online or None, "transductive": transductive or None}
    return {"policy": name} | {option: value for option, value in given.items() if value is not None}


@dataclass(frozen=True, eq=False)
class _Side:
    """Documents under a rotation, and queries under the same rotation or a query map."""

    index: MemoryBackend
    queries: F32  # (Q, D)
    rotates: bool  # whether turning a query costs anything


@dataclass(frozen=True, eq=False)
class _Bench:
    """One split of a dataset, ready to be answered in several ways."""

    model: AdaWidth
    task: TaskMap | None
    dataset: Dataset
    queries: Queries
    measures: tuple[metrics.Measure, ...]
    protocol: Protocol
    shortlist: int
    _mined: dict[int, Rows] = field(default_factory=dict)

    @cached_property
    def turned(self) -> _Side:
        """Under the model's rotation, queries under the task's map if there is one."""
        turn = self.model.rotation.apply if self.task is None else self.task.query_map.apply
        return _Side(MemoryBackend(self.dataset.documents, self.model.rotation), turn(self.queries.vectors.all()), rotates=True)

    @cached_property
    def plain(self) -> _Side:
        """As the frozen encoder has it."""
        index = MemoryBackend(self.dataset.documents, Rotation.identity(self.model.width))
        return _Side(index, self.queries.vectors.all(), rotates=False)

    @cached_property
    def unseen(self) -> Mask | None:
        """Queries none of whose relevant documents was a positive in training."""
        if (not self.model.labelled and self.task is None) or self.queries.judged is None:
            return None
        row_of, seen = self.dataset.documents.row_of, self.model.seen | (frozenset() if self.task is None else self.task.seen)
        return unseen_queries(self.queries.judged, np.array([row_of[d] for d in seen if d in row_of], np.int64))

    @property
    def depth(self) -> int:
        """As deep as the deepest measure."""
        return max(measure.k for measure in self.measures)

    @property
    def k(self) -> int:
        """One more than that, to see ties."""
        return min(self.depth + 1, len(self.dataset.documents))

    @property
    def candidates(self) -> int:
        """The size of a shortlist."""
        return min(max(self.shortlist, self.k), len(self.dataset.documents))

    def fixed(self, width: Width) -> Point:
        """Every query at one width."""
        m = in_numbers(width, self.model.width)
        return self._point(width, *self._at(self.turned, m), mean_width=m)

    def frozen(self) -> Point:
        """The encoder's own full-width ranking."""
        return self._point(FROZEN, *self._at(self.plain, self.model.width), mean_width=self.model.width)

    def auto(self, policy: Policy, asked: dict[str, Any], *, whole: bool) -> Point:
        """As the policy reads, beside the fixed width of the same mean. `whole`: it sees all queries as one workload."""
        watched = Watched(policy)
        mined = self._shortlist(self.plain) if self.protocol == FROZEN_SHORTLIST else None
        hits = by_stages(
            self.turned.index,
            self.turned.queries,
            watched,
            self.k,
            shortlist=self.candidates,
            own=self.queries.own,
            candidates=mined,
            whole=whole,
        )
        queries, documents = len(self.queries), len(self.dataset.documents)
        ends = watched.ends(queries)
        rotation = self.model.width * sum(width * count for width, count in ends.items()) / max(queries, 1)
        if mined is None:
            cost = documents * policy.start + self.candidates * (hits.mean_width - policy.start) + rotation
        else:
            cost = documents * self._mining_width + self.candidates * hits.mean_width + rotation
        details = {
            **asked,
            "start": policy.start,
            "shortlist": self.candidates,
            "survivors": {str(width): count for width, count in watched.survivors(queries, self.candidates).items()},
            "widths": {str(width): count for width, count in ends.items()},
            "escalated": 1.0 - ends.get(policy.start, 0) / max(queries, 1),
        }
        point = self._point(AUTO, hits, cost, mean_width=hits.mean_width, details=details)
        details["fixed"] = self._against_fixed(point)
        return point

    def limits(self) -> dict[str, Any] | None:
        """What the shortlist allows at best; None where all documents are ranked."""
        if self.protocol == EXHAUSTIVE:
            return None
        assert self.queries.judged is not None  # a split has labels
        found = self._shortlist(self.turned if self.protocol == OWN else self.plain)
        return limits(found, self.model.width, self.queries.judged, self.measures)

    def _against_fixed(self, point: Point) -> dict[str, Any]:
        """The fixed width of the same mean, rounded up so that it never reads less, and the interval of the difference."""
        width = min(math.ceil(point.mean_width - 1e-9), self.model.width)
        fixed, measure = self.fixed(width), str(self.measures[0])
        mean, low, high = paired_bootstrap(point.per_query[measure], fixed.per_query[measure])
        return {
            "width": width,
            **{name: fixed.mean(name) for name in fixed.per_query},
            "multiply_adds": round(fixed.multiply_adds),
            "difference": {"measure": measure, "mean": mean, "low": low, "high": high},
        }

    def _at(self, side: _Side, width: int) -> tuple[Hits, float]:
        """Answers at one width, and multiply-adds per query: finding the candidates, scoring them, turning the query."""
        documents, turning = len(self.dataset.documents), side.index.width if side.rotates else 0
        if self.protocol == EXHAUSTIVE:
            return exhaustive(side.index, side.queries, width, self.k, self.queries.own), documents * width + turning * width
        own = self.protocol == OWN
        mined = self._shortlist(side if own else self.plain)
        hits = by_stages(side.index, side.queries, Fixed(width, width), self.k, candidates=mined)
        continued = self._mining_width if width >= self._mining_width and (own or not side.rotates) else 0  # partial sums go on
        turned = max(width, self._mining_width) if own else width
        return hits, documents * self._mining_width + self.candidates * (width - continued) + turning * turned

    @property
    def _mining_width(self) -> int:
        return mined_at(self.model.width)

    def _shortlist(self, side: _Side) -> Rows:
        """The candidates that a side's first 64 coordinates find. (Q, C)"""
        key = id(side)
        if key not in self._mined:
            self._mined[key] = mine(side.index, side.queries, self.queries.own, self.candidates)
        return self._mined[key]

    def _point(self, width: Width, hits: Hits, cost: float, *, mean_width: float, details: dict[str, Any] | None = None) -> Point:
        assert self.queries.judged is not None  # a split has labels
        details = {} if details is None else details
        tied = {str(measure): metrics.tied_at_cut(hits.scores, measure.k) for measure in self.measures}
        tied = {measure: share for measure, share in tied.items() if share > TIES}
        if tied:
            details["tied"] = tied
            log.warning(
                "width %s: %.1f %% of the queries have equal scores at a cut-off; document ids decide there",
                width,
                100 * max(tied.values()),
            )
        per_query = metrics.measured(self.measures, hits.rows, self.queries.judged)
        return Point(width, float(mean_width), cost, per_query, hits.top(self.depth), self.unseen, details)
