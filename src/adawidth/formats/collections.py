"""The paper's collections, from their files as published to dataset folders with train, dev and test splits.

What BEIR publishes with all of its splits stays as it is. ArguAna has test queries alone: half of them, by debates, become train and
dev. Quora has no train queries: dev becomes train. MS MARCO is cut to two million passages: those relevant to the evaluated queries,
which are dev's, and a uniform sample of the others. OK-VQA and A-OKVQA bring questions and images; corpus and labels are the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from filecmp import cmp
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..data import Qrels
from ..errors import DataError, OptionError
from ..types import Id, StrPath
from .files import existing, json_of
from .folders import Kind, atomic_folder, kept_if_used
from .passages import Cut
from .texts import Columns, Text, read_corpus, read_texts, write_texts
from .trec import read_qrels, write_qrels

DEV = 0.15  # share of the train queries
DATASET = Kind(
    "a dataset folder", ".adawidth", "format", "adawidth-dataset", ("corpus.jsonl", "queries.jsonl", "qrels", "dataset.json", "embeddings")
)


@dataclass(frozen=True)
class Published:
    """A collection's files, as they were unpacked, and how they are cut."""

    folder: Path  # BEIR's layout; of the visual ones the user's corpus and labels
    questions: Sequence[Path] = ()  # question files of the visual ones
    images: Path | None = None
    documents: int = 2_000_000  # passages kept of MS MARCO
    seed: int = 0

    def texts(self, side: str) -> Iterator[Text]:
        """Corpus or queries."""
        file = existing(self.folder / f"{side}.jsonl")
        if file is None:
            raise DataError(f"{self.folder}: there is no {side}.jsonl in it: give the folder that the collection was unpacked to")
        return read_texts(file)

    def qrels(self, *splits: str) -> dict[str, Qrels]:
        """The labels of these splits; all of them must be there."""
        return {split: read_qrels(self.folder / "qrels" / f"{split}.tsv") for split in splits}


@dataclass(frozen=True)
class Prepared:
    """What goes into a dataset folder."""

    corpus: Iterable[Text]
    queries: Iterable[Text] | None = None
    qrels: Mapping[str, Qrels] = field(default_factory=dict)
    queries_are_documents: bool = False


def prepare_collection(name: str, published: Published, out: StrPath, *, force: bool = False) -> None:
    """Writes a dataset folder with the texts and splits of a collection of the paper."""
    if name not in COLLECTIONS:
        raise OptionError(f"there is no collection {name!r}; there are {', '.join(COLLECTIONS)}")
    _write(Path(out), COLLECTIONS[name](published), force, (published.folder, *published.questions, published.images))


def gather_texts(
    out: StrPath,
    corpus: StrPath,
    queries: StrPath | None = None,
    columns: Columns | None = None,
    cut: Cut | None = None,
    *,
    force: bool = False,
) -> bool:
    """Writes a dataset folder with the texts of any file or folder that `read_texts` reads; columns and cut are of the corpus.

    Returns False where the folder holds these texts already.
    """
    asked = None if queries is None else read_texts(queries)
    return _write(Path(out), Prepared(read_corpus(corpus, columns, cut), asked), force, (corpus, queries))


def _write(out: Path, made: Prepared, force: bool, inputs: Sequence[StrPath | None]) -> bool:
    """The folder; where `out` holds these texts and labels already it stays, with the vectors in it, so that work can go on."""
    with kept_if_used(out.parent), TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
        _fill(Path(scratch), made)
        files = sorted(file.relative_to(scratch) for file in Path(scratch).rglob("*") if file.is_file())
        if out.exists() and all((out / file).is_file() and cmp(scratch / file, out / file, shallow=False) for file in files):
            return False
        if out.exists() and not force:
            raise OptionError(f"{out} exists and holds something else: choose another path (--out), or replace it with force (--force)")
        with atomic_folder(out, DATASET, force=force, inputs=inputs) as building:
            (building / DATASET.mark).write_text(json.dumps({DATASET.field: DATASET.value}) + "\n")
            for file in files:
                (building / file).parent.mkdir(exist_ok=True)
                Path(scratch, file).rename(building / file)
    return True


def _fill(folder: Path, made: Prepared) -> None:
    write_texts(folder / "corpus.jsonl", made.corpus)
    if made.queries is not None:
        write_texts(folder / "queries.jsonl", made.queries)
    if made.qrels:
        (folder / "qrels").mkdir()
    for split, qrels in made.qrels.items():
        write_qrels(folder / "qrels" / f"{split}.tsv", qrels)
    if made.queries_are_documents:
        (folder / "dataset.json").write_text(json.dumps({"queries_are_documents": True}) + "\n")


def _as_published(*splits: str) -> Callable[[Published], Prepared]:
    return lambda given: Prepared(given.texts("corpus"), given.texts("queries"), given.qrels(*splits))


def _arguana(given: Published) -> Prepared:
    """Half of the debates for testing; of the other half DEV of the queries, again by debates, are dev."""
    (published,) = given.qrels("test").values()
    debates: dict[str, list[Id]] = {}
    for query in published.grades:
        debates.setdefault(str(query).rpartition("-")[0], []).append(query)
    rng = np.random.default_rng(given.seed)
    half = len(published) // 2
    tested = _groups(list(debates.values()), half, rng)
    rest = [group for group in debates.values() if group[0] not in tested]
    chosen = _groups(rest, round(DEV * (len(published) - half)), rng)
    of = {query: "test" if query in tested else "dev" if query in chosen else "train" for query in published.grades}
    splits = {split: {q: grades for q, grades in published.grades.items() if of[q] == split} for split in ("train", "dev", "test")}
    qrels = {split: Qrels(grades, split) for split, grades in splits.items() if grades}
    return Prepared(given.texts("corpus"), given.texts("queries"), qrels, queries_are_documents=True)


