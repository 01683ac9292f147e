"""How many dimensions do I need? Measured on labelled queries, with an interval, and a reason where the data can't say.

python plan_width.py
"""

from adawidth import Rotation, WidthLaw, bundled, load_dataset


def main() -> None:
    data = load_dataset(bundled.path())
    rotations = {"as encoded": None, "PCA": Rotation.pca(data.documents)}
    for name, rotation in rotations.items():
        law = WidthLaw.fit(data, rotation=rotation, quantile=0.5, queries=300)
        for documents in (3_000, 6_000, 100_000_000):
            answer = law.predict(documents, k=10)
            said = (
                f"{answer.width:.0f} coordinates, {answer.interval[0]:.0f} to {answer.interval[1]:.0f}" if answer.width else answer.reason
            )
            print(f"{name:11} {documents:>11,} documents: {said}")


if __name__ == "__main__":
    main()
