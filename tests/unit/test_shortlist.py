"""The paper's protocol: one shortlist for every method, its recall and the best that it allows beside each result."""

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset, compare, evaluate
from adawidth.data import Judged
from adawidth.errors import OptionError
from adawidth.evaluation.shortlist import best_order, limits, under
from adawidth.metrics import Measure

NDCG = Measure("nDCG", 10)


def test_limits_by_hand() -> None:
    judged = Judged.of([{3: 1.0, 7: 2.0, 9: 1.0}, {1: 1.0}, {}])
    candidates = np.array([[4, 3, 7, 8], [2, 3, 4, -1], [0, 1, 2, 3]])
    found = limits(candidates, 64, judged, [NDCG])
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    assert found["R@4"] == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert found["at_best"]["nDCG@10"] == pytest.approx((2 + 1 / np.log2(3)) / ideal / 3)
    assert best_order(candidates, judged).tolist() == [[7, 3, 4, 8], [2, 3, 4, -1], [0, 1, 2, 3]]


def test_all_methods_rank_the_frozen_shortlist(collection: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adawidth.evaluation.shortlist.mine.__defaults__", (40,))
    monkeypatch.setattr("adawidth.evaluation.shortlist.MINED_AT", 16)
    found = compare(collection, ["truncation", "pca", "funnel"], widths=[16, 32, "full"], protocol="frozen-shortlist")
    json = found.to_json()
    assert json["protocol"] == "frozen-shortlist"
    assert json["shortlist"]["candidates"] == 40
    assert json["shortlist"]["mined_at"] == 16
    best = json["shortlist"]["at_best"]["nDCG@10"]
    assert 0 < best < 1
    assert all(row.quality <= best for row in found.results)
    plain = compare(collection, ["truncation"], widths=[16, 32, "full"])
    assert "shortlist" not in plain.to_json()
    assert found.figures("truncation", 16) == plain.figures("truncation", 16)  # mined by it, and ten of its first 40
    assert found.figures("truncation", "full") == [found.frozen]
    assert found.figures("truncation", "full") != plain.figures("truncation", "full")
    row = next(row for row in found.results if (row.method, row.width) == ("truncation", 32))
    assert row.multiply_adds == len(collection.documents) * 16 + 40 * 32


def test_evaluate_and_compare_mine_the_same(collection: Dataset) -> None:
    model = AdaWidth.fit(collection, recipe="pca")
    by_model = evaluate(model, collection, widths=["full"], measures=["nDCG@10"], protocol="frozen-shortlist", shortlist=500).to_json()
    by_method = compare(collection, ["truncation"], widths=["full"], protocol="frozen-shortlist").to_json()
    assert by_model["shortlist"] == by_method["shortlist"]


def test_an_unknown_protocol_is_refused(collection: Dataset) -> None:
    with pytest.raises(OptionError, match="exhaustive, frozen-shortlist"):
        under("own-shortlist", collection.documents, collection.split("test"))
