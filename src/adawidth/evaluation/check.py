"""Does a model still fit? Documents and queries of today beside those that it was fitted on, and whether refitting would pay.

Needs no labels. What the model was fitted on is in its record (model/profile.py). Limits were set on real collections, where the same
collection's other queries stay well within them, and turned vectors, another collection's, or an index grown ninefold do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np

from ..data import Dataset, Learning, Queries, Vectors, held_out
from ..errors import DataError
from ..metrics import Measure
from ..metrics import evaluate as measured
from ..model import AdaWidth
from ..model.drift import GROWN
from ..model.profile import QUERIES, SHARES, K, Look, Profile, look, overlap, prefix
from ..policies.base import DEFAULT_QUALITY
from ..rotation import Rotation, second_moment
from ..stages.loop import SHORTLIST, run
from ..types import F64, Rows
from .significance import mean_interval, paired_bootstrap

Verdict = Literal["fits", "changed", "unknown"]

LOST = 0.10  # of the energy above chance: a rotation that lost more no longer fits
LOST_BY_QUERIES = 0.15  # they are fewer
WORSE = 0.01  # of the top 10: so much less, interval included, and the thresholds no longer fit
WIDER = 1.25  # times the mean width
APART = 0.40  # of the queries: the largest distance of two distributions of the router's predictions (Kolmogorov and Smirnov's)
NOTED = 0.35  # the same for scores, which decide nothing
UNRECORDED = 0.5  # of the way from chance to the best rotation, where the record has no energy
PAYS = 0.01  # of nDCG@10, or of the top 10
ENOUGH = 60  # labelled queries to estimate a fit with labels
# benchmarks/results/query_map.json: labelled train queries -> smallest and largest gain in nDCG@10 of a query map on three collections
LEARNED = {50: (-0.005, 0.0173), 100: (0.0135, 0.06), 200: (0.0227, 0.0729), 400: (0.0528, 0.1152), 800: (0.0702, 0.1312)}
SHARED = f"top {K} shared with "
LABELS = 100  # the fewest with which all of them gained


@dataclass(frozen=True)
class Finding:
    """One thing looked at, as it was at the fit and as it is now."""

    part: str  # rotation, taper, router, scores or documents
    what: str
    then: float | None  # None: not recorded
    now: float
    low: float | None = None  # 95 % interval of `now`
    high: float | None = None
    verdict: Verdict = "fits"
    decides: bool = True


@dataclass(frozen=True)
class Refit:
    """What a quick refit gave on queries held out from it, beside the model as it is."""

    what: str
    measure: str
    now: float
    refitted: float
    gain: float
    low: float
    high: float
    mean_width: float | None = None  # of the model, and …
    refitted_width: float | None = None  # … of the refit

    @classmethod
    def of(cls, what: str, measure: str, now: F64, refitted: F64, width: float | None = None, refitted_width: float | None = None) -> Self:
        """From the values of each query, and the mean widths."""
        gain, low, high = paired_bootstrap(refitted, now, 1_000)
        return cls(what, measure, float(now.mean()), float(refitted.mean()), gain, low, high, width, refitted_width)

    @property
    def pays(self) -> bool:
        """Whether it gains more than chance, and enough; or costs a fifth less without losing."""
        cheaper = self.mean_width is not None and self.refitted_width is not None and WIDER * self.refitted_width < self.mean_width
        return (self.low > 0 and self.gain >= PAYS) or (cheaper and self.high >= 0)


@dataclass(frozen=True)
class Check:
    """Whether a model fits a dataset, and why."""

    dataset: str
    encoder: str
    documents: int
    queries: int  # looked at
    stand_ins: bool  # documents stood in for queries
    findings: tuple[Finding, ...]
    refits: tuple[Refit, ...]
    labels: int  # labelled train queries that the dataset has

    @property
    def fits(self) -> bool:
        """Nothing that decides has changed."""
        return not any(finding.verdict == "changed" and finding.decides for finding in self.findings)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        kept = next(finding for finding in self.findings if finding.part == "taper")
        agree = (
            f"{kept.now:.3f} of the top {K} (95 % interval {kept.low:.3f} to {kept.high:.3f}) are those of {kept.what.removeprefix(SHARED)}"
        )
        paying = [refit.what for refit in self.refits if refit.pays]
        pay = f"; it would pay to {' and to '.join(paying)}" if paying else ""
        if self.fits:
            return f"The model fits {self.dataset}: {agree}{pay}."
        changed = [finding for finding in self.findings if finding.verdict == "changed" and finding.decides]
        first = changed[0]
        was = "" if first.then is None else f", {first.then:.3f} at the fit"
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        return f"The model no longer fits {self.dataset}: {first.part}, {first.what}: {first.now:.3f}{was}{more}; {agree}{pay}."

    def to_json(self) -> dict[str, Any]:
        """The object that `adawidth check --json` prints."""
        return {
            "dataset": self.dataset,
            "encoder": self.encoder,
            "documents": self.documents,
            "queries": self.queries,
            "stand_ins": self.stand_ins,
            "fits": self.fits,
            "sentence": self.sentence,
            "findings": [asdict(finding) for finding in self.findings],
            "refits": [{**asdict(refit), "pays": refit.pays} for refit in self.refits],
            "labels": {"there": self.labels, "needed": LABELS, "gains": {str(count): list(gains) for count, gains in LEARNED.items()}},
        }

    def __repr__(self) -> str:
        return f"Check({self.sentence})"


def check(model: AdaWidth, data: Dataset, *, seed: int = 0) -> Check:
    """Do rotation, taper and router still fit these documents and queries, and would refitting pay? Needs no labels.

    Looks at a sample of the documents and queries. Where there are no queries, documents stand in for them.

    >>> import numpy as np
    >>> from adawidth import Dataset, Vectors
    >>> rows = np.random.default_rng(0).standard_normal((1_300, 96)) / np.arange(1, 97)
    >>> data = Dataset(Vectors.of(rows[:1_000]), Vectors.of(rows[1_000:]))
    >>> check(AdaWidth.fit(data, recipe="pca"), data).fits
    True
    """
    if data.documents.width != model.width:
        raise DataError(
            f"{data.documents.name}: vectors are {data.documents.width} wide, the model {model.width}: "
            "use the encoder it was fitted for (--encoder)"
        )
    if len(data.documents) < 2:
        raise DataError(f"{data.documents.name}: {len(data.documents)} documents are too few to check a model with")
    own = _own(data, data.queries)
    now, then = look(model, data.documents, data.queries, own, seed), Profile.of(model.record.profile)
    findings = (*_rotation(model, data.documents, now, then), *_taper(model, now, then), *_router(model, now), *_scores(model, now, then))
    labels = len(data.qrels["train"]) if "train" in data.qrels else 0
    refits = tuple(_refits(model, data, labels, seed))
    return Check(data.name, data.encoder, len(data.documents), len(now.kept), now.stand_ins, findings, refits, labels)


def _own(data: Dataset, queries: Vectors) -> Rows | None:
    if not data.queries_are_documents:
        return None
    return np.array([data.documents.row_of.get(name, -1) for name in queries.ids], np.int64)


def _rotation(model: AdaWidth, documents: Vectors, now: Look, then: Profile | None) -> list[Finding]:
    """Energy in the prefix: as much of it as at the fit, or, where that is not recorded, near what a rotation can hold."""
    chance = now.width / model.width
    recorded = then if then is not None and then.width == now.width else None
    found = []
    for side, energies, was, limit in (
        ("documents", now.document_energy, None if recorded is None else recorded.document_energy, LOST),
        ("queries", now.query_energy, None if recorded is None else recorded.query_energy, LOST_BY_QUERIES),
    ):
        if side == "queries" and (now.stand_ins or (recorded is not None and recorded.stand_ins)):
            continue
        mean, low, high = mean_interval([energies], 1_000)
        reference, limit = (was, limit) if was is not None else (_most(documents, now.width), UNRECORDED)
        lost = (reference - high) / max(reference - chance, 1e-9) if reference > chance else 0.0
        verdict: Verdict = "changed" if lost > limit else "fits"
        if was is None and side == "queries":
            verdict = "unknown"
        found.append(Finding("rotation", f"energy of {side} in the first {now.width} coordinates", was, mean, low, high, verdict))
    return found


def _most(documents: Vectors, width: int) -> float:
    """The energy that the best rotation for these documents holds in its first coordinates."""
    values = np.linalg.eigvalsh(second_moment(documents, 10_000))[::-1]
    return float(values[:width].sum() / max(values.sum(), 1e-12))


def _taper(model: AdaWidth, now: Look, then: Profile | None) -> list[Finding]:
    """Agreement with what the taper aims at, with the full width, and the mean width."""
    target = now.target
    unlabelled = not model.policies.taper.labelled
    was = DEFAULT_QUALITY if then is None and unlabelled else None if then is None else then.kept
    mean, low, high = mean_interval([now.kept], 1_000)
    aim = "the full width" if target == model.width else f"the target width, {target}"
    verdict: Verdict = "unknown" if was is None else "changed" if high < was - WORSE else "fits"
    found = [Finding("taper", f"{SHARED}{aim}", was, mean, low, high, verdict)]
    if target < model.width:
        whole = mean_interval([now.kept_of_full], 1_000)
        found.append(Finding("taper", f"{SHARED}the full width", None if then is None else then.kept_of_full, *whole, decides=False))
    spent, least, most = mean_interval([now.widths], 1_000)
    verdict = "unknown" if then is None else "changed" if least > WIDER * then.widths else "fits"
    return [*found, Finding("taper", "mean width", None if then is None else then.widths, spent, least, most, verdict)]


def _router(model: AdaWidth, now: Look) -> list[Finding]:
    """The distribution of the router's predictions."""
    if model.policies.router is None or not len(now.signals) or not len(model.policies.router.reference):
        return []
    apart = distance(now.signals, np.quantile(model.policies.router.reference, SHARES))
    verdict: Verdict = "changed" if apart > APART else "fits"
    return [Finding("router", "distance of its predictions from those at the fit", 0.0, apart, verdict=verdict)]


