"""IndexFolder: what is added is found, with everything that is known of it; what is removed is not; commits are whole."""

import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from adawidth.data import Vectors
from adawidth.errors import ArtifactError, DataError, OptionError
from adawidth.formats import Document
from adawidth.formats.documents import joined, of_vectors
from adawidth.index import IndexFolder, View
from adawidth.policies import Fixed
from adawidth.rotation import QueryMap, Rotated, Rotation
from adawidth.stages import Decision, MemoryBackend
from adawidth.stages.loop import by_stages
from small_index import DOCUMENTS, ROTATION, empty, fill, kept, known, vectors

QUERIES = ROTATION.apply(vectors(20, seed=9))


def brute(view: View, queries: np.ndarray, width: int, k: int, allowed: np.ndarray | None = None) -> list[list[str]]:
    """Ids by the definition of a prefix score, over the documents that can be found."""
    rows = np.flatnonzero(view.alive if allowed is None else view.alive & allowed)
    d = view.vectors(rows)[:, :width].astype(np.float64)
    q = queries[:, :width].astype(np.float64)
    scores = (q @ d.T) / np.linalg.norm(d, axis=1) / np.linalg.norm(q, axis=1)[:, None]
    return [[str(view.documents.ids[rows[i]]) for i in np.argsort(-row)[:k]] for row in scores]


def rotated(queries: np.ndarray) -> Rotated:
    """Queries that are what they are rotated to."""
    return Rotated(queries, QueryMap.identity(Rotation.identity(queries.shape[1])))


def ids(view: View, rows: np.ndarray) -> list[list[str]]:
    return [[str(view.documents.ids[row]) for row in found if row >= 0] for found in rows]


def test_what_was_added_comes_back(filled: Path) -> None:
    index = IndexFolder(filled)
    assert len(index) == DOCUMENTS
    np.testing.assert_array_equal(index.vectors(["d7", "d299"]), kept(vectors())[[7, 299]])
    assert index.documents(["d7"]) == [Document("d7", "title 7", "text of 7, ünïcode", known(7))]
    assert index.settings.storage == "auto"
    assert index.facts()["segments"][0]["storage"] == "flat"


@pytest.mark.parametrize("width", [16, 32, 40, 64])
def test_search_is_brute_force_with_several_segments_and_removals(filled: Path, width: int) -> None:
    index = IndexFolder(filled)
    index.add(vectors(40, seed=5), [f"e{i}" for i in range(40)])
    index.add(vectors(3, seed=6), ["f0", "f1", "f2"])
    index.remove([f"d{i}" for i in range(0, 300, 3)])
    index.update(vectors(2, seed=7), ["d1", "new"])
    assert [len(segment) for segment in index.view.segments] == [300, 40, 3, 2]
    found = index.view.scan(QUERIES, width, 15)
    assert ids(index.view, found.candidates) == brute(index.view, QUERIES, width, 15)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    index.compact()
    assert len(index.view.segments) == 1
    assert ids(index.view, index.view.scan(QUERIES, width, 15).candidates) == brute(index.view, QUERIES, width, 15)


def test_the_verbs_are_those_of_the_memory_index(filled: Path) -> None:
    """Same rows, float16 against float32: the same stages within rounding, and the same bookkeeping."""
    view = IndexFolder(filled).view
    memory = MemoryBackend(Vectors.of(vectors(), [f"d{i}" for i in range(DOCUMENTS)]), ROTATION)
    first, expected = (index.search(QUERIES, 32, 30) for index in (view, memory))
    assert np.mean(first.candidates == expected.candidates) > 0.95
    candidates = expected.candidates
    keep = np.arange(30)[None] < np.arange(1, 21)[:, None]
    widths = np.where(np.arange(20) % 2, 64, 48)
    stages = [index.rescore(index.open(QUERIES, candidates, 32), Decision(keep, widths)) for index in (view, memory)]
    np.testing.assert_allclose(stages[0].scores, stages[1].scores, atol=2e-3)
    np.testing.assert_array_equal(stages[0].coordinates, stages[1].coordinates)
    np.testing.assert_array_equal(stages[0].last, stages[1].last)
    for name in ("norms", "block_norms"):
        for arguments in ((40,), (64,)) if name == "norms" else ((0, 32), (32, 50)):
            np.testing.assert_allclose(getattr(view, name)(*arguments), getattr(memory, name)(*arguments), atol=2e-3)
    np.testing.assert_allclose(view.block_norms(32, 64, centred=True), memory.block_norms(32, 64, centred=True), atol=2e-3)
    np.testing.assert_allclose(view.centre, memory.centre, atol=1e-3)


