"""What a folder holds, as JSON: a model's card in figures, or the counts of a dataset or an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import DataError
from ..formats import encoders_in, load_dataset
from ..formats.files import existing
from ..index import IndexFolder
from ..model import AdaWidth


def facts_of(path: Path) -> dict[str, Any]:
    """The object that `adawidth info --json` prints."""
    if (path / "manifest.sqlite").is_file():
        with IndexFolder(path) as index:
            return index.facts()
    if (path / "config.json").is_file():
        size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
        return model_facts(AdaWidth.load(path)) | {"bytes": size}
    if (path / "embeddings").is_dir():
        return dataset_facts(path)
    if existing(path / "corpus.jsonl") is not None:
        raise DataError(f"{path}: texts without vectors: `adawidth encode {path} --model minilm`, or another encoder, makes them")
    found = "no such folder" if not path.is_dir() else "no manifest.sqlite, config.json or embeddings/ in it"
    raise DataError(f"{path}: {found}: give a model folder, an index folder or a dataset folder")


def model_facts(model: AdaWidth) -> dict[str, Any]:
    """A model: what it was fitted on, the recipes tried with their dev figures, and its policies."""
    record, taper, routers = model.record, model.policies.taper, (model.policies.router, model.policies.paper_router)
    return {
        "kind": "model",
        "encoder": record.encoder,
        "encoder_width": model.width,
        "dataset": record.dataset,
        "labels": model.labelled,
        "seed": record.seed,
        "documents": record.documents,
        "train_queries": record.train_queries,
        "dev_queries": record.dev_queries,
        "seen_documents": len(model.seen),
        "recipe": record.chosen or model.rotation.kind,
        "reason": record.reason,
        "fingerprint": model.rotation.fingerprint,
        "dev_measure": record.dev_measure,
        "trials": [trial.to_json() for trial in record.trials],
        "taper": {"target": taper.target, "starts": list(taper.starts), **taper.config()},
        **{part: None if found is None else found.config() for part, found in zip(("router", "paper_router"), routers, strict=True)},
        "tasks": [{"task": name, **task.record.to_json(), "seen_documents": len(task.seen)} for name, task in model.tasks.items()],
    }


def dataset_facts(path: Path) -> dict[str, Any]:
    """A dataset folder: documents, queries and width of each encoder, queries and judgements of each split."""
    encoders = encoders_in(path)
    if not encoders:
        raise DataError(f"{path / 'embeddings'}: there are no vectors in it")
    loaded = [load_dataset(path, encoder, skip_unknown=True) for encoder in encoders]
    return {
        "kind": "dataset",
        "dataset": loaded[0].name,
        "queries_are_documents": loaded[0].queries_are_documents,
        "encoders": [
            {"encoder": d.encoder, "documents": len(d.documents), "queries": len(d.queries), "encoder_width": d.documents.width}
            for d in loaded
        ],
        "splits": [
            {"split": split, "queries": len(qrels), "judgements": sum(map(len, qrels.grades.values()))}
            for split, qrels in loaded[0].qrels.items()
        ],
    }