def _groups(groups: list[list[Id]], wanted: int, rng: np.random.Generator) -> set[Id]:
    """The members of whole groups, drawn at random, that are `wanted` together, or as close below it as there are."""
    drawn = [groups[place] for place in rng.permutation(len(groups))]
    last: dict[int, int] = {0: -1}  # sum -> the group that reached it first
    for place, group in enumerate(drawn):
        for reached in sorted(last, reverse=True):
            if last[reached] < place and reached + len(group) <= wanted:
                last.setdefault(reached + len(group), place)
        if wanted in last:
            break
    taken: set[Id] = set()
    left = max(last)
    while left:
        taken.update(drawn[last[left]])
        left -= len(drawn[last[left]])
    return taken


def _quora(given: Published) -> Prepared:
    """Published dev is train; what chooses is held out of it when a model is fitted."""
    qrels = given.qrels("dev", "test")
    return Prepared(given.texts("corpus"), given.texts("queries"), {"train": qrels["dev"], "test": qrels["test"]})


def _msmarco(given: Published) -> Prepared:
    """Published dev is test. Train keeps the queries with a relevant passage among those kept."""
    published = given.qrels("train", "dev")
    needed = {d for grades in published["dev"].grades.values() for d, grade in grades.items() if grade > 0}
    chosen = np.fromiter((text.id in needed for text in given.texts("corpus")), bool)
    others = np.flatnonzero(~chosen)
    wanted = min(max(0, given.documents - int(chosen.sum())), len(others))
    chosen[np.random.default_rng(given.seed).permutation(others)[:wanted]] = True
    kept: set[Id] = {text.id for text, taken in zip(given.texts("corpus"), chosen, strict=True) if taken}
    cut = {
        split: {q: {d: g for d, g in grades.items() if d in kept} for q, grades in part.grades.items()} for split, part in published.items()
    }
    qrels = {"train": {q: grades for q, grades in cut["train"].items() if grades}, "test": cut["dev"]}
    return Prepared(
        (text for text in given.texts("corpus") if text.id in kept),
        (text for text in given.texts("queries") if any(text.id in part for part in qrels.values())),
        {split: Qrels(grades, split) for split, grades in qrels.items()},
    )


def _visual(read: Callable[[Path], Iterator[tuple[Text, str]]]) -> Callable[[Published], Prepared]:
    """Questions, each with its image; corpus and labels as the user has them."""

    def prepared(given: Published) -> Prepared:
        if not given.questions or given.images is None:
            raise OptionError("this collection needs its question files and a folder of images: --questions FILE --images FOLDER")
        asked = list(chain.from_iterable(read(file) for file in given.questions))
        splits = [split for split in ("train", "dev", "test") if (given.folder / "qrels" / f"{split}.tsv").is_file()]
        return Prepared(given.texts("corpus"), _with_images(asked, given.images), given.qrels(*splits))

    return prepared


def _with_images(asked: list[tuple[Text, str]], images: Path) -> Iterator[Text]:
    """The questions with their images' paths; an image lies in the folder itself or in a folder of its part (val2014) within."""
    missing = 0
    first = ""
    for text, part in asked:
        found = next((file for file in (images / text.image, images / part / text.image) if file.is_file()), None)
        if found is not None:
            yield Text(text.id, text.text, image=str(found.resolve()))
        else:
            missing, first = missing + 1, first or text.image
    if missing:
        raise DataError(f"{images}: image {first} is not there; {missing} of {len(asked)} questions have none: unpack all of COCO's parts")


def _okvqa(file: Path) -> Iterator[tuple[Text, str]]:
    published = _json(file, dict)
    part = str(published.get("data_subtype", ""))
    for entry in _entries(file, published.get("questions")):
        name = f"COCO_{part}_{int(entry['image_id']):012}.jpg"
        yield Text(str(entry["question_id"]), str(entry["question"]), image=name), part


def _aokvqa(file: Path) -> Iterator[tuple[Text, str]]:
    for entry in _entries(file, _json(file, list)):
        name = f"{int(entry['image_id']):012}.jpg"
        yield Text(str(entry["question_id"]), str(entry["question"]), image=name), f"{entry.get('split', '')}2017"


def _entries(file: Path, found: Any) -> list[Mapping[str, Any]]:
    needed = {"question_id", "question", "image_id"}
    if not isinstance(found, list) or not all(isinstance(entry, dict) and needed <= entry.keys() for entry in found):
        raise DataError(f"{file}: expected questions with {', '.join(sorted(needed))}: give the question file as it was published")
    for place, entry in enumerate(found):
        if not re.fullmatch("[0-9]{1,12}", str(entry["image_id"])):
            raise DataError(f"{file}: question {place} has image_id {ascii(entry['image_id'])[:40]}, expected at most 12 digits")
    return found


def _json(file: Path, kind: type) -> Any:
    if file.exists() and not file.is_file():
        raise DataError(f"{file}: this is no file but a folder, a pipe or a device: give a file")
    try:
        found = json_of(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: can't be read: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{file}: this is no JSON: {error}") from None
    if not isinstance(found, kind):
        raise DataError(f"{file}: expected a JSON {kind.__name__}, found a {type(found).__name__}: is it another collection's file?")
    return found


COLLECTIONS: Mapping[str, Callable[[Published], Prepared]] = {
    "scifact": _as_published("train", "test"),
    "nfcorpus": _as_published("train", "dev", "test"),
    "fiqa": _as_published("train", "dev", "test"),
    "arguana": _arguana,
    "quora": _quora,
    "msmarco": _msmarco,
    "okvqa": _visual(_okvqa),
    "aokvqa": _visual(_aokvqa),
}
