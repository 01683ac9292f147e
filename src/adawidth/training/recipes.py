"""Recipes: what a rotation is learned with. `paper` is the paper's own; `auto` tries a few and lets dev queries choose."""

from __future__ import annotations

from dataclasses import dataclass

TRAINED_WIDTHS = (32, 64, 128, 256)
CLOSED_FORMS = ("identity", "pca", "kyfan")
MOST_REFLECTIONS = 512  # twice the widest trained width: any change of the leading 256 coordinates is within reach (methods 2.3)


@dataclass(frozen=True)
class Recipe:
    """One way to learn a rotation: where it starts, what it minimises, on which candidates, for how long."""

    name: str
    start: str  # the closed form it starts from
    reflections: int | None = None  # None: the encoder width, at most MOST_REFLECTIONS
    widths: tuple[int, ...] = TRAINED_WIDTHS
    rank: float = 1.0  # weight of the rank loss
    score: float = 0.0  # λ₁, the paper's score loss
    geometry: float = 0.0  # λ₂, the paper's geometry loss
    kl: float = 0.0  # weight of the KL term to the frozen scores
    private: int = 0  # candidates each query has for itself
    shared: int = 0  # negatives each query adds to the candidates that the whole batch shares
    synthetic: bool = False  # adds one synthetic query for each real one: another document moved as the query is from its positive
    rate: float = 1e-3
    steps: int = 1_500
    batch: int = 128
    theta: float = 0.05  # temperature of the rank and KL terms
    theta_b: float = 0.05  # of the score loss's difficulty weights

    def widths_below(self, width: int) -> list[int]:
        """The widths to train at: below the encoder width, where nothing can be learned; three quarters of it replace what falls away."""
        below = [m for m in self.widths if m < width]
        return below if len(below) == len(self.widths) else sorted({*below, max(1, 3 * width // 4)})

    def even_reflections(self, width: int) -> int:
        """The number of reflections for this encoder width; they come in pairs."""
        return self.reflections or (min(width, MOST_REFLECTIONS) // 2) * 2


PAPER = Recipe("paper", start="identity", reflections=64, widths=(64, 128, 256), score=2.0, geometry=8.0, private=32)

LABELLED = (
    Recipe("rank", start="kyfan", shared=6, steps=800),  # many labels
    Recipe("rank + kl", start="kyfan", kl=0.3, shared=6, steps=600),
    Recipe("rank + kl, synthetic queries", start="kyfan", kl=1.0, shared=6, synthetic=True, steps=600),  # few labels
)
UNLABELLED = (  # in order of preference; the positive is the frozen encoder's first document
    Recipe("first + kl", start="kyfan", kl=1.0, shared=6, steps=300),
    Recipe("kl, synthetic queries", start="pca", rank=0.0, kl=1.0, shared=6, synthetic=True, steps=300),
)
