"""scikit-learn: a rotation as a transformer, and a planner that says how many coordinates are enough."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..data import Vectors, unit
from ..errors import OptionalDependencyError
from ..model import AdaWidth
from ..rotation import Rotation, sampled_rows
from ..stages.memory import MemoryBackend
from ..types import F32, Floats

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    raise OptionalDependencyError("scikit-learn", "sklearn") from None

WIDTHS = 32  # that a planner tries, at most: from 1 on, each some share wider


class _Cut(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows in, fewer and other columns out, float32."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _read(self, X: Any, *, reset: bool = False) -> F32:
        """Rows as float32, unit length; a zero row stays zero."""
        if not reset:
            check_is_fitted(self)
        return unit(validate_data(self, X, reset=reset, dtype=np.float64))  # squares of large float32 numbers would overflow


class RotationTransformer(_Cut):
    """Rows of unit length, rotated and cut to `width`, unit length again: that of `model`, or the principal axes of what it is fitted on.

    Fitted attributes: `rotation_`, `width_`.
    """

    def __init__(self, width: int | None = None, model: AdaWidth | None = None) -> None:
        self.width = width
        self.model = model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns the axes; with a `model`, only checks the number of columns."""
        rows = self._read(X, reset=True)
        whole = rows.shape[1]
        if self.model is not None and self.model.width != whole:
            raise ValueError(f"X has {whole} features, but the model is {self.model.width} wide: use the model's own encoder")
        if self.width is not None and not 1 <= self.width <= whole:
            raise ValueError(f"width={self.width} is not between 1 and n_features={whole}")
        self.rotation_ = Rotation.pca(Vectors(rows, range(len(rows)))) if self.model is None else self.model.rotation
        self.width_ = self._n_features_out = whole if self.width is None else int(self.width)
        return self

    def transform(self, X: Any) -> F32:
        """(n, D) -> (n, width_)"""
        rows = self._read(X)
        return unit(self.rotation_.apply(rows, self.width_))

    def inverse_transform(self, X: Any) -> F32:
        """Back to the encoder's coordinates; what was cut off is lost. (n, width_) -> (n, D)"""
        check_is_fitted(self)
        cut = np.asarray(X, np.float32)
        return self.rotation_.invert(np.pad(cut, ((0, 0), (0, self.rotation_.width - cut.shape[1]))))


class WidthPlanner(_Cut):
    """Finds the smallest width at which rows keep the share `quality` of the k nearest rows that they have at full width, and cuts there.

    Put it behind a RotationTransformer. No labels are needed: at most `queries` rows ask for their neighbours among all others.
    Fitted attributes: `width_`; `widths_` and `kept_`, the share kept at each width.
    """

    def __init__(self, k: int = 10, quality: float = 0.95, queries: int = 500, random_state: int = 0) -> None:
        self.k = k
        self.quality = quality
        self.queries = queries
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measures the share of neighbours that each width keeps."""
        rows = self._read(X, reset=True)
        whole = rows.shape[1]
        self.widths_ = np.unique(np.geomspace(1, whole, WIDTHS).round().astype(np.int64))
        self.kept_ = self._kept(rows)
        self.width_ = self._n_features_out = int(self.widths_[self.kept_ >= min(self.quality, 1.0)][0])
        return self

    def transform(self, X: Any) -> F32:
        """The leading columns, unit length. (n, D) -> (n, width_)"""
        return unit(self._read(X)[:, : self.width_])

    def _kept(self, rows: F32) -> Floats:
        backend = MemoryBackend(Vectors(rows, range(len(rows))), Rotation.identity(rows.shape[1]))
        asked = sampled_rows(len(rows), self.queries, self.random_state)
        k = min(self.k, len(rows) - 1)
        if k < 1:
            return np.ones(len(self.widths_))
        near = [backend.search(rows[asked], int(width), k, own=asked).candidates for width in self.widths_]
        shares = [np.mean([np.isin(one, other).mean() for one, other in zip(near[-1], found, strict=True)]) for found in near]
        return np.array(shares)
