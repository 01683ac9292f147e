"""What is served, in figures: the index, its model card, and queries to try."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..model import AdaWidth, Index
from ..model.card import describe
from ..policies.taper import Taper

if TYPE_CHECKING:
    from .service import Service

SENTENCE = re.compile(r"(?<=[.!?])\s")
SHORTEST, LONGEST = 12, 120  # characters of an example
WORDS = 3  # of a title that is taken
LOOKED_AT = 100  # documents, for what is known of them


def facts(service: Service) -> dict[str, Any]:
    """As /v1/index gives it: no paths, and nothing of the machine."""
    index, settings = service.index, service.settings
    model, known = index.model, index.facts()
    ids = list(islice(iter(index), LOOKED_AT))
    some = index.documents(ids) if ids else []
    worded = known.get("storage") == "memory" and any(one.title or one.text for one in some)
    policies = ["taper", "fixed", "certify", *(["router"] if model.policies.router is not None else [])]
    return {
        "name": index.path.name if index.path is not None else str(known.get("engine", "memory")),
        "version": __version__,
        "documents": len(index),
        "encoder": str(model.record.encoding.get("encoder") or model.record.encoder),
        "encoder_width": model.width,
        "width": index.width,
        "start_width": model.policies.choose(coded=index.store.view.start).start,
        "target_width": min(model.policies.taper.target, index.width),
        "storage": str(known.get("storage") or known.get("engine") or "memory"),
        "commit": known.get("commit"),
        "numbered": bool(known.get("numbered", any(isinstance(one, int) for one in ids[:1]))),
        "text": index.takes_text,
        "hybrid": bool(known.get("hybrid", worded)),
        "fields": sorted({str(name) for one in some for name in one.metadata}),
        "writable": settings.key is not None,
        "policies": [*policies, *(["paper-router"] if model.policies.paper_router is not None else [])],
        "tasks": list(model.tasks),
        "fitted_documents": model.record.documents,
        "limits": {
            "batch": settings.largest_batch,
            "k": settings.largest_k,
            "shortlist": settings.largest_shortlist,
            "filter": settings.longest_filter,
            "text": settings.longest_text,
            "body": settings.largest_body,
            "rate": settings.rate,
        },
    }


def card(model: AdaWidth) -> dict[str, Any]:
    """As /v1/index/card gives it."""
    record, taper = model.record, model.policies.taper
    recipes = [{"recipe": trial.recipe, "steps": trial.steps, "mean": trial.mean, "widths": dict(trial.dev)} for trial in record.trials]
    curves = [
        {
            "start_width": calibration.ladder[0],
            "k": curve.k,
            "points": [{"mean_width": m, "quality": q} for m, q in zip(curve.widths.tolist(), curve.quality.tolist(), strict=True)],
        }
        for calibration, found in zip(taper.calibrations, taper.curves, strict=True)
        for curve in found
    ]
    return {
        "dataset": record.dataset,
        "encoder": record.encoder,
        "labels": record.labels,
        "documents": record.documents,
        "train_queries": record.train_queries,
        "dev_queries": record.dev_queries,
        "measure": record.dev_measure,
        "chosen": record.chosen,
        "reason": record.reason,
        "target_width": taper.target,
        "recipes": recipes,
        "fixed": dict(taper.fixed),
        "taper": curves,
        "card": describe(record, model.width, {name: task.record for name, task in model.tasks.items()}),
    }


def expected_width(index: Index) -> float:
    """The mean width that the default policy had on dev."""
    taper, policy = index.model.policies.taper, index.model.policies.choose(coded=index.store.view.start)
    if not isinstance(policy, Taper) or policy.start not in taper.starts:
        return float(policy.reach)
    curves = taper.curves[taper.starts.index(policy.start)]
    curve = next((one for one in curves if one.k >= policy.k), curves[-1])
    return float(curve.widths[-1] if np.isinf(policy.z) else np.interp(policy.z, curve.z[:-1], curve.widths[:-1]))


def examples(index: Index, count: int) -> list[dict[str, Any]]:
    """Titles or first sentences of documents from all over the index."""
    step = max(1, len(index) // (4 * count))
    ids = list(islice(iter(index), 0, None, step))[: 4 * count]
    found: dict[str, Any] = {}
    for document in index.documents(ids) if ids else ():
        worded = document.title if len(document.title.split()) >= WORDS else SENTENCE.split(document.text.strip(), maxsplit=1)[0]
        text = " ".join(worded.split())
        if SHORTEST <= len(text) <= LONGEST:
            found.setdefault(text, document.id)
    return [{"text": text, "document": name} for text, name in found.items()][:count]
