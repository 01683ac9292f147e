"""The rival of benchmarks/query_map.py: one dense map for queries and documents alike, x̂ = x + A x + b, so that documents are encoded anew.

Losses, candidates, steps, looks on dev, widths and start (PCA) are the query map's own.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from adawidth import Dataset, Rotation, Vectors
from adawidth.data import unit
from adawidth.index import MemoryIndex
from adawidth.metrics import evaluate
from adawidth.search import by_stages, exhaustive
from adawidth.training.fused import prefix_objective
from adawidth.training.pool import sample
from adawidth.training.query_map import LOOK, MEASURE, PATIENCE, RECIPES, Change, Lesson, MapRecipe, Ranker
from adawidth.training.rotation import CLIP, endless_batches, imagine, warm_cosine
from adawidth.training.taper import fit_taper
from adawidth.training.task import mean

LOOKED_AT = 500


def learned(recipe: MapRecipe, lesson: Lesson, seed: int) -> tuple[Change, float]:
    """The map at the best look, and its mean on dev."""
    task, rng = lesson.task, np.random.default_rng(seed)
    matrix, bias = torch.zeros(task.width, task.width, requires_grad=True), torch.zeros(task.width, requires_grad=True)
    optimiser = torch.optim.AdamW([matrix, bias], lr=recipe.rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: warm_cosine(step, recipe.steps))
    queries, documents = torch.from_numpy(task.queries), torch.from_numpy(task.documents)
    looked_at, batches = task.without_dev_beyond(LOOKED_AT), endless_batches(task.candidates.usable(), recipe.batch, rng)
    best, best_at, best_score = None, 0, -1.0
    for step in range(1, recipe.steps + 1):
        rows, mask = task.candidates.shared(next_batch := next(batches), recipe.shared, rng)
        q, d = queries[next_batch], documents[rows]
        if recipe.imagined:
            more, answers = imagine(q, d, mask, rng)
            q, mask = torch.cat([q, more]), np.concatenate([mask, answers])
        teacher = torch.softmax(q @ d.T / recipe.theta, dim=1)
        mapped = [x + x @ matrix.T + bias for x in (q, d)]
        positive = torch.from_numpy(mask.astype(np.float32))
        loss = prefix_objective(*mapped, positive, teacher, lesson.widths, rank=1.0, kl=recipe.kl, theta=recipe.theta)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([matrix, bias], CLIP)
        optimiser.step()
        schedule.step()
        if step % LOOK == 0 or step == recipe.steps:
            found = Change(matrix.detach().numpy().copy(), bias.detach().numpy().copy())
            ranker = Ranker(found.apply(task.documents), lesson.widths)
            score = mean(ranker.curve(found.apply(looked_at.dev), looked_at.dev_judged, looked_at.dev_own))
            if score > best_score:
                best, best_at, best_score = found, step, score
            elif step - best_at >= PATIENCE * LOOK:
                break
    assert best is not None
    return best, best_score


def adapted(data: Dataset, budgets: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Fixed widths and the taper with the map that is best on dev, on the test queries."""
    begun = time.perf_counter()
    pool, rotation = sample(data.learning(seed=seed), seed), Rotation.pca(data.documents)
    lesson = Lesson.of(pool, rotation)
    change, _ = max((learned(recipe, lesson, seed) for recipe in RECIPES), key=lambda found: found[1])

    def encoded(vectors: Vectors) -> Vectors:
        return Vectors(unit(change.apply(rotation.apply(vectors.all()))), vectors.ids, vectors.name)

    width, plain, test = rotation.width, Rotation.identity(rotation.width), data.split("test")
    index, pooled = MemoryIndex(encoded(data.documents), plain), MemoryIndex(encoded(pool.documents), plain)
    train, dev, queries = (encoded(part.vectors).all() for part in (pool.train, pool.dev, test))
    taper = fit_taper(pooled, train, dev, pool.dev.judged, calibration_own=pool.train.own, own=pool.dev.own, target=width)
    assert test.judged is not None
    hits = {m: exhaustive(index, queries, m, MEASURE.k, test.own) for m in (64, width)}
    hits |= {budget: by_stages(index, queries, taper.policy(budget=budget), MEASURE.k, own=test.own) for budget in budgets}
    cell: dict[str, Any] = {"fit_seconds": round(time.perf_counter() - begun, 1)}
    for name, found in hits.items():
        worth = float(evaluate([MEASURE], found.rows, test.judged)[str(MEASURE)].mean())
        cell["full" if name == width else str(name)] = {"mean_width": round(found.mean_width, 1), str(MEASURE): round(worth, 4)}
    return cell
