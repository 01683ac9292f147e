"""Random verbs over an index in memory and one on disk, against a plain dictionary: both always hold what the dictionary holds."""

import os
import pickle
import shutil
import signal
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adawidth import AdaWidth, Index, open_index
from adawidth.data import unit
from adawidth.errors import DataError, OptionError

D = 40
NAMES = [f"d{i}" for i in range(12)]
VERSIONS = unit(np.random.default_rng(0).standard_normal((12, 6, D)).astype(np.float32))  # of every document
MODEL = AdaWidth.fit(VERSIONS.reshape(-1, D), recipe="pca")
SOME = st.lists(st.sampled_from(range(len(NAMES))), min_size=1, max_size=5, unique=True)


def told(names: list[str], version: int) -> dict[str, list]:
    """What is known of documents at a version."""
    return {"texts": [f"{name} version{version}" for name in names], "metadata": [{"version": version} for _ in names]}


class Verbs(RuleBasedStateMachine):
    """`held` is what must be there: the version of each document. `worded`: whether the index on disk has words."""

    worded: bool

    @initialize(worded=st.booleans())
    def begin(self, worded: bool) -> None:
        self.worded = worded
        self.home = Path(tempfile.mkdtemp())
        self.held: dict[str, int] = {"first": 0}
        first = (VERSIONS[0, :1], ["first"])
        known = {"ids": first[1], "texts": ["first version0"], "metadata": [{"version": 0}]}
        self.memory = MODEL.index(first[0], **known)
        self.disk = MODEL.index(first[0], self.home / "i", hybrid=worded, **known)
        self.reader = open_index(self.home / "i")

    def teardown(self) -> None:
        for index in (self.disk, self.reader):
            index.close()
        shutil.rmtree(self.home)

    @property
    def both(self) -> tuple[Index, Index]:
        return self.memory, self.disk

    def written(self, verb: str, rows: list[int], version: int) -> None:
        names = [NAMES[row] for row in rows]
        for index in self.both:
            getattr(index, verb)(VERSIONS[rows, version], names, **told(names, version))
        self.held |= dict.fromkeys(names, version)

    @rule(rows=SOME, version=st.integers(0, 5))
    def add(self, rows: list[int], version: int) -> None:
        if any(NAMES[row] in self.held for row in rows):
            for index in self.both:
                with pytest.raises(DataError, match="already"):
                    index.add(VERSIONS[rows, version], [NAMES[row] for row in rows])
        else:
            self.written("add", rows, version)

    @rule(rows=SOME, version=st.integers(0, 5))
    def update(self, rows: list[int], version: int) -> None:
        self.written("update", rows, version)

    @rule(rows=SOME)
    def remove(self, rows: list[int]) -> None:
        names = [NAMES[row] for row in rows]
        for index in self.both:
            if all(name in self.held for name in names):
                index.remove(names)
            else:
                with pytest.raises(DataError, match="there is no document"):
                    index.remove(names)
        if all(name in self.held for name in names):
            for name in names:
                del self.held[name]

    @rule()
    def compact(self) -> None:
        for index in self.both:
            index.compact()

    @rule()
    def gain_words(self) -> None:
        """Of titles and texts that were added without."""
        for index in self.both:
            index.compact(hybrid=True)
        self.worded = True

    @rule()
    def restored(self) -> None:
        """A snapshot, with whatever it took, goes on in the index's place."""
        self.disk.snapshot(self.home / "copy")
        self.disk.close()
        self.reader.close()
        shutil.rmtree(self.home / "i")
        (self.home / "copy").rename(self.home / "i")
        self.disk, self.reader = open_index(self.home / "i"), open_index(self.home / "i")

    @rule()
    def reopen(self) -> None:
        self.disk.close()
        self.disk = open_index(self.home / "i")

    @rule()
    def pickled(self) -> None:
        self.memory = pickle.loads(pickle.dumps(self.memory))
        self.disk = pickle.loads(pickle.dumps(self.disk))

    @rule()
    def refresh_a_reader(self) -> None:
        self.reader.refresh()
        assert set(self.reader) == set(self.held)

    @rule()
    def fork(self) -> None:
        """A child sees what its parent does."""
        hear, say = os.pipe()
        if not (child := os.fork()):
            try:
                found = {str(document.id): document.metadata["version"] for document in self.disk.documents()}
                os.write(say, b"the same" if found == self.held else b"something else")
            finally:
                os._exit(0)
        os.close(say)
        with os.fdopen(hear, "rb") as pipe:
            assert pipe.read() == b"the same"
        os.waitpid(child, 0)

    @rule(rows=SOME, version=st.integers(0, 5))
    def crash(self, rows: list[int], version: int) -> None:
        """A writer is killed as soon as it has been told that its change is written."""
        names = [NAMES[row] for row in rows]
        change = (VERSIONS[rows, version], names)
        self.disk.close()
        self.reader.close()
        if not (child := os.fork()):
            try:
                open_index(self.home / "i").update(*change, **told(names, version))
                os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        self.disk, self.reader = open_index(self.home / "i"), open_index(self.home / "i")
        self.memory.update(*change, **told(names, version))
        self.held |= dict.fromkeys(names, version)

    @rule(version=st.integers(0, 5))
    def filtered(self, version: int) -> None:
        wanted = {name for name, held in self.held.items() if held == version}
        for index in self.both:
            assert set(index.search(VERSIONS[1, 1], k=20, where={"version": version}).ids[0]) == wanted

    @precondition(lambda self: not self.worded)
    @rule()
    def no_words(self) -> None:
        with pytest.raises(OptionError, match="compact i --hybrid"):
            self.disk.search(VERSIONS[1, 1], text="version0", hybrid=True)

    @precondition(lambda self: self.worded)
    @rule(rows=SOME, version=st.integers(0, 5))
    def in_words(self, rows: list[int], version: int) -> None:
        """Words rank alike in memory and on disk, with and without a filter, whatever was removed or merged."""
        text, options = " ".join([f"version{version}", *(NAMES[row] for row in rows)]), {"k": 20, "width": "full", "hybrid": True}
        for where in (None, {"version": version}):
            answers = [index.search(VERSIONS[1, 1], text=text, where=where, **options).ids for index in self.both if len(index)]
            assert answers[1:] == answers[:1]
        told_of = {name for name, held in self.held.items() if held == version or any(NAMES[row] == name for row in rows)}
        for index in self.both:
            view = index.store.view
            found = index.store.lexical(view, [text], 20)[0] if len(index) else np.empty(0, np.int64)
            assert {str(view.documents.ids[row]) for row in found if row >= 0} == told_of

    @invariant()
    def same_documents(self) -> None:
        for index in self.both:
            assert len(index) == len(self.held)
            assert {str(document.id): document.metadata["version"] for document in index.documents()} == self.held
            assert all(document.text == f"{document.id} version{self.held[str(document.id)]}" for document in index.documents())

    @precondition(lambda self: len(self.held) > 1)
    @invariant()
    def each_finds_itself(self) -> None:
        names = [name for name in self.held if name != "first"]
        queries = np.stack([VERSIONS[NAMES.index(name), self.held[name]] for name in names])
        for index in self.both:
            hits = index.search(queries, k=1, width="full")
            np.testing.assert_allclose(hits.scores[:, 0], 1, atol=1e-3)
            for name, found in zip(names, hits.ids, strict=True):
                same = VERSIONS[NAMES.index(name), self.held[name]]
                twin = VERSIONS[0, 0] if found[0] == "first" else VERSIONS[NAMES.index(str(found[0])), self.held[str(found[0])]]
                np.testing.assert_allclose(twin, same, atol=1e-6)


Verbs.TestCase.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestVerbs = Verbs.TestCase
