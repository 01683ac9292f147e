"""Your own vectors, as plain arrays: fit, index, search, and what was saved. Replace the first function by your own data.

python own_vectors.py
"""

import numpy as np
from numpy.typing import NDArray

from adawidth import AdaWidth, bundled, load_dataset


def arrays() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Documents and queries, one vector per row: here some that come with the package."""
    data = load_dataset(bundled.path())
    return data.documents.all(), data.queries_of("train").all()[:300]


def main() -> None:
    documents, queries = arrays()
    model = AdaWidth.fit(documents, queries[:-5], recipe="pca")  # leave recipe out to learn a better rotation
    index = model.index(documents, path="own.index", force=True)
    print(f"{len(index):,} documents of {model.width} coordinates are in {index.path}")

    hits = index.search(queries[-5:], k=3)
    full = index.search(queries[-5:], k=3, width="full")
    for fast, exact in zip(hits, full, strict=True):
        print([hit.id for hit in fast], "full width:", [hit.id for hit in exact])
    print(f"read {hits.mean_width:.0f} of {model.width} coordinates per candidate")


if __name__ == "__main__":
    main()