def _scores(model: AdaWidth, now: Look, then: Profile | None) -> list[Finding]:
    """What has changed without deciding anything: best scores, and the number of documents."""
    found = []
    if then is not None and then.stand_ins == now.stand_ins:
        apart = distance(now.scores, np.array(then.scores))
        verdict: Verdict = "changed" if apart > NOTED else "fits"
        found.append(Finding("scores", "distance of the best scores from those at the fit", 0.0, apart, verdict=verdict, decides=False))
    fitted = model.record.documents
    verdict = "unknown" if not fitted else "changed" if now.documents > GROWN * fitted else "fits"
    return [*found, Finding("documents", "number", float(fitted) or None, float(now.documents), verdict=verdict, decides=False)]


def distance(values: F64, quantiles: F64) -> float:
    """Kolmogorov and Smirnov's distance of values from a distribution that is known by its quantiles."""
    below = np.array([np.mean(values < score) for score in quantiles]), np.array([np.mean(values <= score) for score in quantiles])
    outside = np.maximum(below[0] - SHARES, SHARES - below[1])  # equal values have a span of shares
    return float(np.maximum(outside, 0.0)[1:-1].max())


def _refits(model: AdaWidth, data: Dataset, labels: int, seed: int) -> list[Refit]:
    """Thresholds and a closed-form rotation, fitted on some of the queries and judged on others; test queries are neither."""
    try:
        learning = data.learning(labels=labels >= ENOUGH, seed=seed)
    except DataError:  # too few queries beside those kept for testing
        return []
    if not len(learning.train) or not len(learning.dev):
        return []
    dev = learning.dev.select(np.sort(np.random.default_rng(seed).permutation(len(learning.dev))[:QUERIES]))
    return [_thresholds(model, data.documents, learning.train, dev), _turned(model, learning, dev, seed)]


