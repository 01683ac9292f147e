"""A corpus that does not fit in memory: scans of its file find, choose and calibrate as the corpus in memory does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth, Dataset, Vectors, load_dataset
from adawidth.data import unit
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.training import corpus, ground
from adawidth.training.fit import fit_model
from adawidth.training.span import Span

SHARED = Path(__file__).parents[3] / "shared" / "datasets"
WIDTHS = (8, 16, 40)


@pytest.fixture
def mapped(collection: Dataset, tmp_path: Path) -> Dataset:
    """The collection with its documents in a memory-mapped file, and 32 coordinates of noise for routers to read."""
    rng = np.random.default_rng(0)
    given = (collection.documents, collection.queries)
    documents, queries = (unit(np.concatenate([x.all(), 0.05 * rng.standard_normal((len(x), 32))], axis=1)) for x in given)
    np.save(tmp_path / "corpus.npy", documents)
    values = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    asked = Vectors.of(queries, collection.queries.ids)
    return Dataset(Vectors.of(values, collection.documents.ids), asked, collection.qrels, "mapped", "tiny")


def test_a_scan_finds_what_is_found_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK", 64)
    rng = np.random.default_rng(0)
    documents, rotation = Vectors.of(unit(rng.standard_normal((500, 40)))), Rotation.random(40, 1)
    queries, own = rotation.apply(unit(rng.standard_normal((9, 40)))), np.array([-1, 3, 70, -1, 499, 0, 64, 63, -1])
    found = corpus.Scanned(documents, rotation).rankings(queries, WIDTHS, 20, own)
    for width in WIDTHS:
        np.testing.assert_array_equal(found[width], MemoryBackend(documents, rotation).search(queries, width, 20, own).candidates)


def test_a_query_without_another_document_finds_none() -> None:
    one = Vectors.of(np.ones((1, 4), np.float32))
    found = corpus.Scanned(one, Rotation.identity(4)).rankings(one.all(), [4], 10, np.array([0]))
    assert found[4].tolist() == [[-1]]


@pytest.mark.parametrize("labels", [True, False])
def test_thresholds_from_a_file_are_those_of_the_corpus_in_memory(mapped: Dataset, monkeypatch: pytest.MonkeyPatch, labels: bool) -> None:
    held = AdaWidth.fit(mapped, recipe="pca", labels=labels)
    monkeypatch.setattr(corpus, "FLOATS", 300 * 96)
    monkeypatch.setattr(corpus, "BLOCK", 100)
    monkeypatch.setattr(corpus, "PIECE", 20 * 480 * 96)
    scanned = AdaWidth.fit(mapped, recipe="pca", labels=labels)
    assert scanned.record.pool == 300 < held.record.pool == 480
    assert scanned.policies.taper.fixed == pytest.approx(held.policies.taper.fixed)
    expected, found = held.policies.tensors(), scanned.policies.tensors()
    assert expected.keys() == found.keys()
    assert scanned.policies.router is not None
    assert scanned.policies.router.heads
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=5e-3, atol=1e-4, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["auto", "paper", "kyfan"])
def test_dev_figures_are_those_of_all_documents(mapped: Dataset, monkeypatch: pytest.MonkeyPatch, recipe: str) -> None:
    from adawidth.training import choose

    monkeypatch.setattr(choose, "LABELLED", choose.LABELLED[:1])
    whole = {trial.recipe: trial.dev for trial in AdaWidth.fit(mapped, recipe="kyfan").record.trials}
    monkeypatch.setattr(corpus, "FLOATS", 300 * 96)
    model = AdaWidth.fit(mapped, recipe=recipe)
    assert model.record.pool == 300
    trials = {trial.recipe: trial.dev for trial in model.record.trials}
    for closed in ("identity", "pca"):
        assert trials[closed] == pytest.approx(whole[closed])


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "medquad").is_dir(), reason="../shared/datasets/medquad is not here")
def test_a_real_corpus_cut_by_the_limit_is_judged_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    learning = load_dataset(SHARED / "medquad", encoder="wordllama").learning()
    learning = replace(learning, train=learning.train.select(range(300)), dev=learning.dev.select(range(200)))
    figures = []
    for floats in (corpus.FLOATS, 2_000 * 256):
        monkeypatch.setattr(corpus, "FLOATS", floats)
        fitted = fit_model(learning, recipe="identity", router=False)
        policy = fitted.policies.taper.policy()
        figures.append((fitted.record.trials[0].dev[64], fitted.policies.taper.fixed[64], policy.z, policy.start))
    assert fitted.record.pool == 2_000
    assert figures[1] == pytest.approx(figures[0], abs=2e-3)


LEARNED = [pytest.param(name, marks=pytest.mark.slow) for name in ("auto", "paper")]


@pytest.mark.parametrize("recipe", [*LEARNED, "kyfan", "pca", "identity"])
@pytest.mark.parametrize("labels", [True, False])
def test_a_wide_encoder_is_turned_within_its_leading_principal_axes(
    collection: Dataset, monkeypatch: pytest.MonkeyPatch, recipe: str, labels: bool
) -> None:
    monkeypatch.setattr(ground, "SPAN", 48)
    model = AdaWidth.fit(collection, recipe=recipe, labels=labels)
    pca = Rotation.pca(collection.documents)
    if model.record.chosen not in ("identity", "paper"):
        np.testing.assert_allclose(model.rotation.matrix[48:], pca.matrix[48:], atol=1e-6)
        np.testing.assert_allclose(model.rotation.matrix[:48] @ pca.matrix[48:].T, 0, atol=1e-5)
    x = collection.documents.all()
    y = model.rotation.apply(x)
    np.testing.assert_allclose(y @ y.T, x @ x.T, atol=1e-5)


def test_a_rotation_of_the_span_scores_prefixes_as_the_span_does() -> None:
    rng = np.random.default_rng(0)
    x, pca, learned = unit(rng.standard_normal((30, 20))), Rotation.random(20, 1), Rotation.random(8, 2)
    span = Span(pca, 8)
    lifted = span.lift(learned)
    np.testing.assert_allclose(unit(lifted.apply(x, 5)), unit(learned.apply(span.cut(x), 5)), atol=1e-5)
    assert span.lift(pca) is pca
