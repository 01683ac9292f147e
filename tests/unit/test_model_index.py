"""The object a user holds: the same verbs in memory and on disk, and answers that are sequences."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adawidth import AdaWidth, Hit, Index, open_index
from adawidth.data import Vectors, unit
from adawidth.errors import DataError, OptionError
from adawidth.formats.documents import of_vectors
from adawidth.hits import Hits
from adawidth.rotation import Rotated
from adawidth.threads import pool

D, N = 96, 400


def vectors(count: int, seed: int = 0) -> np.ndarray:
    spectrum = np.exp(-np.arange(D) / 30)
    return unit((np.random.default_rng(seed).standard_normal((count, D)) * spectrum).astype(np.float32))


@pytest.fixture(scope="module")
def model() -> AdaWidth:
    return AdaWidth.fit(vectors(N), vectors(40, seed=1), recipe="pca")


@pytest.fixture(params=["memory", "disk"])
def index(model: AdaWidth, request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    names = [f"d{i}" for i in range(N)]
    known: dict[str, Any] = {"titles": [f"title {i}" for i in range(N)], "metadata": [{"even": i % 2 == 0, "n": i} for i in range(N)]}
    return model.index(vectors(N), tmp_path / "i" if request.param == "disk" else None, ids=names, **known)


@pytest.fixture(scope="module")
def paged(model: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    known: dict[str, Any] = {"ids": [f"d{i}" for i in range(N)], "metadata": [{"even": i % 2 == 0} for i in range(N)]}
    return {"memory": model.index(vectors(N), **known), "disk": model.index(vectors(N), tmp_path_factory.mktemp("paged") / "i", **known)}


def full(queries: np.ndarray, rows: np.ndarray, k: int) -> list[list[str]]:
    return [[f"d{i}" for i in np.argsort(-scores)[:k]] for scores in queries @ rows.T]


def test_hits_are_sequences(index: Index) -> None:
    queries = vectors(5, seed=2)
    hits = index.search(queries, k=7, width="full")
    assert (len(hits), len(hits[0]), hits.ids) == (5, 7, full(queries, vectors(N), 7))
    best = hits[0][0]
    name, score = best
    assert (name, best.title, best.metadata["n"]) == (best.id, f"title {best.id[1:]}", int(str(best.id)[1:]))
    assert score == pytest.approx(float(hits.scores[0, 0]))
    assert [answer[0].id for answer in hits] == [ids[0] for ids in hits.ids]
    assert isinstance(hits[1:3], Hits)
    assert (hits[1:3].ids, hits[-1].query) == (hits.ids[1:3], 4)
    assert hits.to_dicts()[1]["hits"][0]["title"] == hits[1][0].title
    assert len(repr(hits)) < 200
    assert len(repr(hits[0])) < 400
    assert "<table>" in hits._repr_html_()
    pickled = pickle.loads(pickle.dumps(hits))
    assert pickled.ids == hits.ids
    assert pickled[2][1] == hits[2][1]


def test_to_pandas(index: Index) -> None:
    pytest.importorskip("pandas")
    frame = index.search(vectors(3, seed=2), k=4).to_pandas()
    assert list(frame.columns) == ["query", "rank", "id", "score", "title", "text", "metadata"]
    assert frame["rank"].tolist() == [1, 2, 3, 4] * 3


def test_titles_are_escaped(model: AdaWidth) -> None:
    hits = model.index(vectors(3), ids=["a", "b", "c"], titles=["<script>", "&", ""]).search(vectors(1), k=3)
    assert "<script>" not in hits._repr_html_()


def test_every_verb(index: Index, model: AdaWidth) -> None:
    assert len(index) == N
    assert "d7" in index
    assert "e7" not in index
    index.add(vectors(3, seed=5), ["e0", "e1", "e2"], texts=["a", "b", "c"])
    assert index.search(vectors(3, seed=5), k=1).ids == [["e0"], ["e1"], ["e2"]]
    with pytest.raises(DataError, match="'e1' is in the index already"):
        index.add(vectors(2, seed=6), ["f", "e1"])
    assert ("f" in index, len(index)) == (False, N + 3)
    written = index.update(vectors(2, seed=6), ["e1", "f"], texts=["B", "F"])
    assert (written.added, written.replaced, written.documents) == (1, 1, N + 4)
    assert index.search(vectors(2, seed=6), k=1).ids == [["e1"], ["f"]]
    assert [document.text for document in index.documents(["f", "e1", "f"])] == ["F", "B", "F"]
    assert index.remove("e1") == 1
    with pytest.raises(DataError, match="there is no document 'e1'; 1 of 2 ids"):
        index.remove(["e1", "e0"])
    assert "e0" in index
    np.testing.assert_allclose(index.vectors(["d3"]), model.rotation.apply(vectors(N)[3:4]), atol=1e-3)
    index.compact()
    assert not index.refresh()
    assert {document.id for document in index.documents()} == set(index) == {f"d{i}" for i in range(N)} | {"e0", "e2", "f"}
    with index as same:
        assert same is index


def test_a_snapshot_needs_a_folder(index: Index, tmp_path: Path) -> None:
    if index.path is None:
        with pytest.raises(OptionError, match="in memory and has no folder"):
            index.snapshot(tmp_path / "copy")
    else:
        index.snapshot(tmp_path / "copy")
        assert len(open_index(tmp_path / "copy")) == N


def test_paging_and_least_scores(index: Index) -> None:
    query = vectors(1, seed=2)
    whole = index.search(query, k=20, width="full")
    pages = [index.search(query, k=5, offset=offset, width="full").ids[0] for offset in (0, 5, 10, 15)]
    assert [name for page in pages for name in page] == whole.ids[0]
    least = float(whole.scores[0, 7])
    assert index.search(query, k=20, min_score=least, width="full").ids[0] == whole.ids[0][:8]
    assert index.search(query, k=20, min_score=2.0).ids == [[]]


@settings(max_examples=25, deadline=None)
@given(
    k=st.integers(1, 30), shortlist=st.integers(1, 120), seed=st.integers(0, 1_000), where=st.sampled_from([None, "even = true"]),
    options=st.sampled_from([{}, {"quality": 0.9}, {"budget": 40}, {"policy": "router"}, {"policy": "router", "budget": 70},
                             {"policy": "certify"}, {"width": 64}, {"width": "full"}]),
)  # fmt: skip
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_pages_are_parts_of_one_list(
    paged: dict[str, Index], place: str, k: int, shortlist: int, seed: int, where: str | None, options: dict[str, Any]
) -> None:
    """Page after page, every candidate of the shortlist comes once; what lies beyond it is refused, not left out silently."""
    index, query, size = paged[place], vectors(1, seed=seed), max(k, shortlist)
    pages = [index.search(query, k, offset=o, shortlist=shortlist, where=where, **options).ids[0] for o in range(0, size - k + 1, k)]
    names = [name for page in pages for name in page]
    assert len(set(names)) == len(names) == len(pages) * k
    policy = index.model.policies.choose(**{**options, "width": D if options.get("width") == "full" else options.get("width")}, k=k,
                                         offset=len(names) - k, coded=index.store.view.start)  # fmt: skip
    view = index.store.view if where is None else index.store.where(where)
    if policy.name != "certify":  # whose pages are proved one by one, each with its own scores
        whole = view.answer(Rotated(query, index.model.rotation), policy, len(names), shortlist)
        assert whole.ids == [names]
    else:
        assert names == index.search(query, len(names), shortlist=shortlist, where=where, policy="certify").ids[0]
    with pytest.raises(OptionError, match=f"beyond the {size} candidates.*shortlist={size + 1}"):
        index.search(query, k, offset=size - k + 1, shortlist=shortlist, where=where, **options)


def test_pages_go_on_to_the_last_document_where_the_shortlist_holds_all(index: Index) -> None:
    pages = [index.search(vectors(1, seed=2), 30, offset=offset).ids[0] for offset in range(0, N + 60, 30)]
    assert [len(page) for page in pages] == [30] * 13 + [10, 0, 0]
    assert len({name for page in pages for name in page}) == N


def test_k_beyond_the_documents_gives_all_there_are(index: Index) -> None:
    assert len(index.search(vectors(1), k=10_000)[0]) == N
    index.remove(list(index))
    assert len(index) == 0
    assert [list(answer) for answer in index.search(vectors(2), k=3)] == [[], []]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0}, {"k": -1}, {"k": 2.5}, {"width": 0}, {"width": -5}, {"width": 3.5}, {"width": D + 1}, {"start": 0}, {"start": -3},
        {"shortlist": 0}, {"shortlist": -3}, {"offset": -1}, {"threads": 0}, {"budget": 0}, {"quality": 0}, {"quality": 1.5},
        {"policy": "none"}, {"budget": 64, "width": 64}, {"task": "nope"},
        {"width": [64]}, {"width": np.array([64, 64])}, {"width": 64.0}, {"width": True}, {"width": "64"}, {"start": [32]}, {"start": "32"},
        {"budget": [80]}, {"budget": "80"}, {"budget": float("nan")}, {"quality": {}}, {"quality": "high"}, {"policy": ["taper"]},
        {"policy": 3}, {"task": ["a"]}, {"k": [3]}, {"k": True}, {"offset": [3]}, {"offset": True}, {"offset": 1.5}, {"min_score": "high"},
        {"min_score": [0.5]}, {"shortlist": None}, {"where": 7}, {"text": 7}, {"text": [7]},
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(index: Index, options: dict[str, Any]) -> None:
    index.search(vectors(1), width=64)  # what was answered before makes no difference
    with pytest.raises(OptionError, match=next(iter(options))):
        index.search(None if "text" in options else vectors(1), **options)


def test_numbers_of_numpy_are_numbers(index: Index) -> None:
    options: dict[str, Any] = {"k": np.int64(4), "width": np.int32(64), "start": np.int64(32), "offset": np.int8(1)}
    found = index.search(vectors(2), **options, min_score=np.float32(-1))  # type: ignore[arg-type]
    assert found.ids == index.search(vectors(2), k=4, width=64, start=32, offset=1).ids


@pytest.mark.parametrize(("value", "what"), [(0.0, "only zeros"), (1e-15, "a length below 1e-12"), (np.nan, "NaN or infinite values")])
def test_queries_without_a_direction_are_refused_by_their_row(index: Index, value: float, what: str) -> None:
    queries = vectors(3)
    queries[1] = value
    with pytest.raises(DataError, match=f"queries: row 1 has {what}"):
        index.search(queries)


@pytest.mark.parametrize("storage", ["flat", "int8", "pq4", "ivf", "graph"])
@pytest.mark.parametrize(
    "options",
    [{}, {"width": 16}, {"width": 64}, {"width": "full"}, {"budget": 80}, {"policy": "router"}, {"policy": "certify"}, {"start": 64}],
)
def test_no_search_reads_all_rows(storage: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """Candidates come from the codes, whatever the policy and wherever it starts."""
    model = AdaWidth.fit(vectors(3_000), vectors(60, seed=1), recipe="pca")
    index = model.index(vectors(3_000), tmp_path / "i", storage=storage)
    hits = index.search(vectors(4, seed=3), shortlist=100, **options)
    assert hits.read is not None
    scan = index.store.view.bytes_read(1, np.zeros(1, np.int64))[0]  # type: ignore[attr-defined]
    assert (hits.read.candidates <= 116).all()
    assert (hits.read.bytes <= scan + 2 * 116 * D).all()


@pytest.mark.parametrize("storage", ["flat", "pq4", "ivf", "graph"])
def test_threads_share_the_scan_for_a_single_query(storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AdaWidth.fit(vectors(3_000), vectors(60, seed=1), recipe="pca")
    index = model.index(Vectors.of(vectors(3_000), [str(i) for i in range(3_000)]), tmp_path / "i", storage=storage)
    index.remove([str(i) for i in range(0, 3_000, 3)])
    index.add(vectors(200, seed=4), [f"new {i}" for i in range(200)])
    queries = vectors(20, seed=3)
    alone = [index.search(query, shortlist=300) for query in queries]
    monkeypatch.setattr("adawidth.index.view.SHARED", 30_000)
    monkeypatch.setattr("adawidth.index.view.cpus", lambda: 3)
    parts = []
    monkeypatch.setattr("adawidth.index.view.pool", lambda threads: parts.append(threads) or pool(threads))
    for query, expected in zip(queries, alone, strict=True):
        found = index.search(query, shortlist=300, threads=10**6)
        assert found.ids == expected.ids
        np.testing.assert_array_equal(found.scores, expected.scores)
    assert set(parts) == {2 if storage in ("flat", "graph") else 4}  # the small segment is scanned by one


def test_queries_are_rotated_as_far_as_they_are_read(index: Index) -> None:
    read = index.search(vectors(2, seed=3), width=64).read
    assert read is not None
    assert (read.rotated == (D if index.path is None else 64)).all()


def test_plain_things_are_accepted(model: AdaWidth, index: Index) -> None:
    torch = pytest.importorskip("torch")
    expected = index.search(vectors(3, seed=2)).ids
    for queries in (vectors(3, seed=2).tolist(), torch.tensor(vectors(3, seed=2)), vectors(3, seed=2).astype(np.float64)):
        assert index.search(queries).ids == expected
    assert index.search(vectors(3, seed=2)[0].tolist()).ids == expected[:1]
    with pytest.raises(DataError, match="one vector of numbers per row"):
        index.search([[1.0, 2.0], [1.0]])


def test_columns_of_data_frames_are_accepted(index: Index) -> None:
    expected = index.search(vectors(3, seed=2)).ids
    for package in ("pandas", "polars"):
        frames = pytest.importorskip(package)
        assert index.search(frames.DataFrame({"v": list(vectors(3, seed=2))})["v"]).ids == expected


def test_labels_in_any_plain_form() -> None:
    documents, queries = vectors(60), vectors(20, seed=1)
    grades = {q: {q: 1.0, q + 20: 1.0} for q in range(20)}
    triples = [(q, d, g) for q, known in grades.items() for d, g in known.items()]
    forms: list[Any] = [grades, {q: list(known) for q, known in grades.items()}, triples, [(q, d) for q, d, _ in triples]]
    fitted = [AdaWidth.fit(documents, queries, form, recipe="kyfan").rotation.fingerprint for form in forms]
    assert len(set(fitted)) == 1
    with pytest.raises(DataError, match="qrels: expected"):
        AdaWidth.fit(documents, queries, 7, recipe="kyfan")


def test_rotated_for_another_index(model: AdaWidth) -> None:
    faiss = pytest.importorskip("faiss")
    documents, queries = vectors(N), vectors(5, seed=2)
    short = model.rotate(documents, width=64)
    assert short.shape == (N, 64)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-5)
    other = faiss.IndexFlatIP(64)
    other.add(short)
    expected = model.index(documents).search(queries, k=5, width=64, start=64).rows
    np.testing.assert_array_equal(other.search(model.rotate_queries(queries, width=64), 5)[1], expected)
    np.testing.assert_allclose(model.rotate(documents) @ model.rotate_queries(queries).T, documents @ queries.T, atol=1e-5)


def test_pickled_and_shared_by_threads(index: Index) -> None:
    queries = vectors(64, seed=4)
    expected = index.search(queries).ids
    again = pickle.loads(pickle.dumps(index))
    assert again.search(queries).ids == expected
    assert (
        pickle.loads(pickle.dumps(index.model)).index(vectors(N)).search(queries).ids == index.model.index(vectors(N)).search(queries).ids
    )
    with ThreadPoolExecutor(16) as pool:
        assert all(found == expected for found in pool.map(lambda _: index.search(queries).ids, range(32)))
    assert index.search(queries, threads=3).ids == expected


def test_another_model_of_the_same_rotation(index: Index, model: AdaWidth) -> None:
    assert index.with_model(model).search(vectors(2)).ids == index.search(vectors(2)).ids
    with pytest.raises(Exception, match="under the rotation"):
        index.with_model(AdaWidth.fit(vectors(50, seed=9), recipe="pca"))


def test_short_reprs(index: Index, model: AdaWidth) -> None:
    for thing in (index, model, model.rotation, Hit("a", 0.5)):
        assert len(repr(thing)) < 250, type(thing)
    assert "<pre>" in model._repr_html_()


def test_keep_shrinks_an_index(model: AdaWidth, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = model.index(vectors(N), tmp_path / "i", keep=64)
    assert index.width == 64
    assert "answers are those of 64" in caplog.text
    assert index.search(vectors(2), width="full").mean_width == 64
    assert index.search(vectors(2)).mean_width <= 64
    with pytest.raises(OptionError, match="keep 97 is not a whole number between 1 and the encoder width 96"):
        model.index(vectors(N), tmp_path / "j", keep=97)


@pytest.mark.parametrize("options", [{"keep": 32}, {"storage": "pq4"}])
def test_what_only_a_folder_can_do_is_refused_in_memory(model: AdaWidth, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="give a path as well"):
        model.index(vectors(N), **options)


@pytest.mark.parametrize("width", [1, 2, 8, 31])
def test_any_width_will_do(width: int, tmp_path: Path) -> None:
    rows = unit(np.random.default_rng(0).standard_normal((50, width)).astype(np.float32))
    model = AdaWidth.fit(rows, recipe="pca")
    for index in (model.index(rows), model.index(rows, tmp_path / "i")):
        hits = index.search(rows[:5], k=3)
        assert hits.mean_width == width
        np.testing.assert_allclose(hits.scores[:, 0], 1, atol=1e-3)


def test_an_index_that_has_outgrown_its_model_says_so_and_can_be_calibrated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    few, many, queries = vectors(150), vectors(3_000, seed=7), vectors(200, seed=8)
    model = AdaWidth.fit(few, queries[:60], recipe="pca")
    index = model.index(few, tmp_path / "i")
    assert "fitted on" not in caplog.text
    index.add(many)
    assert "the model was fitted on 150 documents, the index has 3150" in caplog.text
    caplog.clear()
    again = index.calibrate(queries[60:120])
    assert again.model.record.documents == 3_150
    again.model.save(tmp_path / "m")
    opened = open_index(tmp_path / "i", AdaWidth.load(tmp_path / "m"))
    assert "fitted on" not in caplog.text
    exact = opened.search(queries[120:], width="full").rows
    same = [
        np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, one.search(queries[120:]).rows, strict=True)]) for one in (opened, index)
    ]
    assert same[0] > 0.97
    assert same[0] >= same[1] - 0.01


def test_another_encoders_vectors_are_refused(index: Index) -> None:
    others = unit(np.random.default_rng(3).standard_normal((50, D)).astype(np.float32))
    with pytest.raises(DataError, match="these are another encoder's vectors"):
        index.add(others, [f"x{i}" for i in range(50)])
    with pytest.raises(DataError, match="these are another encoder's vectors"):
        index.update(others, [f"d{i}" for i in range(50)])
    with pytest.raises(DataError, match="these are another encoder's vectors"):
        index.write(of_vectors(Vectors.of(others, [f"x{i}" for i in range(50)])))
    index.add(vectors(50, seed=11), [f"y{i}" for i in range(50)])
    assert len(index) == N + 50


def test_an_update_that_outgrows_the_model_says_so(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    index.update(vectors(2 * N, seed=12), [f"d{i}" for i in range(N, 3 * N)])
    assert f"the model was fitted on {N} documents, the index has {3 * N}" in caplog.text


def test_a_number_names_a_document_as_a_string_too(model: AdaWidth, tmp_path: Path) -> None:
    for index in (model.index(vectors(9)), model.index(vectors(9), tmp_path / "i")):
        assert (3 in index, "3" in index, 9 in index, None in index) == (True, True, False, False)
        assert index.get("3").id == index.get(3).id == 3
        assert index.remove("3") == 1
        assert list(index) == [0, 1, 2, 4, 5, 6, 7, 8]
        index.add(vectors(1, seed=3))
        assert 9 in index


def test_numbering_goes_on_above_the_highest_number(model: AdaWidth, tmp_path: Path) -> None:
    for index in (model.index(vectors(5)), model.index(vectors(5), tmp_path / "i")):
        index.add(vectors(2, seed=3), [6, 40])
        index.add(vectors(2, seed=4))
        assert list(index) == [0, 1, 2, 3, 4, 6, 40, 41, 42]
        index.remove([41, 42])
        index.add(vectors(1, seed=5), ["7"])
        assert index.add(vectors(1, seed=6)).documents == 9
        assert len(set(index)) == 9
        with pytest.raises(DataError, match=f"id {2**63}, but numbers go up to"):
            index.add(vectors(1, seed=7), [2**63])
        if index.path is not None:  # numbers are given inside the commit, whatever others have written since this one was opened
            other = open_index(index.path)
            index.add(vectors(1, seed=8))
            other.add(vectors(1, seed=9))
            assert len(set(other)) == 11


def test_documents_from_files_are_named_as_the_others_are(model: AdaWidth, tmp_path: Path) -> None:
    for index in (model.index(vectors(5)), model.index(vectors(5), tmp_path / "i")):
        index.write(of_vectors(Vectors.of(vectors(2, seed=3), ["7", "8"])))
        assert list(index)[-2:] == [7, 8]
        with pytest.raises(DataError, match="id 'x', but the documents of this index are numbered"):
            index.write(of_vectors(Vectors.of(vectors(1, seed=4), ["x"])))
