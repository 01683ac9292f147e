"""Inside PostgreSQL: documents are pushed once, pgvector finds candidates at the start width, and the survivors are read on there.

python pgvector.py postgresql://user@host/database          (needs the extra pgvector, and pgvector 0.8 in the database)
"""

import sys

from adawidth import AdaWidth, bundled, connect, load_dataset
from adawidth.cli.app import app


def main(url: str) -> None:
    data = load_dataset(bundled.path())
    AdaWidth.fit(data.documents).save("docstrings.model", force=True)
    push = f"push docstrings.model {bundled.path()} --to pgvector --url {url} --collection docstrings"  # as you would type it
    app(push.split(), standalone_mode=False)

    index = connect(url, collection="docstrings")  # the model is in the database, too
    print(f"{len(index):,} documents in PostgreSQL")
    hits = index.search(data.queries_of("test"), k=3, budget=96)  # coordinates per candidate; without, what is cheapest
    for query, answer in zip(data.queries_of("test").ids[:3], hits, strict=False):
        print(bundled.query_text_of(str(query)), "->", [hit.id for hit in answer])
    print(f"read {hits.mean_width:.0f} of {index.width} coordinates per candidate")


if __name__ == "__main__":
    main(*sys.argv[1:])
