"""Names for arrays and the like, used everywhere. Shapes stand beside each use."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Id = str | int  # of a document or a query: a string, or a row number where plain arrays were given
StrPath = str | os.PathLike[str]
Recipe = Literal["auto", "paper", "pca", "kyfan", "identity"]  # how a rotation is made
BYTES = (16, 24, 32, 48)  # that the codes of a document may take, where they have fewer than eight bits per coordinate
Storage = Literal["auto", "flat", "int8", "pq4", "ivf", "graph"]  # how an index folder finds candidates

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]  # of any precision
F16 = NDArray[np.float16]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]  # documents by their place, -1 for none
Widths = NDArray[np.int64]
