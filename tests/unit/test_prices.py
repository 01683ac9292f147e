"""Which widths a collection gets, and whether a taper asks twice, by what the engine charges."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset
from adawidth.engines import PRICES, Prices
from adawidth.engines.registry import REGISTRY
from adawidth.model.collections import layout_of


def test_every_engine_has_prices() -> None:
    assert set(PRICES) == set(REGISTRY)


def test_prices_are_those_measured() -> None:
    found = defaultdict(list)
    for entry in json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "engines.json").read_text(encoding="utf-8")):
        found[entry["engine"]].append([entry["prices"][kind] for kind in ("trip", "candidate", "coordinate")])
    assert {"pgvector", "qdrant-edge", "lancedb", "milvus"} <= set(found)
    for name in set(found) & set(PRICES):
        measured, price = np.array(found[name]), PRICES[name]
        usual = np.exp(np.log(measured[:, :2]).mean(axis=0))
        assert np.all(np.abs(np.log2([price.trip, price.candidate] / usual)) < 1), (name, usual)  # within half and twice
        assert measured[:, 2].min() / 2 <= price.coordinate <= 2 * measured[:, 2].max(), name


def test_dropping_pays_where_what_it_can_save_is_more_than_it_costs() -> None:
    prices = Prices(trip=1_000, candidate=2, coordinate=0.02)  # half of the candidates are dropped
    assert not prices.dropping_pays(candidates=100, more=200)  # saves 200, for 1,200
    assert not prices.dropping_pays(candidates=100, more=1_200)
    assert prices.dropping_pays(candidates=100, more=1_201)
    assert prices.dropping_pays(candidates=1_000, more=301)  # the trip is shared by more
    assert not prices.dropping_pays(candidates=10**9, more=199)  # never, as each candidate costs more than it saves


def test_a_step_between_is_kept_only_where_it_can_pay(collection: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AdaWidth.fit(collection, recipe="pca")
    url, target = "qdrant-edge://folder", model.policies.taper.target
    start = model.policies.taper.policy().start
    assert layout_of(model).widths[0] == start
    for coordinate, steps in ((0.0, {start, target, model.width}), (1.0, set(layout_of(model).widths))):
        monkeypatch.setitem(PRICES, "qdrant-edge", Prices(trip=1, candidate=0.01, coordinate=coordinate))
        assert set(layout_of(model, url=url).widths) == steps
    assert layout_of(model, widths=(8, 16), url=url).widths == (8, 16, model.width)
