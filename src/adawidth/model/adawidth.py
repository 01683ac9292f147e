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
from ..data import Dataset, Learning, Qrels, Queries, Vectors, check_seed, held_out, unit
from ..errors import ArtifactError, DataError, OptionError
from ..formats import atomic_folder
from ..formats.documents import Source, of_loaded, of_vectors
from ..index import IndexFolder
from ..index.folder import INDEX, Finding
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
from .profile import look

if TYPE_CHECKING:
    from ..encoders import Encoder

log = logging.getLogger("adawidth")

QrelsLike = Any  # what Qrels.of takes


@dataclass(frozen=True, eq=False)
class AdaWidth:
    """A fitted model: a rotation, the policies calibrated for it, a record of the fit, and query maps by task.

    >>> import numpy as np
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> model = AdaWidth.fit(documents, recipe="pca")
    >>> model
    AdaWidth(pca rotation of 64 coordinates, no labels, target width 64)
    """

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

        Without labels (`labels=False`, or none given), the frozen full-width ranking is the target. `query_map=True` trains a
        query map on the same labels, as the default task. With many labels its answers are better, but scores are no longer
        those of the frozen encoder.

        >>> queries, qrels = documents[:20] + 0.1, {query: [query] for query in range(20)}
        >>> AdaWidth.fit(documents, queries, qrels, recipe="kyfan").record.chosen
        'kyfan'
        """
        from ..training.extras import require
        from ..training.fit import fit_model

        check_seed(seed)
        if query_map:
            require("torch")
        learning, origin = _learning_from(data, queries, qrels, dev, labels, seed)
        if query_map:
            from ..training.refit import check_labels, learn_task

            check_labels(learning)
        fitted = fit_model(learning, recipe=recipe, reflections=reflections, widths=widths, seed=seed)
        seen, tasks = frozenset(learning.documents.ids[row] for row in learning.positives.tolist()), {}
        if query_map:
            learned = learn_task(fitted.rotation, fitted.policies, learning, chosen_under=fitted.chosen, seed=seed)
            tasks[DEFAULT] = replace(learned, record=replace(learned.record, **origin))
        model = cls(fitted.rotation, fitted.policies, replace(fitted.record, **origin), seen, tasks)
        seen_now = look(model, learning.documents, learning.dev.vectors, learning.dev.own, seed)
        return replace(model, record=replace(model.record, profile=seen_now.profile()))

    @property
    def width(self) -> int:
        """The encoder width D."""
        return self.rotation.width

    @property
    def labelled(self) -> bool:
        """Whether the model was trained on labels."""
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
        """This model with a query map learned from labels, under the name of a task. A task of the same name is replaced.

        The rotation stays as it is, and so does every index made with this model. Grades weigh a query's relevant documents;
        a grade of 0 or below marks a negative. The map is chosen on dev: without a clear gain, it is the rotation alone.

        >>> queries, qrels = documents[:20] + 0.1, {query: [query] for query in range(20)}
        >>> list(model.refit(documents, queries, qrels, task="notes").tasks)
        ['notes']
        """
        from ..training.extras import require

        require("torch")
        from ..training.refit import learn_task

        check_name(task)
        learning, origin = _learning_from(data, queries, qrels, dev, True, seed)
        named = (learning.documents.ids[row] for row in learning.positives.tolist())
        if self.record.chosen not in ("identity", "pca") and not self.seen.isdisjoint(named):
            log.warning(
                "the rotation was trained on these labels, so a map trained on them gains little: `fit` with a query map trains both"
            )
        learned = learn_task(self.rotation, self.policies, learning, seed=seed)
        return replace(self, tasks={**self.tasks, task: replace(learned, record=replace(learned.record, **origin))})

    def task(self, name: str | None = None) -> TaskMap | None:
        """The task of this name. Without a name, the task called "default" if there is one; for "none", None: the rotation alone.

        >>> model.task() is None
        True
        """
        return pick(self.tasks, name)

    def rotate(self, vectors: Any, width: int | None = None) -> F32:
        """Documents for any other index: rotated, cut to `width`, and brought to unit length again. (n, D) -> (n, m)

        >>> model.rotate(documents, width=16).shape
        (200, 16)
        """
        return unit(self.rotation.apply(self._own(vectors).all(), width))

    def rotate_queries(self, vectors: Any, width: int | None = None, task: str | None = None) -> F32:
        """Queries for any other index: rotated, or mapped by a task's query map, cut, and brought to unit length. (n, D) -> (n, m)

        >>> model.rotate_queries(documents[:3], width=16).shape
        (3, 16)
        """
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
        bytes_per_document: int | None = None,
        memory: str | float | None = None,
        hybrid: bool = False,
        force: bool = False,
    ) -> Index:
        """The documents, rotated and ready to search: in memory or, with a `path`, in an index folder on disk.

        Documents of a dataset folder bring the titles, texts and metadata of its corpus.jsonl, unless you give others. On disk,
        `keep` coordinates are stored (all by default), and `storage` says how candidates are found: where it is `pq4`, `ivf`
        or `graph`, by codes of `bytes_per_document` (16, 24, 32 or 48; half of the start width by default). `auto` takes a graph where
        one pays and fits into the `memory` ("2GB") that it is told of. `hybrid` also indexes the words of titles and texts, which hybrid
        search needs (in memory, it does without).

        >>> index = model.index(documents, "notes.index", titles=[f"note {i}" for i in range(200)])
        >>> index.search(documents[7], k=1)[0][0].title
        'note 7'
        """
        given = documents if isinstance(documents, Source) else self._own(documents, ids, "documents")
        without_ids = isinstance(given, Vectors) and isinstance(given.ids, range)
        if isinstance(given, Source) and given.width != self.width:
            raise DataError(f"{given.name}: documents are {given.width} wide, the model {self.width}: use the model's own encoder")
        described = titles is not None or texts is not None or metadata is not None
        source = given if isinstance(given, Source) else of_vectors(given, titles, texts, metadata) if described else of_loaded(given)
        if path is None:
            if keep is not None or storage != "auto" or bytes_per_document is not None or memory is not None:
                options = f"keep={keep!r}, storage={storage!r}, bytes_per_document={bytes_per_document!r}, memory={memory!r}"
                raise OptionError(f"{options}: an index in memory holds all coordinates as they are: give a path as well")
            store: Store = MemoryStore(self.rotation, numbered=without_ids)
            store.write(source)
            return Index(self, store)
        finding = Finding(storage, bytes_per_document, memory)
        model, kept = (self, None) if keep is None else (self._cut(keep), int(keep))
        targets = [policies.taper.target for policies in (model.policies, *(task.policies for task in model.tasks.values()))]
        with atomic_folder(path, INDEX, force=force) as folder:
            model.save(folder / "model")
            start, target = model.policies.choose().start, min(targets)
            index = IndexFolder.create(
                folder, self.rotation, start=start, ladder=LADDER, target=target, keep=kept, numbered=without_ids,
                finding=finding,
            )  # fmt: skip
            with index:
                if hybrid:
                    index.compact(hybrid=True)
                index.write(source)
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
        """The same model where only `keep` coordinates are stored: its policies read no further."""
        if not isinstance(keep, int | np.integer) or isinstance(keep, bool) or not 1 <= keep <= self.width:
            raise OptionError(f"keep {keep!r} is not a whole number between 1 and the encoder width {self.width}")
        keep, target = int(keep), self.policies.taper.target
        if keep < target:
            log.warning("%d coordinates are kept of the %d that searches read to: answers are those of %d", keep, target, keep)
        tasks = {name: replace(task, policies=task.policies.cut(keep)) for name, task in self.tasks.items()}
        return replace(self, policies=self.policies.cut(keep), tasks=tasks)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Writes the model folder.

        >>> model.save("notes.model")
        >>> AdaWidth.load("notes.model").width
        64
        """
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
        """Reads a model folder. One that is damaged, newer, or not a model is refused.

        >>> model.save("notes.model")
        >>> AdaWidth.load("notes.model").rotation.fingerprint == model.rotation.fingerprint
        True
        """
        config, tensors = read_model(path)
        try:
            rotation = stored_rotation(config, tensors)
            policies = Policies.of(rotation.width, config, tensors)
            return cls(rotation, policies, record_of(config, Record), seen_of(config), stored_tasks(config, tensors, rotation))
        except ArtifactError as error:
            raise ArtifactError(f"{path}: config.json and model.safetensors do not make a model: {error}: save it again") from None


