"""The fitted models that several benchmarks share: fitted once, kept in benchmarks/.models, read back after that."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from adawidth import AdaWidth, Dataset, load_dataset

KEPT = Path(__file__).parent / ".models"
ENCODERS = ("minilm", "wordllama")


def datasets(folder: Path, encoders: tuple[str, ...] = ENCODERS) -> Iterator[Dataset]:
    """Every dataset folder below `folder` with each of the encoders it has vectors of."""
    for path in sorted(p for p in folder.iterdir() if (p / "embeddings").is_dir()):
        for encoder in encoders:
            if (path / "embeddings" / encoder).is_dir():
                yield load_dataset(path, encoder=encoder)


def fitted(data: Dataset, *, seed: int = 0, labels: bool = True, recipe: str = "auto", anew: bool = False) -> AdaWidth:
    """The model of `AdaWidth.fit(data, …)`; its record says how many seconds the fit took."""
    path = KEPT / f"{data.name}-{data.encoder}-{recipe}-{'labels' if labels else 'no-labels'}-{seed}"
    if path.exists() and not anew:
        return AdaWidth.load(path)
    start = time.perf_counter()
    model = AdaWidth.fit(data, recipe=recipe, labels=labels, seed=seed)
    model.record["fit_seconds"] = round(time.perf_counter() - start, 1)
    KEPT.mkdir(exist_ok=True)
    model.save(path, force=True)
    return model


def forget() -> None:
    """Drops every kept model."""
    shutil.rmtree(KEPT, ignore_errors=True)
