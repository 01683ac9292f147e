"""Inside PostgreSQL: documents are pushed once, pgvector finds candidates at the start width, and the survivors are read on in the database.

python pgvector.py postgresql://user@host/database          (needs the extra pgvector, and pgvector 0.8 in the database)
"""

import sys

from adawidth import AdaWidth, bundled, connect, load_dataset
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import push


def main(url: str) -> None:
    data = load_dataset(bundled.path())
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    documents = data.documents.select(range(500))
    titles = [str(name) for name in documents.ids]
    push(model, of_vectors(documents, titles, metadata=[{"module": name.partition(".")[0]} for name in titles]), url, "docstrings")

    index = connect(url, collection="docstrings")  # the model is in the database, too
    print(f"{len(index)} documents in PostgreSQL")
    (answer,) = index.search(documents.read(slice(7, 8)), k=3)
    print("nearest to", documents.ids[7], "->", [hit.title for hit in answer])
    module = str(documents.ids[7]).partition(".")[0]
    (answer,) = index.search(documents.read(slice(7, 8)), k=3, where={"module": module})
    print("in the same module ->", [hit.title for hit in answer], f"mean width {answer.mean_width:.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