def _thresholds(model: AdaWidth, documents: Vectors, train: Queries, dev: Queries) -> Refit:
    """Thresholds set again, without labels, as `index.calibrate` does."""
    from ..training.corpus import corpus_of, pieces, rankings
    from ..training.taper import RotatedQueries, fit_taper

    index, old = corpus_of(documents, model.rotation), model.policies.choose(k=K)
    some = RotatedQueries.of(_unlabelled(train), model.rotation)
    order = np.arange(min(len(some), 2 * QUERIES))
    taper = fit_taper(index, some.select(order[::2]), some.select(order[1::2] if len(order) > 1 else order), target=old.reach)
    new, asked = taper.policy(k=K), model.rotation.apply(dev.vectors.all())
    reference = rankings(index, asked, [old.reach], min(K, len(index)), dev.own)[old.reach]
    figures = []
    for policy in (old, new):
        done = [(piece, run(piece.stage, policy)) for piece in pieces(index, asked, policy.start, min(SHORTLIST, len(index)), dev.own)]
        found = np.concatenate([piece.ranked(stage, K) for piece, stage in done])
        figures.append((overlap(found, reference), float(np.concatenate([stage.mean_widths for _, stage in done]).mean())))
    (kept, width), (kept_now, width_now) = figures
    return Refit.of("set the thresholds again (calibrate)", f"top {K} kept", kept, kept_now, width, width_now)


