"""Fitting routers: trees that predict gains on train examples; features, settings and widths chosen on dev.

Trees are LightGBM's, kept as flat arrays. Hand in examples made with a rotation that has not seen their queries
(cross-fitting): gains of queries that the rotation was trained on are too good. The paper's router, as it stands, does without.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..data import Learning
from ..errors import OptionalDependencyError
from ..policies.features import columns
from ..policies.router import Head, RouterModel, Trees
from ..rotation import Rotation
from ..stages import RowBackend
from ..types import F64
from .corpus import Scanned
from .examples import Examples, examples_of

log = logging.getLogger("adawidth")

PAIRS = ((64, 128), (64, 256), (128, 256))  # the paper's
SETS = ("paper", "extended", "query")
BUDGETS = (1.25, 1.5, 2.0, 2.5)  # times the narrowest width: where the choice on dev is made
FEWEST = 100  # train queries
HELD_OUT = 0.15  # of them stop the growing of the ensemble
PATIENCE = 30  # trees without an improvement there
FOLDS = 4  # for scores of queries that their trees have not seen
BINS = 8  # scores between which gain curves are drawn
PRIOR = 50  # queries that the mean curve counts for in each of them


@dataclass(frozen=True)
class TreeSettings:
    """How an ensemble is grown, in LightGBM's words."""

    learning_rate: float = 0.05
    num_leaves: int = 15
    min_data_in_leaf: int = 20
    lambda_l2: float = 1.0
    max_depth: int = 6
    trees: int = 300  # at most


SETTINGS = (TreeSettings(), TreeSettings(learning_rate=0.03, num_leaves=7, min_data_in_leaf=50))


def fit_router(
    train: Examples,
    dev: Examples,
    *,
    pairs: Sequence[tuple[int, int]] = PAIRS,
    multi: bool = True,
    sets: Sequence[str] = SETS,
    settings: Sequence[TreeSettings] = SETTINGS,
    one_rotation: bool = False,
    seed: int = 0,
) -> RouterModel:
    """A router with one head for each pair of widths that the examples have and, with `multi`, one for all their widths.

    `one_rotation` says that train and dev examples were made with the rotation that will be used, which cross-fitted ones are
    not. Then train queries, scored by trees grown without them, count as dev queries do in every choice; else features that
    hang on the rotation's axes are left out. The feature set and the settings are those with which the last head has the largest
    mean credit: routed value less the fixed width's at the same mean width. Where there is nothing to learn from, the model
    has no heads and says so.
    """
    values = np.concatenate([train.values, dev.values]) if one_rotation else dev.values
    empty = RouterModel(train.start, train.widths, train.noise, train.labelled, len(dev), values, (), ())
    ladders = [pair for pair in pairs if set(pair) <= set(train.widths)] + ([train.widths] if multi else [])
    if reason := _hopeless(train, dev, ladders):
        log.warning("router: %s; every query will end at the start width, %d", reason, train.start)
        return empty
    sets = [features for features in sets if one_rotation or features != "query"]
    trials = {(f, s): _trial(empty, train, dev, ladders[-1], f, s, one_rotation, seed) for f in sets for s in settings}
    best = max(trials, key=lambda choice: _mean_credit(trials[choice]))
    chosen = [*(_trial(empty, train, dev, ladder, *best, one_rotation, seed) for ladder in ladders[:-1]), trials[best]]
    return replace(empty, heads=tuple(m.heads[0] for m in chosen), scores=tuple(m.scores[0] for m in chosen))


def fit_paper_router(pool: Learning, index: RowBackend | Scanned, rotation: Rotation, seed: int = 0) -> RouterModel | None:
    """The paper's router: for each of its pairs of widths, trees that predict the gain in nDCG@10 from its 18 features.

    It learns from all train queries, under the rotation that they trained. Dev queries choose between the pairs and set the thresholds
    of single queries. None without labels, of which gains are made.
    """
    if not pool.labelled:
        log.warning("there are no labels: no paper-router is fitted, since it learns gains in nDCG@10")
        return None
    widths = sorted({m for pair in PAIRS for m in pair})
    train = examples_of(pool.train, index, rotation)
    dev = examples_of(pool.dev, index, rotation, noise=train.noise)
    found = fit_router(train.within(widths), dev.within(widths), multi=False, sets=("paper",), settings=(TreeSettings(),), seed=seed)
    return replace(found, name="paper-router")


