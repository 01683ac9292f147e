"""In front of faiss: rotated vectors in an index of your own, alone or with AdaWidth reading on behind it.

python in_front_of_faiss.py
"""

import faiss
import numpy as np

from adawidth import AdaWidth, bundled, load_dataset


def main() -> None:
    data = load_dataset(bundled.path())
    model = AdaWidth.fit(data.documents, data.queries_of("train").all()[:300], recipe="pca")
    asked = data.queries_of("test")
    exact = np.array(model.index(data.documents).search(asked, k=10, width="full").rows)

    # 1. faiss alone, on 64 of 384 coordinates
    mine = faiss.IndexHNSWFlat(64, 32, faiss.METRIC_INNER_PRODUCT)
    mine.add(model.rotate(data.documents, width=64))
    _, alone = mine.search(model.rotate_queries(asked, width=64), 10)

    # 2. the same index finds candidates, and the taper reads on where a rank is in doubt
    behind = model.index(data.documents).with_finder(mine).search(asked, k=10)

    for name, rows in (("faiss at 64", alone), ("faiss and AdaWidth", behind.rows)):
        found = np.mean([len(set(ours) & set(full)) / 10 for ours, full in zip(rows.tolist(), exact.tolist(), strict=True)])
        print(f"{name:20} recall@10 {found:.3f}")
    print(f"mean width {behind.mean_width:.0f} of {model.width}")


if __name__ == "__main__":
    main()