def _turned(model: AdaWidth, learning: Learning, dev: Queries, seed: int) -> Refit:
    """A closed-form rotation: Ky Fan's with labels, else PCA; both ranked at the prefix alone, where a rotation shows."""
    from ..training.corpus import corpus_of, rankings
    from ..training.fit import fit_model

    width = prefix(model.width)
    if learning.labelled and dev.judged is not None:
        inner = Learning(learning.documents, *held_out(learning.train, seed))
        rotation, measure = fit_model(inner, recipe="kyfan", router=False, seed=seed).rotation, f"nDCG@{K} at {width}"
    else:
        rotation, measure = Rotation.principal(second_moment(learning.documents), "pca"), f"top {K} of the full width kept at {width}"
    values: list[F64] = []
    vectors = dev.vectors.all()
    for turn in (model.rotation, rotation):
        index, asked = corpus_of(learning.documents, turn), turn.apply(vectors)
        ranked = rankings(index, asked, [width, model.width], min(K, len(index)), dev.own)
        if learning.labelled and dev.judged is not None:
            values.append(measured([Measure("nDCG", K)], ranked[width], dev.judged)[f"nDCG@{K}"])
        else:
            values.append(overlap(ranked[width], ranked[model.width]))
    how = "fit the rotation again" if learning.labelled else "fit the rotation again, without labels"
    return Refit.of(how, measure, values[0], values[1])


def _unlabelled(queries: Queries) -> Queries:
    return Queries(queries.vectors, None, queries.own)


def lines(labels: dict[str, Any]) -> Sequence[str]:
    """What is known of labels: how many it took, and what they gave."""
    gains = {int(count): pair for count, pair in labels["gains"].items()}
    low, high = gains[labels["needed"]]
    most, (least_of_most, most_of_most) = max(gains.items())
    return [
        f"Labels: there are {labels['there']:,}. On three collections, {labels['needed']} labelled queries were the fewest with which "
        f"a query map (`refit`) gained on each, {low:+.3f} to {high:+.3f} nDCG@10; {most} gave {least_of_most:+.3f} to {most_of_most:+.3f}."
    ]