def test_the_centre_is_of_what_is_there(filled: Path) -> None:
    index = IndexFolder(filled)
    index.remove([f"d{i}" for i in range(100)])
    np.testing.assert_allclose(index.view.centre, kept(vectors())[100:].mean(axis=0), atol=1e-6)


def test_compiled_answers_are_those_of_the_stage_loop(filled: Path) -> None:
    index = IndexFolder(filled)
    index.add(vectors(30, seed=5), [f"e{i}" for i in range(30)])
    for view in (index.view, index.view.where("lang = 'de'")):
        for policy in (Fixed(64, 32), Fixed(48, 32), Fixed(32, 32)):
            fast, slow = view.answer(rotated(QUERIES), policy, 10, 50), by_stages(view, QUERIES, policy, 10, shortlist=50)
            assert fast is not None
            np.testing.assert_array_equal(fast.rows, slow.rows)
            np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-6)
            np.testing.assert_array_equal(fast.widths, slow.widths)


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        ("lang = 'en' AND year >= 2020", lambda m: m["lang"] == "en" and m["year"] >= 2020),
        ("open = true AND NOT in.part IN (1, 2)", lambda m: m["open"] and m["in"]["part"] not in (1, 2)),
        ("score < 0", lambda m: False),
    ],
)
def test_a_filter_is_the_filtered_brute_force(filled: Path, text: str, meets: object) -> None:
    index = IndexFolder(filled)
    index.remove(["d20", "d21", "d22"])
    allowed = np.array([meets(known(row)) for row in range(DOCUMENTS)])  # type: ignore[operator]
    for width in (32, 64):
        found = index.view.where(text).scan(QUERIES, width, 25)
        assert ids(index.view, found.candidates) == brute(index.view, QUERIES, width, 25, allowed)
        assert (found.coordinates == width * min(25, int((allowed & index.view.alive).sum()))).all()


def test_ids_twice_and_unknown_ones_change_nothing(filled: Path) -> None:
    index = IndexFolder(filled)
    before = index.facts()
    with pytest.raises(DataError, match="id 'd5' is in the index already: use update"):
        index.add(vectors(3, seed=1), ["x", "d5", "y"])
    with pytest.raises(DataError, match="there is no document 'gone'; 1 of 2 ids are not in the index"):
        index.remove(["d5", "gone"])
    with pytest.raises(DataError, match="are 40 wide, the index 64"):
        index.add(np.ones((2, 40), np.float32), ["x", "y"])
    with pytest.raises(DataError, match=r"document 'x': .*must be plain text and JSON"):
        index.add(vectors(1), ["x"], metadata=[{"a": {1, 2}}])
    with pytest.raises(DataError, match=r"document 'x': .*must be plain text and JSON"):
        index.add(vectors(1), ["x"], metadata=[{"a": float("nan")}])
    with pytest.raises(DataError, match="empty id"):
        index.add(vectors(1), [""], titles=["untitled"])
    with pytest.raises(DataError, match="2 vectors but 1 texts"):
        index.add(vectors(2), ["x", "y"], texts=["one"])
    assert index.facts() == before
    assert len([name for name in os.listdir(filled) if name.endswith(".segment")]) == 1


def test_update_replaces_and_adds(filled: Path) -> None:
    index = IndexFolder(filled)
    written = index.update(vectors(3, seed=4), ["d8", "new", "d9"], titles=["a", "b", "c"])
    assert (written.added, written.replaced) == (1, 2)
    assert len(index) == DOCUMENTS + 1
    np.testing.assert_array_equal(index.vectors(["d8", "new", "d9"]), kept(vectors(3, seed=4)))
    assert [document.title for document in index.documents(["d8", "new", "d9", "d10"])] == ["a", "b", "c", "title 10"]
    with pytest.raises(DataError, match="id 'd8' stands twice"):
        index.write(of_vectors(Vectors(vectors(2), ["d8", "d8"])), update=True)
    for verb in (False, True):  # and in two batches
        with pytest.raises(DataError, match="id 'y' stands twice"):
            index.write(joined([of_vectors(Vectors(vectors(3), list(names))) for names in ("xyz", "uvy")]), update=verb)
    assert len(index) == DOCUMENTS + 1


