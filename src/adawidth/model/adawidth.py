"""AdaWidth, the facade: fit, refit, index, save, load."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..artifact import read_model, stored_rotation, write_model
from ..data import Dataset, Learning, Qrels, Queries, Vectors, held_out, unit
from ..errors import ArtifactError, DataError, OptionError
from ..formats import atomic_folder
from ..formats.documents import Source, of_vectors
from ..index import IndexFolder
from ..index.folder import INDEX
from ..index.rescore import get_ready
from ..policies.base import LADDER
from ..policies.select import Policies
from ..record import Record
from ..rotation import Rotation
from ..stages import MemoryStore, Store
from ..tasks import DEFAULT, TaskMap, check_name, pick, record_of, seen_of, stored_tasks
from ..types import F32, Id, Recipe, Storage, StrPath
from .card import describe
from .drift import warn_if_grown
from .index import Index

if TYPE_CHECKING:
    from ..encoders import Encoder

log = logging.getLogger("adawidth")

QrelsLike = Any  # what Qrels.of takes


@dataclass(frozen=True, eq=False)
class AdaWidth:
    """A fitted model: one rotation, the policies calibrated for it, the record of how it was made, and the tasks that labels added."""

    rotation: Rotation
    policies: Policies
    record: Record
    seen: frozenset[Id] = frozenset()  # ids of documents relevant to a train or dev query
    tasks: Mapping[str, TaskMap] = field(default_factory=dict)  # by name

    @classmethod
    def fit(
        cls,
        data: Any,
        queries: Any = None,
        qrels: QrelsLike = None,
        dev: QrelsLike = None,
        *,
        recipe: Recipe = "auto",
        labels: bool | None = None,
        reflections: int | None = None,
        widths: Sequence[int] | None = None,
        query_map: bool = False,
        seed: int = 0,
    ) -> AdaWidth:
        """Learns from a Dataset's train and dev splits, or from plain arrays with labels by row number; never from test queries.

        Without labels (`labels=False`, or none given) the frozen full-width ranking is the teacher. `query_map` lets the same
        labels also teach a query map over the rotation, as the default task: better answers where labels abound, for mapped
        queries other scores than the frozen ones.
        """
        from ..training.extras import require
        from ..training.fit import fit_model

        if query_map:
            require("torch")
        learning, origin = _taught(data, queries, qrels, dev, labels, seed)
        if query_map:
            from ..training.refit import check_labels, learn_task

            check_labels(learning)
        fitted = fit_model(learning, recipe=recipe, reflections=reflections, widths=widths, seed=seed)
        seen, tasks = frozenset(learning.documents.ids[row] for row in learning.positives.tolist()), {}
        if query_map:
            taught = learn_task(fitted.rotation, fitted.policies, learning, chosen_under=fitted.chosen, seed=seed)
            tasks[DEFAULT] = replace(taught, record=replace(taught.record, **origin))
        return cls(fitted.rotation, fitted.policies, replace(fitted.record, **origin), seen, tasks)

    @property
    def width(self) -> int:
        """The encoder width D."""
        return self.rotation.width

    @property
    def labelled(self) -> bool:
        """Whether labels were learned from."""
        return self.record.labels

    def refit(
        self,
        data: Any,
        queries: Any = None,
        qrels: QrelsLike = None,
        dev: QrelsLike = None,
        *,
        task: str = DEFAULT,
        seed: int = 0,
    ) -> AdaWidth:
        """This model with a query map learned from labels, under the name of a task (one of the same name is replaced).

        The rotation stays, and with it every index made with this model. Grades weigh a query's relevant documents; those
        of 0 or below are negatives. What is learned is chosen on dev: without a clear gain the map is the rotation alone.
        """
        from ..training.extras import require

        require("torch")
        from ..training.refit import learn_task

        check_name(task)
        learning, origin = _taught(data, queries, qrels, dev, True, seed)
        named = (learning.documents.ids[row] for row in learning.positives.tolist())
        if self.record.chosen not in ("identity", "pca") and not self.seen.isdisjoint(named):
            log.warning("labels that taught the rotation say little of a map over it: `fit` with a query map learns both from them")
        taught = learn_task(self.rotation, self.policies, learning, seed=seed)
        return replace(self, tasks={**self.tasks, task: replace(taught, record=replace(taught.record, **origin))})

    def task(self, name: str | None = None) -> TaskMap | None:
        """The task of this name; unnamed, the one called "default" if there is one; None for "none", which is the rotation alone."""
        return pick(self.tasks, name)

    def rotate(self, vectors: Any, width: int | None = None) -> F32:
        """Documents' vectors for any other index: rotated, cut to `width` and of unit length again. (n, D) -> (n, m)

        >>> import numpy as np
        >>> documents = np.random.default_rng(0).standard_normal((100, 64)).astype(np.float32)
        >>> AdaWidth.fit(documents, recipe="pca").rotate(documents, width=16).shape
        (100, 16)
        """
        return unit(self.rotation.apply(self._own(vectors).all(), width))

    def rotate_queries(self, vectors: Any, width: int | None = None, task: str | None = None) -> F32:
        """Queries' vectors for any other index: rotated, or mapped by a task's query map, cut and of unit length again. (n, D) -> (n, m)"""
        mapped = self.task(task)
        return unit((self.rotation if mapped is None else mapped.query_map).apply(self._own(vectors).all(), width))

    def index(
        self,
        documents: Any,
        path: StrPath | None = None,
        *,
        ids: Iterable[Id] | None = None,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        storage: Storage = "auto",
        keep: int | None = None,
        force: bool = False,
    ) -> Index:
        """The documents, rotated, ready to search: in this process's memory or, with a `path`, in an index folder on disk.

        On disk `keep` coordinates are stored (all, if not given), and `storage` says how candidates are found.
        """
        given = documents if isinstance(documents, Source) else self._own(documents, ids, "documents")
        without_ids = isinstance(given, Vectors) and isinstance(given.ids, range)
        if isinstance(given, Source) and given.width != self.width:
            raise DataError(f"{given.name}: documents are {given.width} wide, the model {self.width}: use the model's own encoder")
        if path is None:
            store: Store = MemoryStore(self.rotation, numbered=without_ids)
            store.write(given if isinstance(given, Source) else of_vectors(store.named(given), titles, texts, metadata))
            return Index(self, store)
        model = self if keep is None else self._cut(keep)
        targets = [policies.taper.target for policies in (model.policies, *(task.policies for task in model.tasks.values()))]
        with atomic_folder(path, INDEX, force=force) as folder:
            model.save(folder / "model")
            start, target = model.policies.choose().start, min(targets)
            index = IndexFolder.create(
                folder, self.rotation, start=start, ladder=LADDER, target=target, keep=keep, storage=storage, numbered=without_ids
            )  # fmt: skip
            with index:
                index.write(given if isinstance(given, Source) else of_vectors(index.named(given), titles, texts, metadata))
        return open_index(path)

    def __repr__(self) -> str:
        learned = "labels" if self.labelled else "no labels"
        tasks = f", tasks {', '.join(self.tasks)}" if self.tasks else ""
        target = f"target width {self.policies.taper.target}"
        return f"AdaWidth({self.rotation.kind} rotation of {self.width} coordinates, {learned}, {target}{tasks})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p><pre>{escape(describe(self.record, self.width))}</pre>"

    def _own(self, vectors: Any, ids: Iterable[Id] | None = None, name: str = "vectors") -> Vectors:
        given = Vectors.of(vectors, ids, name=name)
        if given.width != self.width:
            raise DataError(f"{given.name}: {name} are {given.width} wide, the model {self.width}: use the model's own encoder")
        return given

    def _cut(self, keep: int) -> AdaWidth:
        """The same model for documents of which `keep` coordinates are stored: its policies read no further."""
        if not 1 <= keep <= self.width:
            raise OptionError(f"keep {keep} is not between 1 and the encoder width {self.width}")
        target = self.policies.taper.target
        if keep < target:
            log.warning("%d coordinates are kept of the %d that searches read to: answers are those of %d", keep, target, keep)
        tasks = {name: replace(task, policies=task.policies.cut(keep)) for name, task in self.tasks.items()}
        return replace(self, policies=self.policies.cut(keep), tasks=tasks)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Writes the model folder."""
        config = {
            "width": self.width,
            "rotation": {"kind": self.rotation.kind, "fingerprint": self.rotation.fingerprint},
            **self.policies.config(),
            "record": self.record.to_json(),
            "seen": sorted(self.seen, key=str),
            "tasks": [{"name": name, **task.config()} for name, task in self.tasks.items()],
        }
        tensors = {"rotation": self.rotation.matrix, **self.policies.tensors()}
        for place, task in enumerate(self.tasks.values()):
            tensors |= {f"tasks.{place}.{name}": tensor for name, tensor in task.tensors().items()}
        card = describe(self.record, self.width, {name: task.record for name, task in self.tasks.items()})
        write_model(path, config, tensors, card, force=force)

    @classmethod
    def load(cls, path: str | Path) -> AdaWidth:
        """Reads a model folder back; a damaged, newer or foreign one is refused."""
        config, tensors = read_model(path)
        try:
            rotation = stored_rotation(config, tensors)
            policies = Policies.of(rotation.width, config, tensors)
            return cls(rotation, policies, record_of(config, Record), seen_of(config), stored_tasks(config, tensors, rotation))
        except ArtifactError as error:
            raise ArtifactError(f"{path}: config.json and model.safetensors do not make a model: {error}: save it again") from None


