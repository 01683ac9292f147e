"""Are nomic-embed-text-v1.5's vectors through our own `encode` those of another implementation of it?

    python tools/nomic_folder.py nomic-embed-text-v1.5.f16.gguf nomic-embed-text-v1.5
    python benchmarks/nomic.py nomic-embed-text-v1.5 --texts ../shared/datasets/nl2bash --vectors ../shared/datasets/nl2bash-nomic

Encodes a sample of queries and documents with the preset's prompts, and compares cosines. Writes results/nomic.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from adawidth.encoders import load_encoder
from adawidth.formats import load_dataset

RESULT = Path(__file__).parent / "results" / "nomic.json"


def cosines(encoder, texts: Path, vectors, kind: str, sample: int) -> np.ndarray:
    """Of our vectors with the others, for texts drawn at random."""
    known = {str(name): row for row, name in enumerate(vectors.ids)}
    with (texts / f"{kind}.jsonl").open(encoding="utf-8") as file:
        rows = [row for line in file if (row := json.loads(line))["_id"] in known]
    drawn = [rows[place] for place in np.random.default_rng(0).choice(len(rows), min(sample, len(rows)), replace=False)]
    role = "query" if kind == "queries" else "document"
    found = encoder.encode([f"{row.get('title') or ''} {row['text']}".strip()[:2000] for row in drawn], role)
    others = vectors.all()[[known[row["_id"]] for row in drawn]]
    return (found * others).sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=150)
    options = parser.parse_args()
    encoder = load_encoder(options.model)
    encoder._model.max_seq_length = 64  # as the others were made
    data = load_dataset(options.vectors, "nomic")
    result = {
        "command": "python benchmarks/nomic.py nomic-embed-text-v1.5 --texts nl2bash --vectors nl2bash-nomic",
        "prompts": encoder.prompts,
    }
    for kind, vectors in (("queries", data.queries), ("corpus", data.documents)):
        found = cosines(encoder, options.texts, vectors, kind, options.sample)
        result[kind] = {"texts": len(found), "least_cosine": round(float(found.min()), 6), "mean_cosine": round(float(found.mean()), 6)}
        print(kind, result[kind])
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