@pytest.mark.parametrize(("first", "second"), [(3, 70), (70, 3), (3, 4), (64, 128), (127, 199)])
def test_an_id_that_stands_twice_is_named_wherever_it_does(filled: Path, first: int, second: int) -> None:
    """One statement inserts several documents."""
    index, names = IndexFolder(filled), [f"new{i}" for i in range(200)]
    names[second] = names[first]
    for update in (False, True):
        with pytest.raises(DataError, match=f"id 'new{first}' stands twice"):
            index.write(of_vectors(Vectors(vectors(200), names)), update=update)
    names[second] = "d3"
    with pytest.raises(DataError, match="id 'd3' is in the index already"):
        index.write(of_vectors(Vectors(vectors(200), names)))
    assert len(index) == DOCUMENTS
    index.write(of_vectors(Vectors(vectors(200), names)), update=True)
    assert [document.id for document in index.documents(names)] == names


def test_small_additions_do_not_pile_up(tmp_path: Path) -> None:
    index = empty(tmp_path / "i")
    for i in range(40):
        index.add(vectors(1, seed=i), [f"n{i}"])
        if i % 5 == 4:
            index.remove([f"n{i - 3}"])
    assert len(index.view.segments) <= 6
    assert len(index) == 32
    for i in range(40):
        if i % 5 != 1:
            np.testing.assert_allclose(index.vectors([f"n{i}"]), kept(vectors(1, seed=i)), atol=1e-6)
    assert sorted(name for row in ids(index.view, index.view.search(QUERIES[:1], 32, 40).candidates) for name in row) == sorted(
        f"n{i}" for i in range(40) if i % 5 != 1
    )


def test_removing_everything_leaves_an_index_that_can_be_filled_again(filled: Path) -> None:
    index = IndexFolder(filled)
    index.remove(f"d{i}" for i in range(DOCUMENTS))
    assert index.compact()
    assert not index.compact()
    assert (len(index), index.facts()["segments"]) == (0, [])
    assert by_stages(index.view, QUERIES, Fixed(64, 32), 1).rows.shape == (len(QUERIES), 0)
    fill(index)
    assert len(IndexFolder(filled)) == DOCUMENTS


def test_keep_cuts_and_wider_is_refused(tmp_path: Path) -> None:
    index = empty(tmp_path / "i", keep=48)
    fill(index)
    np.testing.assert_array_equal(index.vectors(["d3"]), kept(vectors(), 48)[[3]])
    assert index.view.width == 48
    with pytest.raises(OptionError, match="width 64 is asked for, but the index keeps 48 coordinates"):
        index.view.search(QUERIES, 64, 10)
    with pytest.raises(OptionError, match="the index keeps 48"):
        by_stages(index.view, QUERIES, Fixed(64, 32), 10)
    for keep in (16, 65):
        with pytest.raises(OptionError, match=f"keep {keep} is not between the start width 32 and the encoder width 64"):
            empty(tmp_path / f"{keep}", keep=keep)


@pytest.mark.parametrize(
    ("options", "coded"), [({}, 32), ({"target": 32}, 32), ({"target": 31}, 16), ({"keep": 32}, 32), ({"keep": 31}, 16)]
)
def test_codes_reach_further_where_searches_do(tmp_path: Path, options: dict[str, int], coded: int) -> None:
    index = empty(tmp_path / "i", start=16, storage="pq4", **options)
    fill(index)
    assert index.facts()["coded"] == coded
    assert {(segment.codes.width, segment.codes.bytes_per_document) for segment in index.view.segments} == {(coded, 8)}
    hits = by_stages(index.view, QUERIES, Fixed(index.view.width, 16), 3, shortlist=150)  # half of the documents
    wanted = brute(index.view, QUERIES, index.view.width, 3)
    found = sum(len({*best} & {*row}) for best, row in zip(wanted, ids(index.view, hits.rows), strict=True))
    assert found >= 0.9 * 3 * len(QUERIES)