def open_index(path: StrPath, model: AdaWidth | None = None, *, encoder: str | Encoder | None = None, trust_encoder: bool = False) -> Index:
    """An index folder, ready to search with the model it was made with, or with another one of the same rotation.

    `encoder` says where the encoder of texts is found, where that is not recorded or has changed; `trust_encoder`
    loads the one that the folder names, also where it must be fetched or is a folder or an endpoint. Opening loads compiled code,
    half a second, that the first search would otherwise wait for.
    """
    store = IndexFolder(path)
    index = Index(AdaWidth.load(store.path / "model") if model is None else model, store, encoder, trust_encoder=trust_encoder)
    get_ready(index.model.policies.choose(coded=store.view.start), index.model.width)
    warn_if_grown(index.model, len(index))
    return index


def _taught(
    data: Any,
    queries: Any,
    qrels: QrelsLike,
    dev: QrelsLike,
    labels: bool | None,
    seed: int,
) -> tuple[Learning, dict[str, Any]]:
    """What may be learned from, and where it came from, for the record."""
    if not isinstance(data, Dataset):
        return _learning(Vectors.of(data, name="documents"), queries, qrels, dev, labels, seed), {"dataset": "arrays", "encoder": ""}
    if queries is not None or qrels is not None or dev is not None:
        raise OptionError("a Dataset brings its own queries and labels: give either a Dataset or arrays")
    labels = "train" in data.qrels if labels is None else labels
    return data.learning(labels=labels, seed=seed), data.origin


def _learning(documents: Vectors, queries: Any, qrels: QrelsLike, dev: QrelsLike, labels: bool | None, seed: int) -> Learning:
    """Train and dev queries from arrays; queries named by `dev` choose, all others teach."""
    if queries is None:
        if qrels is not None:
            raise OptionError("labels without queries: give the queries that the labels speak of")
        none = Queries(documents.select([]), None, np.empty(0, np.int64))
        return Learning(documents, none, none)
    vectors = Vectors.of(queries, name="queries")
    if labels and qrels is None:
        raise OptionError("labels=True, but no qrels were given")
    if qrels is None or labels is False:
        train, chosen = held_out(Queries(vectors, None, np.full(len(vectors), -1)), seed)
        return Learning(documents, train, chosen)
    parts = []
    for name, given in (("qrels", qrels), ("dev", dev)):
        if given is not None:
            known = Qrels.of(given, name).known(vectors, documents)
            rows = vectors.select([vectors.row_of[q] for q in known.grades])
            parts.append(Queries(rows, known.judged(rows, documents), np.full(len(rows), -1)))
    train, chosen = parts if len(parts) == 2 else held_out(parts[0], seed)
    return Learning(documents, train, chosen)
