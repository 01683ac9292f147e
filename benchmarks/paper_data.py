"""Makes the datasets of `make paper` that don't come with vectors: texts encoded by wordllama, and five collections in one corpus.

    python benchmarks/paper_data.py ../shared/datasets --out build/paper-data

What is there already is left as it is.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

from adawidth import load_dataset
from adawidth.data import Dataset, Qrels, Vectors
from adawidth.encoders import encode_dataset, load_encoder
from adawidth.formats import write_qrels, write_vectors

ENCODER = "wordllama"
TEXTS = ("insuranceqa", "acl")
UNION = ("scifact", "medquad", "nl2bash", *TEXTS)


def encoded(source: Path, out: Path) -> None:
    """A copy of a dataset folder, with vectors."""
    shutil.copytree(source, out, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for folder in (out, *(path for path in out.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # the source may be read-only
    made = encode_dataset(out, load_encoder(ENCODER), ENCODER)
    print(f"{out.name}: {made['documents']:,} documents, {made['queries']:,} queries")


def union(parts: list[Dataset], out: Path) -> None:
    """All documents and queries in one dataset; each query keeps its own labels, each id gets its collection's name in front."""
    home = out / "embeddings" / ENCODER
    home.mkdir(parents=True, exist_ok=True)
    (out / "qrels").mkdir(exist_ok=True)
    for split in ("train", "dev", "test"):
        grades = {
            f"{part.name}:{query}": {f"{part.name}:{document}": grade for document, grade in judged.items()}
            for part in parts
            if split in part.qrels
            for query, judged in part.qrels[split].grades.items()
        }
        write_qrels(out / "qrels" / f"{split}.tsv", Qrels(grades))
    for side in ("queries", "corpus"):  # the corpus last: it makes the folder a dataset
        vectors = [part.documents if side == "corpus" else part.queries for part in parts]
        ids = [f"{part.name}:{name}" for part, found in zip(parts, vectors, strict=True) for name in found.ids]
        write_vectors(home / f"{side}.npy", Vectors(np.concatenate([found.all() for found in vectors]).astype(np.float16), ids))
        print(f"{out.name}: {len(ids):,} {side}")


def main() -> None:
    """Makes what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build/paper-data"))
    options = parser.parse_args()
    for name in TEXTS:
        if not (options.out / name / "embeddings" / ENCODER).exists():
            encoded(options.datasets / name, options.out / name)
    if not (options.out / "union" / "embeddings" / ENCODER / "corpus.npy").exists():
        folders = [options.out / name if name in TEXTS else options.datasets / name for name in UNION]
        union([load_dataset(folder, ENCODER) for folder in folders], options.out / "union")


if __name__ == "__main__":
    main()