def test_auto_says_what_it_picked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "adawidth"):
        fill(empty(tmp_path / "i"))
    assert "storage flat for 300 documents: flat (exact) up to" in caplog.text
    with pytest.raises(OptionError, match="there is no storage 'hnsw'; there are auto, flat, int8, pq4, ivf"):
        empty(tmp_path / "j", storage="hnsw")


def test_a_reader_keeps_its_commit_until_it_refreshes(filled: Path) -> None:
    reader, writer = IndexFolder(filled), IndexFolder(filled)
    before = ids(reader.view, reader.view.search(QUERIES, 32, 20).candidates)
    view = reader.view
    writer.update(vectors(), [f"d{i}" for i in range(DOCUMENTS)], titles=["other"] * DOCUMENTS)
    writer.remove(["d0"])
    writer.compact()
    assert ids(view, view.search(QUERIES, 32, 20).candidates) == before
    assert reader.documents(["d0"])[0].title == "title 0"
    assert len(reader.view.where("year >= 2020").search(QUERIES, 32, 10).candidates) == 20
    assert reader.refresh()
    assert not reader.refresh()
    assert len(reader) == DOCUMENTS - 1
    assert reader.documents(["d1"])[0].title == "other"
    assert view.documents.describe(np.array([0]))[0].title == "title 0"


def test_answers_are_described_as_of_their_commit(filled: Path) -> None:
    index = IndexFolder(filled)
    hits = index.view.answer(rotated(QUERIES), Fixed(64, 32), 3, 50)
    assert hits is not None
    index.remove(f"d{i}" for i in range(DOCUMENTS))
    index.compact()
    for answer, ids_found in zip(hits, hits.ids, strict=True):
        assert [(hit.id, hit.title) for hit in answer] == [(name, f"title {str(name)[1:]}") for name in ids_found]


