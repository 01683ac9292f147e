"""A collection moves to another rotation while it answers and is written to; interrupted moves go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, Index
from adawidth.cli.app import app
from adawidth.data import Vectors
from adawidth.engines import Engine, Settings
from adawidth.engines import base as engine_base
from adawidth.errors import EngineError, OptionError
from adawidth.formats.documents import of_vectors
from adawidth.model import moving
from adawidth.model.collections import connect, current, layout_of, push
from adawidth.model.moving import cancel, move
from engine_places import START, Corpus, Place

pytestmark = pytest.mark.engines
FEW = slice(0, 120)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "SETTLED", 0.0)
    monkeypatch.setattr(engine_base, "LOOK", 0.01)


def moved(place: Place, model: AdaWidth, **options: bool) -> moving.Moved:
    assert place.url is not None
    return move(model, place.url, place.collection, layout=layout_of(model, widths=(START, 64)), **options)


def best(index: Index, corpus: Corpus, rows: slice) -> list[list[str]]:
    """The ten nearest at full width: the same under every rotation."""
    return [[str(hit.id) for hit in answer] for answer in index.search(corpus.documents[rows][:5], k=10, width="full")]


def written_in_between(monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]) -> None:
    """Runs `write` once, after the first pass over the documents."""
    once, whole = [write], moving._pass

    def passing(*given: object) -> int:
        changed = whole(*given)  # type: ignore[arg-type]
        if once:
            once.pop()()
        return changed

    monkeypatch.setattr(moving, "_pass", passing)


def test_a_moved_collection_answers_as_before(engine_place: Place, corpus: Corpus, other: AdaWidth) -> None:
    with engine_place.made(corpus, FEW) as held:
        before = best(held, corpus, FEW)
        found = moved(engine_place, other)
        assert (found.documents, found.copied, found.dropped) == (120, 120, ())
        assert best(held, corpus, FEW) == before  # who holds the old one searches it, rightly
        with pytest.raises(EngineError, match=r"has moved to another rotation.*connect again"):
            held.add(corpus.documents[200:201], ["late"])
        with pytest.raises(EngineError, match="has moved to another rotation"):
            held.remove(["doc-1"])
    with engine_place.again() as index:
        assert index.model.rotation.fingerprint == other.rotation.fingerprint
        assert best(index, corpus, FEW) == before
        kept = index.get("doc-7")
        assert (kept.title, kept.text, kept.metadata) == (corpus.titles[7], corpus.texts[7], corpus.metadata[7])
        index.add(corpus.documents[200:201], ["late"])
        assert len(index) == 121
    assert moved(engine_place, other, drop=True).dropped == (engine_place.collection,)
    with engine_place.again() as index:
        assert len(index) == 121
    back = moved(engine_place, corpus.model, drop=True)
    assert (back.documents, back.dropped) == (121, (engine_place.collection, f"{engine_place.collection}_2"))
    with engine_place.again() as index:
        assert index.model.rotation.fingerprint == corpus.model.rotation.fingerprint
        index.remove(["late"])
        assert best(index, corpus, FEW) == before


def test_what_is_written_meanwhile_is_not_lost(
    engine_place: Place, corpus: Corpus, other: AdaWidth, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = engine_place.made(corpus, FEW)

    def write() -> None:
        index.add(corpus.documents[300:303], ["new-0", "new-1", "new-2"])
        index.update(corpus.documents[400:401], ["doc-5"], titles=["changed"])
        index.remove(["doc-9"])

    written_in_between(monkeypatch, write)
    found = moved(engine_place, other)
    index.close()
    assert (found.documents, found.copied) == (122, 120 + 3 + 1 + 1)
    with engine_place.again() as there:
        assert "doc-9" not in there
        assert there.get("doc-5").title == "changed"
        hits = there.search(corpus.documents[[300, 301, 302, 400]], k=1, width="full")
        assert [answer[0].id for answer in hits] == ["new-0", "new-1", "new-2", "doc-5"]


def test_an_interrupted_move_goes_on(engine_place: Place, corpus: Corpus, other: AdaWidth, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_place.made(corpus, FEW) as index:
        before = best(index, corpus, FEW)
    monkeypatch.setattr(moving, "BATCH", 50)
    done, turned = [0], moving._turned

    def breaks(*given: object) -> list[object]:
        done[0] += 1
        if done[0] == 2:
            raise KeyboardInterrupt
        return list(turned(*given))  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_turned", breaks)
        with pytest.raises(KeyboardInterrupt):
            moved(engine_place, other)
    with engine_place.again() as index:
        assert best(index, corpus, FEW) == before
        assert index.model.rotation.fingerprint == corpus.model.rotation.fingerprint
        index.add(corpus.documents[200:201], ["late"])
        before = best(index, corpus, FEW)
    assert moved(engine_place, other).copied == 71  # 50 were there
    with engine_place.again() as index:
        assert best(index, corpus, FEW) == before
    assert moved(engine_place, other).copied == 0


def test_writes_wait_while_they_are_held_back(engine_place: Place, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_place.url is not None
    with engine_place.made(corpus, FEW) as index:
        engine: Engine = current(engine_place.url, engine_place.collection)
        layout = engine.settings().layout
        engine.settle(Settings(layout, held=True))
        looked = threading.Event()
        monkeypatch.setattr(engine_base.time, "sleep", lambda seconds: looked.set())
        waiting = threading.Thread(target=lambda: index.add(corpus.documents[200:201], ["waited"]))
        waiting.start()
        assert looked.wait(60)
        assert "waited" not in index
        cancel(engine_place.url, engine_place.collection)
        waiting.join(60)
        assert "waited" in index
        engine.settle(Settings(layout, held=True))
        monkeypatch.setattr(engine_base, "PATIENCE", 0.0)
        with pytest.raises(EngineError, match="writes are held back: try again later"):
            index.add(corpus.documents[201:202], ["refused"])
        assert "refused" not in index
        engine.close()


def test_what_can_not_be_moved(postgres: str, corpus: Corpus, other: AdaWidth) -> None:
    push(corpus.model, of_vectors(Vectors.of(corpus.documents[:20], corpus.ids[:20])), postgres, "cut", layout=layout_of(corpus.model, 64))
    with pytest.raises(OptionError, match="keeps 64 of 96 coordinates"):
        move(other, postgres, "cut")
    push(corpus.model, of_vectors(Vectors.of(corpus.documents[:20], corpus.ids[:20])), postgres, "narrow")
    with pytest.raises(OptionError, match="has 96 coordinates, the model is for 64"):
        move(AdaWidth.fit(np.ascontiguousarray(corpus.documents[:50, :64]), recipe="pca"), postgres, "narrow")


def test_the_command(postgres: str, corpus: Corpus, other: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> None:
    push(corpus.model, of_vectors(Vectors.of(corpus.documents[:30], corpus.ids[:30])), postgres, "ordered")
    folder = tmp_path_factory.mktemp("other") / "model"
    other.save(folder)
    run = CliRunner()
    said = run.invoke(app, ["move", str(folder), "--engine", postgres, "--collection", "ordered", "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout) == {"collection": "ordered_2", "documents": 30, "copied": 30, "dropped": []}
    said = run.invoke(app, ["move", str(folder), "--engine", postgres, "--collection", "ordered", "--drop"])
    assert said.exit_code == 0, said.output
    assert "dropped: ordered" in said.stdout
    with connect(postgres, "ordered") as index:
        assert len(index) == 30
