"""What may stand in the place of the paper's predictor of gains: its trees, a multilayer perceptron, and a linear router.

Each takes train features and gains, the features to predict for, and a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import OptionalDependencyError
from ..training.router import TreeSettings, grow
from ..types import F64

Fit = Callable[[F64, F64, Sequence[F64], int], list[F64]]

PENALTIES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)  # ridge


def trees(x: F64, y: F64, others: Sequence[F64], seed: int) -> list[F64]:
    """The paper's predictor."""
    grown = grow(x, y, TreeSettings(), seed)
    return [grown.predict(other) for other in others]


def linear(x: F64, y: F64, others: Sequence[F64], seed: int) -> list[F64]:
    """Ridge on standardised features, its penalty by 5-fold cross-validation: in the place of the paper's unnamed third router."""
    fold = np.random.default_rng(seed).permutation(len(x)) % 5

    def error(penalty: float) -> float:
        missed = [_ridge(x[fold != k], y[fold != k], [x[fold == k]], penalty)[0] - y[fold == k] for k in range(5)]
        return float(np.square(np.concatenate(missed)).mean())

    return _ridge(x, y, others, min(PENALTIES, key=error))


def mlp(x: F64, y: F64, others: Sequence[F64], seed: int, members: int = 5, epochs: int = 200, patience: int = 20) -> list[F64]:
    """64-32 ReLU on standardised features, dropout .1, AdamW 1e-3, stopped early on 15 %; the mean of several seeds."""
    try:
        import torch
    except ImportError:
        raise OptionalDependencyError("torch", "train") from None
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    given, *asked = (torch.tensor(np.clip((z - mean) / scale, -8, 8), dtype=torch.float32) for z in (x, *others))
    wanted = torch.tensor((y - y.mean()) / max(float(y.std()), 1e-9), dtype=torch.float32)[:, None]
    totals = [np.zeros(len(z)) for z in others]
    for member in range(members):
        generator = torch.Generator().manual_seed(seed + member)
        torch.manual_seed(seed + member)
        order = torch.randperm(len(x), generator=generator)
        held, rest = order[: round(0.15 * len(x))], order[round(0.15 * len(x)) :]
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1),
        )  # fmt: skip
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
        best, since, state = np.inf, 0, {name: value.clone() for name, value in net.state_dict().items()}
        for _ in range(epochs):
            net.train()
            for batch in rest[torch.randperm(len(rest), generator=generator)].split(256):  # type: ignore[no-untyped-call]
                optimiser.zero_grad()
                torch.nn.functional.mse_loss(net(given[batch]), wanted[batch]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            net.eval()
            with torch.no_grad():
                missed = float(torch.nn.functional.mse_loss(net(given[held]), wanted[held]))
            if missed < best:
                best, since, state = missed, 0, {name: value.clone() for name, value in net.state_dict().items()}
            elif (since := since + 1) >= patience:
                break
        net.load_state_dict(state)
        net.eval()
        with torch.no_grad():
            for total, z in zip(totals, asked, strict=True):
                total += net(z)[:, 0].numpy() / members
    return totals


def _ridge(x: F64, y: F64, others: Sequence[F64], penalty: float) -> list[F64]:
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    z = (x - mean) / scale
    weights = np.linalg.solve(z.T @ z + penalty * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return [(other - mean) / scale @ weights + y.mean() for other in others]


PREDICTORS: Mapping[str, Fit] = {"trees": trees, "mlp": mlp, "ridge": linear}  # the paper's, and what it sets beside it