@pytest.mark.parametrize("sizes", [(300,), (300, 5), (300, 5, 2), (300, 120, 30), (5,)])
def test_equal_scores_are_ordered_by_id_across_segments(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    index, rng = empty(tmp_path / "i"), np.random.default_rng(0)
    names = [str(name) for name in rng.permutation(1_000)[: sum(sizes)]]
    for size in sizes:
        index.add(np.tile(vectors(1), (size, 1)), names[-size:])
        del names[-size:]
    assert [len(segment) for segment in index.view.segments] == list(sizes)
    documents = index.view.documents
    expected = sorted(documents.ids, reverse=True)
    assert [documents.ids[row] for row in np.argsort(documents.tie_rank)] == expected
    assert len(np.unique(documents.tie_rank)) == sum(sizes)
    found = index.view.search(QUERIES[:1], 32, sum(sizes))
    assert ids(index.view, found.candidates) == [expected]
    fast = index.view.answer(rotated(QUERIES[:1]), Fixed(64, 32), 4, sum(sizes))
    assert fast is not None
    assert fast.ids == [expected[:4]]


def test_one_writer_at_a_time(filled: Path) -> None:
    from adawidth.index.store.commit import change

    index = IndexFolder(filled)
    with change(filled), pytest.raises(ArtifactError, match=rf"filled.index: process {os.getpid()} is writing to it: wait"):
        index.remove(["d0"])
    index.remove(["d0"])


def test_what_a_dead_writer_left_is_swept(filled: Path) -> None:
    orphan = filled / f"{'0' * 32}.segment"
    orphan.write_bytes(b"half a segment")
    other = filled / "notes.txt"
    other.write_text("mine")
    index = IndexFolder(filled)
    assert orphan.exists()
    index.remove(["d0"])
    assert not orphan.exists()
    assert other.exists()


def test_the_log_does_not_grow_with_the_commits(filled: Path) -> None:
    index = IndexFolder(filled)
    sizes = []
    for i in range(30):
        index.update(vectors(20, seed=i), [f"d{j}" for j in range(20)])
        sizes.append((filled / "manifest.sqlite-wal").stat().st_size)
    assert max(sizes[15:]) <= 2 * max(sizes[:15])
    index.close()
    assert not (filled / "manifest.sqlite-wal").exists()


def test_a_snapshot_is_a_whole_index_of_the_commit_seen(filled: Path, tmp_path: Path) -> None:
    reader, writer = IndexFolder(filled), IndexFolder(filled)
    writer.remove([f"d{i}" for i in range(200)])
    writer.compact()
    reader.snapshot(tmp_path / "copy.index")
    copy = IndexFolder(tmp_path / "copy.index")
    assert len(copy) == DOCUMENTS
    assert copy.documents(["d1"]) == reader.documents(["d1"])
    np.testing.assert_array_equal(copy.vectors(["d1"]), kept(vectors())[[1]])
    copy.add(vectors(1), ["new"])
    with pytest.raises(OptionError, match="exists: choose another"):
        reader.snapshot(tmp_path / "copy.index")
    writer.snapshot(tmp_path / "copy.index", force=True)
    assert len(IndexFolder(tmp_path / "copy.index")) == 100


def test_eight_readers_while_a_writer_commits(filled: Path) -> None:
    """Every answer is one of a commit: with the same documents as that commit's, never a mixture or a document twice."""
    stop, problems, searches = threading.Event(), [], [0] * 8

    def read(place: int) -> None:
        try:
            index = IndexFolder(filled)
            while not stop.is_set() or searches[place] < 3:
                index.refresh()
                view = index.view
                found = ids(view, view.search(QUERIES[:4], 32, 400).candidates)
                generations = {name.split("-")[1] for row in found for name in row if "-" in name}
                assert len(generations) <= 1, generations
                assert all(len(set(row)) == len(row) == len(view) for row in found)
                assert all("-" not in d.id or d.title == d.id for d in view.documents.describe(np.flatnonzero(view.alive)[-30:]))
                searches[place] += 1
        except BaseException as error:
            problems.append(error)

    readers = [threading.Thread(target=read, args=(place,)) for place in range(8)]
    for reader in readers:
        reader.start()
    writer = IndexFolder(filled)
    names: list[str] = []
    for generation in range(12):
        new = [f"g{i}-{generation}" for i in range(30)]
        if names:  # one commit takes the old generation away, the next brings the new one
            writer.remove(names)
        writer.add(vectors(30, seed=generation), new, titles=new)
        names = new
        if generation % 4 == 3:
            writer.compact()
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert min(searches) >= 3


def test_a_folder_that_can_not_be_written_to_is_searched(filled: Path) -> None:
    """A process without the right to write there opens it, and is told that it can't add."""
    place = Path(tempfile.mkdtemp())
    folder = Path(shutil.copytree(filled, place / "shared.index"))
    with IndexFolder(folder) as index:  # everything is loaded now that the child needs
        index.view.search(QUERIES, 32, 5)
    for path in (place, folder, folder / "model"):
        path.chmod(0o555)
    process = os.fork()
    if not process:
        try:
            if os.getuid() == 0:
                os.setuid(65_534)
            index = IndexFolder(folder)
            assert index.view.search(QUERIES, 32, 5).candidates.shape == (20, 5)
            assert index.documents(["d1"])[0].title == "title 1"
            index.close()
            with pytest.raises(ArtifactError, match="can't be written to"):
                index.remove(["d1"])
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(process, 0)[1] == 0
    for path in (place, folder, folder / "model"):
        path.chmod(0o755)
    shutil.rmtree(place)


def test_documents_without_ids_are_numbered_on(tmp_path: Path) -> None:
    index = empty(tmp_path / "i", numbered=True)
    index.add(vectors(5))
    index.add(vectors(3, seed=1))
    assert [document.id for document in index.documents([3, 7])] == [3, 7]
    assert index.remove([0, 1]) == 2
    assert list(index.ids()) == [2, 3, 4, 5, 6, 7]
    index.add(vectors(1, seed=2))
    assert 8 in index
    with pytest.raises(DataError, match="id 'x', but the documents of this index are numbered"):
        index.add(vectors(1, seed=2), ["x"])
    named = empty(tmp_path / "j")
    with pytest.raises(DataError, match="the documents of this index have ids: give one per row"):
        named.add(vectors(5))
    named.add(vectors(2), [67, 6])
    assert list(named.ids()) == ["67", "6"]
    assert named.remove("67") == 1
    assert [document.id for document in named.documents(["6", "6"])] == ["6", "6"]
