"""No labels anywhere: how much of the full-width answer is kept, and how little is read, at several settings.

python without_labels.py
"""

from adawidth import AdaWidth, Hits, bundled, load_dataset


def kept(some: Hits, full: Hits) -> float:
    """The mean share of the full width's top 10 that is found."""
    pairs = zip(some.ids, full.ids, strict=True)
    return sum(len(set(ours) & set(exact)) / len(exact) for ours, exact in pairs) / len(full)


def main() -> None:
    data = load_dataset(bundled.path())
    documents, queries, asked = data.documents.all(), data.queries_of("train").all()[:300], data.queries_of("test").all()
    model = AdaWidth.fit(documents, queries, recipe="pca")  # the target is the encoder's own ranking
    index = model.index(documents)

    full = index.search(asked, k=10, width="full")
    settings = {
        "64 coordinates, fixed": {"width": 64},
        "budget 64": {"budget": 64},
        "quality .99": {"quality": 0.99},
        "quality .999": {"quality": 0.999},
    }
    for name, options in settings.items():
        hits = index.search(asked, k=10, **options)
        print(f"{name:22} {kept(hits, full):.3f} of the top 10, {hits.mean_width:5.1f} of {model.width} coordinates read")


if __name__ == "__main__":
    main()
