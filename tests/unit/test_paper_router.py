"""The paper's router: its pairs and features alone, ends that are the fixed widths exactly, its share of a workload, its model folder."""

import json
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset
from adawidth.baselines.base import plain
from adawidth.baselines.paper import Paper, RouterOnly
from adawidth.data import Qrels, Vectors
from adawidth.errors import ArtifactError, OptionError
from adawidth.hits import Hits
from adawidth.policies import Fixed, Policy
from adawidth.policies.router import Router, RouterModel, Transductive
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages
from adawidth.training.router import PAIRS, fit_paper_router

D = 256
COUNTS = {"train": 160, "dev": 60, "test": 50}


@pytest.fixture(scope="module")
def wide() -> Dataset:
    """700 documents and 270 queries, 256 wide; how noisy a query is differs, so that some gain from width and some do not."""
    rng = np.random.default_rng(3)
    spectrum = np.exp(-np.arange(D) / 90)
    documents = rng.standard_normal((700, D)) * spectrum
    count = sum(COUNTS.values())
    source = rng.integers(len(documents), size=count)
    queries = documents[source] + rng.uniform(0.4, 2.2, (count, 1)) * rng.standard_normal((count, D)) * spectrum
    splits = np.repeat(list(COUNTS), list(COUNTS.values())).tolist()
    qrels = {name: Qrels({f"q{i}": {f"d{source[i]}": 1.0} for i in range(count) if splits[i] == name}, name) for name in COUNTS}
    return Dataset(
        Vectors.of(documents.astype(np.float32), [f"d{i}" for i in range(len(documents))], name="documents"),
        Vectors.of(queries.astype(np.float32), [f"q{i}" for i in range(count)], name="queries"),
        qrels,
        name="wide",
        encoder="tiny",
    )


@pytest.fixture(scope="module")
def index(wide: Dataset) -> MemoryBackend:
    return MemoryBackend(wide.documents, Rotation.identity(D))


@pytest.fixture(scope="module")
def router(wide: Dataset, index: MemoryBackend) -> RouterModel:
    found = fit_paper_router(wide.learning(), index, Rotation.identity(D))
    assert found is not None
    return found


def answers(index: MemoryBackend, wide: Dataset, policy: Policy) -> Hits:
    return by_stages(index, wide.split("test").vectors.all(), policy, 10, shortlist=200, whole=True)


def same(one: Hits, other: Hits) -> None:
    assert one.ids == other.ids
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.mean_width == other.mean_width


def test_it_has_the_papers_pairs_and_features_alone(router: RouterModel) -> None:
    assert router.name == "paper-router"
    assert tuple(head.widths for head in router.heads) == PAIRS
    assert {head.features for head in router.heads} == {"paper"}
    assert router.widths == (64, 128, 256)
    assert len(router.values) == COUNTS["dev"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("share", [0, 1])
def test_the_ends_of_a_pair_are_the_fixed_widths(
    router: RouterModel, index: MemoryBackend, wide: Dataset, pair: tuple[int, int], share: int
) -> None:
    place = PAIRS.index(pair)
    fixed = answers(index, wide, Fixed(pair[share], 64))
    head = router.heads[place]
    same(answers(index, wide, Router(head, 64, router.noise, -np.inf if share else np.inf)), fixed)
    same(answers(index, wide, Transductive(head, 64, router.noise, pair[share])), fixed)


@pytest.mark.parametrize("transductive", [False, True])
@pytest.mark.parametrize("width", [64, 256])
def test_the_ends_of_its_range_are_the_fixed_widths(
    router: RouterModel, index: MemoryBackend, wide: Dataset, width: int, transductive: bool
) -> None:
    policy = router.policy(budget=width, transductive=transductive)
    assert policy.name == "paper-router"
    same(answers(index, wide, policy), answers(index, wide, Fixed(width, 64)))


@pytest.mark.parametrize(("pair", "share"), [(PAIRS[0], 0.5), (PAIRS[1], 0.3), (PAIRS[2], 0.72)])
def test_a_share_of_the_workload_goes_up_largest_predictions_first(
    router: RouterModel, index: MemoryBackend, wide: Dataset, pair: tuple[int, int], share: float
) -> None:
    head, queries = router.heads[PAIRS.index(pair)], wide.split("test").vectors.all()
    hits = answers(index, wide, Transductive(head, 64, router.noise, (1 - share) * pair[0] + share * pair[1]))
    up = hits.widths == pair[1]
    assert up.sum() == int(share * len(queries) + 1e-9)
    assert set(hits.widths) == set(map(float, pair))
    predicted = head.scores(index.search(queries, 64, 200), router.noise, 64)
    assert predicted[up].min() >= predicted[~up].max()


@pytest.mark.parametrize("kind", [Paper, RouterOnly])
def test_the_method_spends_its_budget_and_ends_at_the_fixed_widths(
    kind: type[Paper], wide: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adawidth.training.descent.EVERY", 5)
    monkeypatch.setattr("adawidth.training.descent.PATIENCE", 1)
    method, queries = kind().fit(wide.learning()), wide.split("test")
    for width in (32, 64, 256):
        assert method.policy(width, 10) == plain(width)
    for width in (80, 96, 128, 192):
        hits = method.search(wide.documents, queries, width, 10)
        assert width - 192 / len(queries) <= hits.mean_width <= width
        assert method.stored_floats(width) <= 256


def test_without_labels_there_is_none(wide: Dataset, index: MemoryBackend, caplog: pytest.LogCaptureFixture) -> None:
    assert fit_paper_router(wide.learning(labels=False), index, Rotation.identity(D)) is None
    assert "no labels" in caplog.text


@pytest.fixture(scope="module")
def model(wide: Dataset) -> AdaWidth:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adawidth.training.descent.EVERY", 5)
        patch.setattr("adawidth.training.descent.PATIENCE", 1)
        return AdaWidth.fit(wide, recipe="paper")


def test_a_model_folder_keeps_it(model: AdaWidth, wide: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "a.model")
    again, queries = AdaWidth.load(tmp_path / "a.model"), wide.queries_of("test")
    for options in ({"budget": 100}, {"quality": 0.9}, {}):
        first, second = (m.index(wide.documents).search(queries, k=10, policy="paper-router", **options) for m in (model, again))
        assert first.ids == second.ids
        np.testing.assert_array_equal(first.widths, second.widths)
    fixed = again.index(wide.documents).search(queries, k=10, width=256, start=64)
    same(again.index(wide.documents).search(queries, k=10, policy="paper-router", budget=256), fixed)
    assert model.policies.cut(256).paper_router is not None
    assert model.policies.cut(255).paper_router is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"start": 500}, "paper_router.start"), ({"heads": 3}, "paper_router.heads"), ({"widths": [64, 64]}, "paper_router.widths")],
)
def test_a_damaged_one_is_refused_by_name(model: AdaWidth, tmp_path: Path, changed: dict[str, object], words: str) -> None:
    config, tensors = model.policies.config(), model.policies.tensors()
    config = json.loads(json.dumps({**config, "paper_router": {**config["paper_router"], **changed}}))
    with pytest.raises(ArtifactError, match=words):
        type(model.policies).of(D, config, tensors)


def test_a_model_without_one_says_how_to_get_it(wide: Dataset) -> None:
    other = AdaWidth.fit(wide, recipe="pca")
    with pytest.raises(OptionError, match="--recipe paper"):
        other.policies.choose("paper-router", budget=100)
