"""What an index on disk says that it read: candidates, coordinates and bytes."""

import os
from pathlib import Path

import numpy as np
import pytest

from adawidth.index import IndexFolder
from adawidth.policies import Fixed, Policy
from adawidth.policies.taper import Calibration, Taper
from adawidth.rotation import QueryMap, Rotated, Rotation
from adawidth.stages.loop import by_stages
from small_index import DOCUMENTS, LADDER, ROTATION, WIDTH, empty, fill, known, vectors

QUERIES = ROTATION.apply(vectors(20, seed=9))


def asked() -> Rotated:
    """Queries that are what they are rotated to."""
    return Rotated(QUERIES, QueryMap.identity(Rotation.identity(WIDTH)))


def test_an_answer_tells_what_was_read(filled: Path) -> None:
    """By compiled code and by the stage loop: the scan's codes (flat, 4 bytes a number) and two bytes a coordinate of candidates."""
    view, policy = IndexFolder(filled).view, Fixed(48, 32)
    compiled, looped = view.answer(asked(), policy, 10, 50), by_stages(view, QUERIES, policy, 10, shortlist=50)
    for hits in (compiled, looped):
        assert hits is not None
        assert hits.read is not None
        assert (hits.read.candidates == 50).all()
        assert (hits.read.coordinates == 50 * 48).all()
        assert (hits.read.bytes == 4 * 32 * DOCUMENTS + 2 * 50 * 48).all()


@pytest.mark.parametrize("policy", [Fixed(48, 32), Taper(Calibration(LADDER[1:], np.ones(2), np.full(2, 0.3)), 1.0, 10)])
@pytest.mark.parametrize("storage", ["flat", "int8", "pq4", "ivf", "graph"])
def test_several_segments_give_one_shortlist_and_nothing_is_read_twice(tmp_path: Path, storage: str, policy: Policy) -> None:
    """With a filter, codes that reach beyond the start width give twice as many candidates."""
    index = empty(tmp_path / "i", storage=storage)
    fill(index)
    index.add(vectors(90, seed=5), [f"e{i}" for i in range(90)], metadata=[known(i) for i in range(90)])
    assert len(index.facts()["segments"]) == 2
    for view, count in ((index.view, 50), (index.view.where("lang = 'de'"), 50 if storage in ("flat", "int8") else 100)):
        read = view.answer(asked(), policy, 10, 50).read
        assert read is not None
        assert (read.candidates == count).all()
        assert (read.coordinates <= count * policy.reach).all()
        if isinstance(policy, Fixed):
            assert (read.coordinates == count * 48).all()


def test_a_file_that_goes_while_sizes_are_added_up_does_no_harm(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQLite's log does when another process closes the index."""
    index, log = IndexFolder(filled), filled / "gone"
    before, stat = index.facts()["bytes"], Path.stat
    log.write_bytes(b"12345")

    def late(path: Path, **options: bool) -> os.stat_result:
        if path == log:
            log.unlink()
        return stat(path, **options)

    monkeypatch.setattr(Path, "is_file", lambda path: os.path.isfile(path))
    monkeypatch.setattr(Path, "stat", late)
    assert index.facts()["bytes"] == before
    assert not log.exists()
