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
    """The model of `AdaWidth.fit(data, …)`; `seconds` says how long the fit took."""
    path = KEPT / f"{data.name}-{data.encoder}-{recipe}-{'labels' if labels else 'no-labels'}-{seed}"
    if path.exists() and not anew:
        return AdaWidth.load(path)
    start = time.perf_counter()
    model = AdaWidth.fit(data, recipe=recipe, labels=labels, seed=seed)
    taken = round(time.perf_counter() - start, 1)
    KEPT.mkdir(exist_ok=True)
    model.save(path, force=True)
    (KEPT / f"{model.rotation.fingerprint}.seconds").write_text(str(taken))
    return model


def seconds(model: AdaWidth) -> float | None:
    """How long a kept model took to fit, if that is known."""
    file = KEPT / f"{model.rotation.fingerprint}.seconds"
    return float(file.read_text()) if file.is_file() else None


def forget() -> None:
    """Drops every kept model."""
    shutil.rmtree(KEPT, ignore_errors=True)