def grow(x: F64, y: F64, settings: TreeSettings, seed: int) -> Trees:
    """Regression trees for y, as many as help on a held-out share; the same for the same input. (Q, F), (Q,)"""
    try:
        import lightgbm
    except ImportError:
        raise OptionalDependencyError("lightgbm", "train") from None
    options: dict[str, Any] = {
        **{name: value for name, value in asdict(settings).items() if name != "trees"},
        **{"objective": "regression", "seed": seed, "num_threads": 1, "deterministic": True, "force_row_wise": True, "verbose": -1},
    }
    held = np.random.default_rng(seed).permutation(len(x)) < round(HELD_OUT * len(x))
    fitted = lightgbm.train(
        options,
        lightgbm.Dataset(x[~held], y[~held]),
        settings.trees,
        valid_sets=[lightgbm.Dataset(x[held], y[held])],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return flat(fitted.dump_model(num_iteration=fitted.best_iteration)["tree_info"])


def flat(tree_info: Sequence[dict[str, Any]]) -> Trees:
    """The trees of LightGBM's dump as flat arrays."""
    feature: list[int] = []
    threshold: list[float] = []
    children: list[tuple[int, int]] = []
    value: list[float] = []

    def add(node: dict[str, Any]) -> tuple[int, int]:
        """Appends a node and all below it: its number and its depth."""
        place = len(feature)
        feature.append(0)
        threshold.append(np.inf)
        children.append((place, place))
        value.append(float(node.get("leaf_value", 0.0)))
        if "split_feature" not in node:
            return place, 0
        feature[place], threshold[place] = int(node["split_feature"]), float(node["threshold"])
        (left, left_depth), (right, right_depth) = add(node["left_child"]), add(node["right_child"])
        children[place] = left, right
        return place, 1 + max(left_depth, right_depth)

    tops = [add(tree["tree_structure"]) for tree in tree_info]
    return Trees(
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        children=np.array(children, np.int32).reshape(-1, 2),
        value=np.array(value, np.float64),
        roots=np.array([place for place, _ in tops], np.int32),
        depths=np.array([depth for _, depth in tops], np.int32),
    )


def gain_curves(scores: F64, gains: F64) -> tuple[F64, F64]:
    """Mean scores (B,) of equally many queries each and their mean gains (B, W), drawn towards the mean of all queries."""
    order, whole = np.argsort(scores, kind="stable"), gains.mean(axis=0)
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    knots = np.array([scores[part].mean() for part in parts])
    curves = np.stack([(gains[part].sum(axis=0) + PRIOR * whole) / (len(part) + PRIOR) for part in parts])
    knots, places = np.unique(knots, return_index=True)
    return knots, curves[places]


def _hopeless(train: Examples, dev: Examples, ladders: Sequence[tuple[int, ...]]) -> str | None:
    """Why no router can be learned from these examples, if so."""
    if len(train.widths) == 1 or not ladders:
        return f"there is nothing to choose between among the widths {', '.join(map(str, train.widths))}"
    if len(train) < FEWEST or not len(dev):
        return f"{len(train)} train and {len(dev)} dev queries are too few, at least {FEWEST} and 1 are needed"
    if (np.ptp(train.features, axis=0) < 1e-9).all():
        return "all queries look alike: their scores are constant"
    if np.ptp(train.values, axis=1).max() == 0:
        return "no width gains anything on the train queries"
    return None


def _trial(
    empty: RouterModel,
    train: Examples,
    dev: Examples,
    widths: tuple[int, ...],
    features: str,
    settings: TreeSettings,
    one_rotation: bool,
    seed: int,
) -> RouterModel:
    """A model with this one head."""
    places = columns(features, train.start)
    x, gains = train.features[:, places], _gains(train, widths)
    pair = len(widths) == 2
    target = gains[:, 1:].mean(axis=1)  # one score per query: what it gains, on average over the widths
    if pair and not train.labelled:
        target = train.changed(*widths)
    trees = grow(x, target, settings, seed)
    scores = trees.predict(dev.features[:, places])
    unseen = _unseen_scores(x, target, settings, seed) if one_rotation or not pair else np.empty(0)
    knots, curves = (np.array([-1.0, 1.0]), np.array([[0.0, -1.0], [0.0, 1.0]])) if pair else gain_curves(unseen, gains)
    head = Head(widths, features, trees, knots, curves)  # of a pair the score is the gain
    return replace(empty, heads=(head,), scores=(np.concatenate([unseen, scores]) if one_rotation else scores,))


def _gains(examples: Examples, widths: tuple[int, ...]) -> F64:
    """Gain of each width over the first. (Q, W)"""
    values = examples.values[:, [examples.place(width) for width in widths]]
    return np.asarray(values - values[:, :1])


def _unseen_scores(x: F64, y: F64, settings: TreeSettings, seed: int) -> F64:
    """Scores of train queries by trees grown without them."""
    fold = np.random.default_rng(seed + 1).permutation(len(x)) % FOLDS
    scores = np.empty(len(x))
    for held in range(FOLDS):
        scores[fold == held] = grow(x[fold != held], y[fold != held], settings, seed).predict(x[fold == held])
    return scores


def _mean_credit(model: RouterModel) -> float:
    """Over budgets inside the range of the model's one head."""
    low, high = model.heads[0].widths[0], model.heads[0].widths[-1]
    budgets = [low * times for times in BUDGETS if low * times < high] or [(low + high) / 2]
    return float(np.mean([model.credit(budget) for budget in budgets]))