def open_index(path: StrPath, model: AdaWidth | None = None, *, encoder: str | Encoder | None = None, trust_encoder: bool = False) -> Index:
    """An index folder, ready to search with the model it was made with, or with another model of the same rotation.

    `encoder` names the encoder for texts, if it is not recorded or has moved. `trust_encoder` loads the recorded one even
    if it must be downloaded, or is a folder or an endpoint. Opening also loads compiled code, which takes half a second, so
    that the first search need not.

    >>> import numpy as np
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> index = AdaWidth.fit(documents, recipe="pca").index(documents, "notes.index")
    >>> with open_index("notes.index") as index:
    ...     index.search(documents[7])[0][0].id
    7
    """
    store = IndexFolder(path)
    index = Index(AdaWidth.load(store.path / "model") if model is None else model, store, encoder, trust_encoder=trust_encoder)
    get_ready(index.model.policies.choose(coded=store.view.start), index.model.width)
    warn_if_grown(index.model, len(index))
    return index


def _learning_from(
    data: Any,
    queries: Any,
    qrels: QrelsLike,
    dev: QrelsLike,
    labels: bool | None,
    seed: int,
) -> tuple[Learning, dict[str, Any]]:
    """What a fit may see, and where it comes from, for the record."""
    if not isinstance(data, Dataset):
        return _learning(Vectors.of(data, name="documents"), queries, qrels, dev, labels, seed), {"dataset": "arrays", "encoder": ""}
    if queries is not None or qrels is not None or dev is not None:
        raise OptionError("a Dataset brings its own queries and labels: give either a Dataset or arrays")
    labels = "train" in data.qrels if labels is None else labels
    return data.learning(labels=labels, seed=seed), data.origin


def _learning(documents: Vectors, queries: Any, qrels: QrelsLike, dev: QrelsLike, labels: bool | None, seed: int) -> Learning:
    """Train and dev queries from arrays. Queries that `dev` labels are for choosing, all others for training."""
    if queries is None:
        if qrels is not None:
            raise OptionError("labels without queries: give the queries that the labels speak of")
        none = Queries(documents.select([]), None, np.empty(0, np.int64))
        return Learning(documents, none, none)
    vectors = Vectors.of(queries, name="queries")
    if labels and qrels is None:
        raise OptionError("labels=True, but no qrels were given")
    if qrels is None or labels is False:
        train, dev_queries = held_out(Queries(vectors, None, np.full(len(vectors), -1)), seed)
        return Learning(documents, train, dev_queries)
    parts = []
    for name, given in (("qrels", qrels), ("dev", dev)):
        if given is not None:
            known = Qrels.of(given, name).known(vectors, documents)
            rows = vectors.select([vectors.row_of[q] for q in known.grades])
            parts.append(Queries(rows, known.judged(rows, documents), np.full(len(rows), -1)))
    train, dev_queries = parts if len(parts) == 2 else held_out(parts[0], seed)
    return Learning(documents, train, dev_queries)
