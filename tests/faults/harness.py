"""One verb of an index, one system call that fails or kills, and what is left: run under inject.c by test_injected.py.

    LD_PRELOAD=inject.so python harness.py FOLDER < cases.json > results.json

Every case starts from a copy of one small index. Readers open it; a writer runs a verb in which the N-th call of a kind fails;
other writers follow; all of them end. Then the index must open, and hold what was acknowledged, once, with its vector, title, words
and metadata: a refused change is not there, one of unknown outcome (the writer was killed, or was told so) is there whole or not at all.
For `repair` one block of rows is damaged before: it is named until a repair has been acknowledged, and then set aside.
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import faiss
import numpy as np

from adawidth.artifact import write_model
from adawidth.data import unit
from adawidth.errors import AdaWidthError, UnknownOutcomeError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine, repair
from adawidth.index.store.segment import CHECKED
from adawidth.rotation import Rotation

WIDTH, START = 64, 32
ROTATION = Rotation.random(WIDTH, seed=1)
ERRORS = {"KILL": 0, "EIO": errno.EIO, "ENOSPC": errno.ENOSPC}

State = dict[str, int]  # the version of each document
BEFORE: State = {f"d{i}": 1 for i in range(3, 130)}
WORDS = ["of1", "of2", "of3"]  # of the texts of each version
LOST = range(64, 64 + CHECKED)  # rows of the first segment, and numbers of its documents, in the block that `damage` changes


class Case(TypedDict):
    """What fails, and who else is there."""

    verb: str  # open, add, update, remove, compact, words, snapshot or repair
    call: str  # of inject.c
    part: str  # of the path of the file it acts on
    at: int  # which of these calls; 0: count them
    error: str  # KILL, EIO or ENOSPC
    readers: int
    followers: list[str]  # each is "refused" (an add that can't succeed) or "add"


def after(verb: str) -> State:
    """What is there when the verb has been carried out."""
    match verb:
        case "add":
            return BEFORE | {f"new{i}": 2 for i in range(200)}
        case "update":
            return BEFORE | {f"d{i}": 2 for i in range(3, 40)}
        case "remove":
            return {name: version for name, version in BEFORE.items() if int(name[1:]) >= 50}
        case "repair":
            return {name: version for name, version in BEFORE.items() if int(name[1:]) not in LOST}
    return BEFORE


def vectors(ids: Sequence[str], version: int) -> np.ndarray:
    """The vectors of one version of some documents."""
    rows = [np.random.default_rng([version, *name.encode()]).standard_normal(WIDTH) for name in ids]
    return unit(np.stack(rows).astype(np.float32))


def write(index: IndexFolder, verb: str, ids: Sequence[str], version: int) -> None:
    """Adds or updates documents whose title and text say their version."""
    known = {
        "titles": [f"{name} {version}" for name in ids],
        "texts": [f"of{version}" for _ in ids],
        "metadata": [{"version": version} for _ in ids],
    }
    getattr(index, verb)(vectors(ids, version), ids, **known)


def template(path: Path, *, hybrid: bool) -> None:
    """An index with several segments and removals, and with the words of its documents or without."""
    path.mkdir()
    write_model(path / "model", {"rotation": {"kind": "random"}}, {"rotation": ROTATION.matrix}, "# faults\n")
    with IndexFolder.create(path, ROTATION, start=START, ladder=(16, 32, 48, 64)) as index:
        index.compact(hybrid=hybrid)
        write(index, "add", [f"d{i}" for i in range(100)], 1)
        write(index, "add", [f"d{i}" for i in range(100, 130)], 1)
        index.remove(["d0", "d1", "d2"])


def damage(path: Path) -> str:
    """Changes a byte in the last block of the first segment's rows; gives the file's name."""
    with IndexFolder(path) as index:
        entry = index.view.segments[0].entry
    with (path / entry.name).open("r+b") as file:
        place = file.seek(entry.arrays["rows"].offset + 2 * WIDTH * LOST[0])
        byte = file.read(1)[0] ^ 8
        file.seek(place)
        file.write(bytes([byte]))
    return entry.name


def act(path: Path, verb: str) -> None:
    """The verb, and closing the index; opening it comes before, but for the verbs that do nothing else or open it themselves."""
    fault = ctypes.CDLL(None)
    index = None if verb in ("open", "repair") else IndexFolder(path)
    fault.fault_arm(*ARMED)
    try:
        if index is None:
            repair(path) if verb == "repair" else IndexFolder(path).close()
            return
        with index:
            if verb in ("add", "update"):
                write(index, verb, [name for name, version in after(verb).items() if version == 2], 2)
            elif verb == "remove":
                index.remove([name for name in BEFORE if name not in after(verb)])
            elif verb == "snapshot":
                index.snapshot(path.with_name("copy.index"))
            else:
                index.compact(hybrid=verb == "words")
    finally:
        COUNTED.append(fault.fault_disarm())


ARMED: tuple[bytes, bytes, int, int] = (b"", b"", 0, 0)
COUNTED: list[int] = []


def child(run: Callable[[], None]) -> tuple[int, int]:
    """Runs something in a process of its own, which says how it ended: its number, and where to hear that."""
    hear, say = os.pipe()
    process = os.fork()
    if process:
        os.close(say)
        return process, hear
    said = "ok"
    try:
        os.close(hear)
        run()
    except UnknownOutcomeError as error:
        said = f"unknown {error}"
    except AdaWidthError as error:
        said = f"refused {error}"
    except BaseException as error:
        said = f"raw {error!r}"
    finally:
        os.write(say, f"{COUNTED[-1] if COUNTED else 0} {said}".encode()[:4000])
        os._exit(0)


def heard(started: tuple[int, int]) -> str:
    """How a process ended: what it said, or "killed"."""
    process, hear = started
    with os.fdopen(hear, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(process, 0)
    return said or "0 killed"


def reader(path: Path) -> tuple[int, int]:
    """A process that keeps the index open until its end of a pipe is closed; gives its number and that end."""
    wait, end = os.pipe()
    ready, say = os.pipe()
    process = os.fork()
    if not process:
        os.close(end)
        index = IndexFolder(path)
        os.write(say, b"1")
        os.read(wait, 1)
        index.view.manifest.check()  # what a reader sees stays whole
        index.refresh()
        os._exit(0)
    os.close(wait)
    os.close(say)
    with os.fdopen(ready, "rb") as pipe:
        assert pipe.read(1) == b"1"
    return process, end


def found(path: Path, damaged: str = "") -> State:
    """What the index says is there, each document looked at from all sides; a segment known to be damaged is repaired first."""
    problems = examine(path)
    if damaged and problems:
        assert len(problems) == 1, problems
        assert f"{damaged}: damaged: rows {LOST[0]} to {LOST[-1]}" in problems[0], problems
        assert len(repair(path).lost) == len(LOST)
        return found(path, damaged) | {f"d{i}": 1 for i in LOST}
    assert not problems, problems
    assert not damaged or (path / "aside" / damaged).exists(), "what was damaged is gone"
    with IndexFolder(path) as index:
        view = index.view
        rows = np.flatnonzero(view.alive)
        known = view.documents.describe(rows.tolist())
        state = {str(document.id): int(document.title.split()[1]) for document in known}
        assert len(state) == len(known) == len(index), "a document is there twice"
        assert all(document.metadata == {"version": state[str(document.id)]} for document in known), "another's metadata"
        expected = np.concatenate([vectors([name], version) for name, version in state.items()])
        assert np.abs(view.vectors(rows) - ROTATION.apply(expected)).max() < 1e-3, "another's vector"
        answer = view.search(ROTATION.apply(expected[:1]), START, len(rows)).candidates[0]
        assert sorted(answer.tolist()) == rows.tolist(), "a search finds something else than is there"
        if index.facts()["hybrid"]:
            answers = [{str(view.documents.ids[row]) for row in line if row >= 0} for line in view.lexical(WORDS, len(rows))]
            told = [{name for name, version in state.items() if word == f"of{version}"} for word in WORDS]
            assert answers == told, "words find something else than is there"
            firsts = view.lexical(list(state), 1)[:, 0]
            assert [str(view.documents.ids[row]) for row in firsts] == list(state), "words find another document"
        return state


def follow(path: Path, verb: str, number: int) -> None:
    """A later writer: one that is refused, or one that adds a document of its own."""
    with IndexFolder(path) as index:
        write(index, "add", ["d52", "d53"] if verb == "refused" else [f"later{number}"], 3)


def tried(folder: Path, case: Case) -> dict[str, Any]:
    """One case: what the writer said, how many calls there were, and what is wrong afterwards."""
    global ARMED
    path = folder / "case" / "tried.index"
    shutil.rmtree(path.parent, ignore_errors=True)
    shutil.copytree(folder / ("plain.index" if case["verb"] == "words" else "template.index"), path)
    ARMED = (case["call"].encode(), case["part"].encode(), case["at"], ERRORS[case["error"]])
    damaged = damage(path) if case["verb"] == "repair" else ""
    readers = [reader(path) for _ in range(case["readers"])]
    count, said = heard(child(lambda: act(path, case["verb"]))).split(" ", 1)
    if "the change is written" in said:
        said = f"ok, but {said}"
    allowed = {"ok": [after(case["verb"])], "ok,": [after(case["verb"])], "refused": [BEFORE]}.get(
        said.split()[0], [BEFORE, after(case["verb"])]
    )
    problems = [said] if said.startswith("raw") else []
    for number, verb in enumerate(case["followers"]):
        answer = heard(child(lambda verb=verb, number=number: follow(path, verb, number))).split(" ", 1)[1]  # type: ignore[misc]
        if answer.split()[0] != ("refused" if verb == "refused" else "ok") or (verb == "refused" and "already" not in answer):
            problems.append(f"follower {number}: {answer}")
        if answer == "ok":
            allowed = [state | {f"later{number}": 3} for state in allowed]
    for _, end in readers:  # all of them first: later readers have inherited the earlier ones' ends
        os.close(end)
    for process, _ in readers:
        if os.waitpid(process, 0)[1]:
            problems.append("a reader failed")
    try:
        state = found(path, damaged)
        if state not in allowed:
            problems.append(f"{len(state)} documents, expected {' or '.join(str(len(one)) for one in allowed)}")
        if case["verb"] == "words" and said.split()[0] in ("ok", "ok,", "refused"):
            with IndexFolder(path) as index:
                assert index.facts()["hybrid"] == said.startswith("ok"), "the words are not what was said of them"
        copy = path.with_name("copy.index")
        if case["verb"] == "snapshot" and (said == "ok" or copy.exists()):
            assert found(copy) == BEFORE, "the copy is not what was copied"
    except (AssertionError, AdaWidthError) as error:
        problems.append(f"{type(error).__name__}: {error}")
    return {**case, "count": int(count), "said": said, "problems": problems}


def main() -> None:
    faiss.omp_set_num_threads(1)
    folder, cases = Path(sys.argv[1]), json.load(sys.stdin)
    for name in ("template.index", "plain.index"):
        if not (folder / name).exists():
            template(folder / name, hybrid=name == "template.index")
    json.dump([tried(folder, case) for case in cases], sys.stdout)


if __name__ == "__main__":
    main()
