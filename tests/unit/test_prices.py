"""Which widths a collection gets, and whether a taper asks twice, by what the engine charges."""

from __future__ import annotations

import pytest

from adawidth import AdaWidth, Dataset
from adawidth.engines import PRICES, Prices
from adawidth.engines.registry import REGISTRY
from adawidth.model.collections import layout_of


def test_every_engine_has_prices() -> None:
    assert set(PRICES) == set(REGISTRY)


def test_dropping_pays_where_what_it_can_save_is_more_than_it_costs() -> None:
    prices = Prices(trip=1_000, candidate=2, coordinate=0.01)
    assert not prices.dropping_pays(candidates=100, more=200)  # saves 200 at most, for 1,200
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
