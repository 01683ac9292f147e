"""MTEB: an index backend, so that any of its retrieval tasks runs through the adaptive index, and an encoder for all its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data import as_matrix
from ..encoders import Encoder, load_encoder, short_name
from ..encoders.base import Role
from ..errors import OptionalDependencyError, OptionError
from ..model import AdaWidth, Index
from ..types import F32, Floats

try:
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.models.search_wrappers import SearchEncoderWrapper
    from mteb.types import PromptType
except ModuleNotFoundError:
    raise OptionalDependencyError("mteb", "mteb") from None

Found = tuple[list[list[float]], list[list[int]]]  # scores and places, best first


class AdaWidthSearchIndex:
    """A search backend of MTEB: `SearchEncoderWrapper(encoder, index_backend=AdaWidthSearchIndex(model, budget=96))`.

    It takes the encoder's own vectors and scores by cosine, whatever the encoder's similarity. Without a `model`, one is fitted on each
    task's documents (PCA, no labels). `search` is what `index.search` takes. `mean_width` is that of the last search.
    """

    def __init__(self, model: AdaWidth | None = None, **search: Any) -> None:
        self.mean_width: float | None = None
        self._model, self._search = model, search
        self._parts: list[Floats] = []
        self._ids: list[str] = []
        self._index: Index | None = None

    def add_documents(self, embeddings: Any, idxs: Sequence[str]) -> None:
        """Takes documents in; their places count on."""
        self._parts.append(as_matrix(embeddings, "documents"))
        self._ids += list(idxs)
        self._index = None

    def search(
        self,
        embeddings: Any,
        top_k: int,
        similarity_fn: Callable[..., Any] | None = None,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        query_idx_to_id: Mapping[int, str] | None = None,
    ) -> Found:
        """Scores and places of the best documents; with `top_ranked`, of those alone, at full width, by their places in its lists."""
        queries = np.asarray(as_matrix(embeddings, "queries"), np.float32)
        index = self._made()
        if top_ranked is None:
            hits = index.search(queries, top_k, **{"shortlist": max(500, top_k), **self._search})
            self.mean_width = hits.mean_width
            return [[hit.score for hit in answer] for answer in hits], [[int(name) for name in names] for names in hits.ids]
        if query_idx_to_id is None:
            raise OptionError("reranking needs query_idx_to_id, the id of each query")
        rotated = index.model.rotate_queries(queries)
        candidates = [list(top_ranked.get(query_idx_to_id[place], ())) for place in range(len(queries))]
        ranked = [self._ranked(index, query, names, top_k) for query, names in zip(rotated, candidates, strict=True)]
        return [scores for scores, _ in ranked], [places for _, places in ranked]

    def clear(self) -> None:
        """Forgets all documents."""
        self._parts, self._ids, self._index = [], [], None

    def _made(self) -> Index:
        if not self._parts:
            raise OptionError("there are no documents yet: add_documents comes first")
        if self._index is None:
            documents = np.concatenate(self._parts)
            model = AdaWidth.fit(documents, recipe="pca") if self._model is None else self._model
            self._index = model.index(documents)
            self._place = {name: place for place, name in enumerate(self._ids)}
        return self._index

    def _ranked(self, index: Index, query: F32, names: Sequence[str], k: int) -> tuple[list[float], list[int]]:
        if not names:
            return [], []
        scores = index.vectors([self._place[name] for name in names]) @ query
        best = np.argsort(-scores, kind="stable")[:k]
        return scores[best].tolist(), best.tolist()


class AdaWidthEncoder(AbsEncoder):
    """An encoder of AdaWidth for MTEB: its own vectors or, with a `model`, rotated ones, cut to `width`. `task` names a query map."""

    def __init__(self, encoder: str | Encoder, model: AdaWidth | None = None, *, width: int | None = None, task: str | None = None) -> None:
        self.model = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self._adawidth, self._width, self._task = model, width, task
        if model is None and width is not None:
            raise OptionError(f"width {width}: only a model's rotated vectors are cut; give the model too")
        name, revision = short_name(self.model.name), self.model.fingerprint
        if model is not None:
            name, revision = f"{name}-{width or model.width}", f"{revision}-{model.rotation.fingerprint}"
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": f"adawidth/{name}",
                "revision": revision,
                "embed_dim": width or self.model.width,
                "similarity_fn_name": ScoringFunction.COSINE,
            }
        )

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> F32:
        """Vectors of the texts, in order. What is no query is taken for a document."""
        role: Role = "query" if prompt_type == PromptType.query else "document"
        vectors = np.concatenate([self.model.encode(list(batch["text"]), role) for batch in inputs])
        if self._adawidth is None:
            return vectors
        if role == "query":
            return self._adawidth.rotate_queries(vectors, self._width, self._task)
        return self._adawidth.rotate(vectors, self._width)


def adaptive(encoder: str | Encoder, model: AdaWidth | None = None, **search: Any) -> SearchEncoderWrapper:
    """What `mteb.evaluate` takes: an encoder in front of the adaptive index. `search` is what `index.search` takes."""
    return SearchEncoderWrapper(AdaWidthEncoder(encoder), index_backend=AdaWidthSearchIndex(model, **search))
