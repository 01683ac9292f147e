"""The same work over shards: Arrow in, Arrow out, in this process or on Ray. One kernel (arrow.py) serves commands, Ray, Dask and Spark.
Nothing here is imported by what lies below; pyarrow and Ray load on use."""

from .arrow import Rotate
from .encode import encode
from .evaluate import evaluate
from .fit import fit
from .margins import margin_matrix
from .moments import find, gather, mine, second_moment
from .push import push
from .rotate import rotate
from .shards import Shard, shards_of

__all__ = [
    "Rotate",
    "Shard",
    "encode",
    "evaluate",
    "find",
    "fit",
    "gather",
    "margin_matrix",
    "mine",
    "push",
    "rotate",
    "second_moment",
    "shards_of",
]
