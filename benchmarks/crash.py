"""Does an index survive a writer that is killed anywhere?

    python benchmarks/crash.py                        (writes results/crash.json)
    python benchmarks/crash.py --minutes 10           (as much as that gives; the next run goes on from there)

A writer adds, updates, removes and compacts at random, and says after every call that it has returned. It is killed with SIGKILL
at a random moment within the time of some calls, over and over again in one folder; after 50 kills another folder is begun. Each begins
without the words of its documents, and one of the compactions adds them. After each kill the index is opened and compared with what was
acknowledged: every document is there, once, with its own vector, title and words, and the call that was under way is there whole or not
at all. Each kill's writer is the next one's sweeper.

Up to three readers look on: some stay at the commit they opened, some refresh, some open and close over and over again; what each of
them sees must be whole. They are asked to end, or killed, or stay over the next writers. As long as one has the index open, SQLite may
keep a dead writer's commit where no one sees it, and bring it back when all have ended: unless another was made, that is allowed.
"""

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import faiss
import numpy as np

from adawidth.artifact import write_model
from adawidth.data import unit
from adawidth.errors import AdaWidthError
from adawidth.index import IndexFolder
from adawidth.index.repair import examine
from adawidth.rotation import Rotation
from kept import Kept, summed

WIDTH, START = 64, 32
ROTATION = Rotation.random(WIDTH, seed=1)
LARGEST = 4_000  # documents; then more is removed than added
WARMING = 12  # calls that compile what writers need, and tell how long a call takes here
LONGEST = 12  # times that: the time that a writer lives, at most

ROUND = 50  # kills in one folder
READERS = ("stay", "refresh", "come and go")
UNCHANGING = ("compact", "words")  # verbs that change no document; words: compact(hybrid=True)

State = dict[str, int]  # the version of each document that is there


def vector(name: str, version: int) -> np.ndarray:
    """The vector of one version of a document."""
    return np.random.default_rng([version, *name.encode()]).standard_normal(WIDTH, dtype=np.float32)


def planned(state: State, seed: int) -> tuple[str, list[str]]:
    """What a writer does next: a verb and ids. A function of its arguments, so that the observer knows it too."""
    rng = random.Random(seed)
    full = len(state) > LARGEST
    verbs = ["remove", "remove", "compact", "words"] if full else ["add", "add", "update", "update", "remove", "compact", "words"]
    verb = rng.choice(verbs)
    some = rng.sample(sorted(state), min(len(state), rng.choice((1, 30, 300))))
    if verb == "remove":
        return (verb, some[: len(state) // 2 or 1] if len(state) <= LARGEST else rng.sample(sorted(state), LARGEST // 2))
    new = [f"{seed}-{i}" for i in range(rng.choice((1, 40, 600)))]
    return verb, {"add": new, "update": some + new[:5]}.get(verb, [])


def after(state: State, verb: str, ids: list[str], seed: int) -> State:
    """What is there when that is done; a version is the seed of the call that wrote it."""
    if verb == "remove":
        return {name: version for name, version in state.items() if name not in set(ids)}
    return state | dict.fromkeys(ids, seed)


def call(index: IndexFolder, verb: str, ids: list[str], seed: int) -> None:
    """Does what was planned."""
    if verb == "remove":
        index.remove(ids)
    elif verb in UNCHANGING:
        index.compact(hybrid=verb == "words")
    else:
        values = unit(np.stack([vector(name, seed) for name in ids]))
        getattr(index, verb)(values, ids, titles=[f"{name} {seed}" for name in ids], texts=[f"of{seed}"] * len(ids))


def made(path: Path) -> IndexFolder:
    """An empty index."""
    path.mkdir()
    write_model(path / "model", {"rotation": {"kind": "random"}}, {"rotation": ROTATION.matrix}, "# crash\n")
    return IndexFolder.create(path, ROTATION, start=START, ladder=(16, 32, 48, 64))


def warmed(path: Path) -> float:
    """Seconds that a call takes here, once everything is compiled: writers are forked, so none of them compiles or loads it again."""
    seconds = []
    for _ in range(2):
        state, begun = State(), time.monotonic()
        with tempfile.TemporaryDirectory(dir=path) as folder, made(Path(folder) / "warm.index") as index:
            for seed in range(WARMING):
                verb, ids = planned(state, seed)
                call(index, verb, ids, seed)
                state = after(state, verb, ids, seed)
        seconds.append((time.monotonic() - begun) / WARMING)
    return seconds[-1]


def write(path: Path, state: State, first: int, say: int) -> None:
    """The writer: never comes back."""
    index = IndexFolder(path)
    os.write(say, b"ready\n")
    for seed in range(first, first + 10_000):
        verb, ids = planned(state, seed)
        os.write(say, f"begin {seed}\n".encode())
        call(index, verb, ids, seed)
        os.write(say, f"done {seed}\n".encode())
        state = after(state, verb, ids, seed)


def killed(path: Path, state: State, first: int, seconds: float) -> tuple[list[int], int | None]:
    """Runs a writer for some time and kills it: the seeds of the calls that returned, and of the one that was under way."""
    hear, say = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(hear)
            write(path, state, first, say)
        finally:
            os._exit(1)
    os.close(say)
    heard = os.read(hear, 6)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([hear], [], [], left)[0]:
            part = os.read(hear, 65_536)
            if not part:
                raise SystemExit(f"the writer ended by itself after {heard[-200:]!r}")
            heard += part
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while part := os.read(hear, 65_536):
        heard += part
    os.close(hear)
    lines = heard.decode().split("\n")[1:-1]  # whole lines
    done = [int(line.split()[1]) for line in lines if line.startswith("done")]
    begun = [int(line.split()[1]) for line in lines if line.startswith("begin")]
    return done, begun[-1] if len(begun) > len(done) else None


class Reader:
    """A process that looks at the index until it is told to end, in one of three ways."""

    def __init__(self, path: Path, way: str) -> None:
        (wait, self._tell), (self._hear, say) = os.pipe(), os.pipe()
        self._process = os.fork()
        if not self._process:
            try:
                os.write(say, f"{self._look(path, way, wait, say)}\n".encode())
            except BaseException as error:
                os.write(say, f"{way}: {error!r}\n".encode())
            finally:
                os._exit(0)
        os.close(wait)
        os.close(say)
        self.stays = way != "come and go"
        self._said = os.read(self._hear, 4_000).decode().removeprefix("ready\n")

    @staticmethod
    def _look(path: Path, way: str, wait: int, say: int) -> int:
        """Looks until told to end; how many times."""
        index, looks = IndexFolder(path), 0
        os.write(say, b"ready\n")
        while True:
            whole(index)
            looks += 1
            if select.select([wait], [], [], 0.02)[0]:
                return looks
            if way == "refresh":
                index.refresh()
            elif way == "come and go":
                index.close()
                index = IndexFolder(path)

    def end(self, *, kill: bool) -> str:
        """Ends it: what it said."""
        if kill:
            os.kill(self._process, signal.SIGKILL)
        else:
            os.write(self._tell, b"q")
        os.waitpid(self._process, 0)
        with os.fdopen(self._hear) as pipe:
            said = self._said + pipe.read()
        os.close(self._tell)
        return said.strip()


def whole(index: IndexFolder) -> None:
    """What a reader sees is sound, and every document is there once."""
    index.view.manifest.check()
    known = index.view.documents.describe(np.flatnonzero(index.view.alive).tolist())
    assert len({document.id for document in known}) == len(known) == len(index), "a reader sees a document twice, or not"


def found(path: Path) -> State:
    """What the index says is there, each document looked at from all sides."""
    assert examine(path) == [], examine(path)
    with IndexFolder(path) as index:
        view = index.view
        rows = np.flatnonzero(view.alive)
        known = view.documents.describe(rows.tolist())
        names = [document.id for document in known]
        assert len(set(names)) == len(names) == len(index), "a document is there twice"
        state = {document.id: int(document.title.split()[1]) for document in known}
        assert names == [str(view.documents.ids[row]) for row in rows], "manifest and segments disagree"
        assert [document.title for document in known] == [f"{name} {version}" for name, version in state.items()]
        if names:
            expected = ROTATION.apply(unit(np.stack([vector(name, version) for name, version in state.items()])))
            assert np.abs(view.vectors(rows) - expected).max() < 1e-3, "a document has another's vector"
            query = ROTATION.apply(unit(vector(names[0], state[names[0]])[None]))
            answer = view.search(query, START, len(names)).candidates[0]
            assert sorted(answer.tolist()) == rows.tolist(), "a search finds something else than is there"
        if names and index.facts()["hybrid"]:
            asked = [f"of{version}" for version in sorted(set(state.values()))]
            answers = [{str(view.documents.ids[row]) for row in line if row >= 0} for line in view.lexical(asked, len(names))]
            told = [{name for name, version in state.items() if word == f"of{version}"} for word in asked]
            assert answers == told, "words find something else than is there"
        return state


def run(folder: Path, kills: int, seed: int) -> dict[str, object]:
    """Kills a writer so many times, in one folder."""
    path, longest = folder / "crash.index", LONGEST * warmed(folder)
    made(path).close()
    rng, state, first = random.Random(seed), State(), 0
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("under way", "kept", "taken back", "readers")}
    calls = orphans = done_kills = looks = returned = 0
    readers: list[Reader] = []
    hidden: list[State] = []  # what dead writers' commits would bring back
    problems: list[str] = []
    while done_kills < kills and not problems:
        done_kills += 1
        for _ in range(rng.randint(0, 3) - len(readers)):
            counts["readers"][way := rng.choice(READERS)] += 1
            readers.append(Reader(path, way))
        done, open_call = killed(path, state, first, rng.uniform(0, longest))
        for one in done:
            state = after(state, *planned(state, one), one)
        calls += len(done)
        if rng.random() < 0.5 or not any(reader.stays for reader in readers):
            said = [reader.end(kill=rng.random() < 0.3) for reader in readers]
            problems += [f"kill {done_kills}: a reader: {one}" for one in said if one and not one.isdigit()]
            looks += sum(int(one) for one in said if one.isdigit())
            readers = []
        try:
            with IndexFolder(path) as index:
                known = {entry["name"] for entry in index.facts()["segments"]}
            orphans += sum(file.name not in known for file in path.glob("*.segment"))
            there = found(path)
        except (AssertionError, AdaWidthError) as error:
            problems.append(f"kill {done_kills}: {error}")
            break
        if done:
            hidden = []
        returned += there in hidden and there != state
        allowed, wanted = [state, *hidden], None
        if open_call is not None:
            verb, ids = planned(state, open_call)
            wanted = after(state, verb, ids, open_call)
            counts["under way"][verb] += 1
            allowed.append(wanted)
            if verb not in UNCHANGING:
                counts["kept" if there == wanted else "taken back"][verb] += 1
        if there not in allowed:
            problems.append(f"kill {done_kills}: {len(there)} documents, expected {' or '.join(str(len(one)) for one in allowed)}")
        if there != state or not readers:
            hidden = []
        elif wanted is not None:
            hidden.append(wanted)
        state, first = there, first + len(done) + 10
    for reader in readers:
        reader.end(kill=True)
    with IndexFolder(path) as index:
        worded = int(index.facts()["hybrid"])
    return {
        "kills": done_kills,
        "acknowledged_calls": calls,
        "calls_under_way_when_killed": dict(counts["under way"]),
        "of_these_there_whole": dict(counts["kept"]),
        "of_these_not_there_at_all": dict(counts["taken back"]),
        "of_these_there_when_all_readers_had_ended": returned,
        "orphaned_files_left_and_swept": orphans,
        "readers": dict(counts["readers"]),
        "times_that_readers_looked": looks,
        "problems": problems,
        "folders": 1,
        "folders_that_gained_words": worded,
        "documents_at_the_end": len(state),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "crash.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    end = time.monotonic() + 60 * options.minutes
    about = {"command": f"python benchmarks/crash.py --kills {options.kills} --seed {options.seed}", "all_kills": options.kills}
    kept = Kept(options.out, about, Path(__file__).name)
    for first in range(ROUND * len(kept.parts), options.kills, ROUND):
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as folder:
            kept.add(run(Path(folder), min(ROUND, options.kills - first), options.seed + first))
        report = about | summed(kept.parts)
        options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"{report['kills']} of {options.kills} kills, {len(report['problems'])} problems", file=sys.stderr)
    else:
        kept.end()
    raise SystemExit(1 if any(part["problems"] for part in kept.parts) else 0)


if __name__ == "__main__":
    main()
