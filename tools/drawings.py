"""Draws the pictures of docs/concepts.md from the vectors that come with the package: python tools/drawings.py"""

from collections.abc import Iterable
from pathlib import Path
from runpy import run_path

import numpy as np

from adawidth import AdaWidth, bundled, evaluate, load_dataset
from adawidth.types import F64

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
THEME = run_path(str(ROOT / "benchmarks" / "theme.py"))
INK, SOFT, GRID, PAPER = (THEME[name] for name in ("INK", "SOFT", "GRID", "PAPER"))
RED, BLUE = THEME["METHODS"]["adawidth"], THEME["METHODS"]["pca"]
WIDE = 760  # of every drawing; at 380 pixels its letters are still 11 high


def text(x: float, y: float, words: str, *, colour: str = INK, size: int = 22, anchor: str = "middle", bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"{weight}>{words}</text>'


def box(x: float, y: float, width: float, height: float, colour: str, *, round_: float = 3, more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_:g}" fill="{colour}" {more}/>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" stroke="{SOFT}" stroke-width="3" fill="none" marker-end="url(#tip)"/>'


def drawing(height: int, title: str, parts: Iterable[str]) -> str:
    shape = f'<path d="M0 0L8 4L0 8z" fill="{SOFT}"/>'
    tip = f'<marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" orient="auto">{shape}</marker>'
    fonts = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    inside = "\n".join([f"<title>{title}</title>", f"<defs>{tip}</defs>", box(0, 0, WIDE, height, PAPER, round_=0), *parts])
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" font-family="{fonts}">\n{inside}\n</svg>\n'
    return str(THEME["themed"](whole))


def rotation(before: F64, after: F64) -> str:
    """How much of the vectors' squared length each group of 16 coordinates holds, before and after."""
    parts = [text(175, 34, "the encoder's coordinates", bold=True), text(585, 34, "rotated", bold=True)]
    tallest = float(after.max())
    for left, shares, coloured in ((25, before, 0), (435, after, 4)):
        for place, share in enumerate(shares):
            tall = 200 * float(share) / tallest
            parts.append(box(left + 12.5 * place, 260 - tall, 10, tall, RED if place < coloured else BLUE, round_=2))
        parts.append(f'<path d="M{left} 261H{left + 300}" stroke="{SOFT}" stroke-width="2"/>')
        parts += [
            text(left, 290, "1", colour=SOFT, anchor="start"),
            text(left + 300, 290, str(16 * len(shares)), colour=SOFT, anchor="end"),
        ]
    parts += [arrow(345, 170, 415, 170), text(380, 152, "x Rᵀ", bold=True)]
    parts.append(text(585, 326, f"the first 64 hold {after[:4].sum():.0%}", colour=RED))
    parts.append(text(175, 326, f"the first 64 hold {before[:4].sum():.0%}", colour=SOFT))
    parts.append(text(380, 368, "No angle changes: every full-width score stays as it was."))
    return drawing(390, "A rotation moves what the vectors hold into the leading coordinates", parts)


def prefix() -> str:
    """One query, one document, and the parts of both that a width reads."""
    parts = []
    for y, name in ((60, "query"), (120, "document")):
        parts.append(text(20, y + 29, name, anchor="start"))
        for cell in range(24):
            colour, more = (RED, "") if cell < 2 else (RED, 'fill-opacity="0.45"') if cell < 4 else (GRID, "")
            parts.append(box(150 + 24 * cell, y, 21, 42, colour, more=more))
    for x, width in ((150 + 48, "32"), (150 + 96, "64"), (150 + 24 * 24, "384")):
        parts += [f'<path d="M{x - 1.5:g} 42V172" stroke="{INK}" stroke-width="2" stroke-dasharray="5 4"/>', text(x - 1.5, 32, width)]
    parts.append(text(150, 215, "at 32: the cosine of the first 32 alone", colour=RED, anchor="start"))
    parts.append(text(150, 250, "at 64: the sums so far, and 32 more coordinates", anchor="start"))
    parts.append(text(150, 285, "the rest is not read unless it may matter", colour=SOFT, anchor="start"))
    return drawing(310, "A prefix score is the cosine of two prefixes; reading on extends it", parts)


def taper(survivors: dict[int, float], mean: float, width: int) -> str:
    """How many of the 500 candidates are still read at each width."""
    steps, bottom = list(survivors.items()), 316.0
    parts = [text(20, 34, "candidates still read", anchor="start", bold=True)]
    wide = 700 / len(steps)
    for place, (at, count) in enumerate(steps):
        tall = max(3.0, 230 * count / 500)
        left = 30 + wide * place
        parts.append(box(left, bottom - 230, wide - 6, 230, GRID, more='fill-opacity="0.55"'))
        parts.append(box(left, bottom - tall, wide - 6, tall, RED))
        parts.append(text(left + wide / 2 - 3, bottom - tall - 8, f"{count:.0f}", bold=True))
        parts.append(text(left + wide / 2 - 3, bottom + 28, str(at), colour=SOFT))
    parts.append(text(380, bottom + 62, "width", colour=SOFT))
    parts.append(text(380, bottom + 100, f"mean width {mean:.0f} of {width}: grey is what was never read"))
    return drawing(436, "The taper: candidates thin out as the width grows", parts)


def query_map() -> str:
    """Two ways in: documents are rotated once, queries are rotated and mapped."""

    def station(x: float, y: float, wide: float, words: str, colour: str, ink: str = INK) -> list[str]:
        outline = f'stroke="{colour}" stroke-width="3"'
        return [box(x, y, wide, 64, PAPER, round_=10, more=outline), text(x + wide / 2, y + 40, words, colour=ink)]

    parts = [
        *station(20, 40, 150, "documents", SOFT), arrow(172, 72, 218, 72), *station(226, 40, 130, "R", BLUE), arrow(358, 72, 544, 72),
        *station(552, 40, 188, "index", SOFT), text(450, 58, "once", colour=SOFT),
        *station(20, 170, 150, "query", SOFT), arrow(172, 202, 218, 202), *station(226, 170, 130, "R", BLUE), arrow(358, 202, 384, 202),
        *station(392, 170, 130, "I + A", RED, RED), arrow(646, 170, 646, 112), text(560, 210, "search", anchor="start"),
        f'<path d="M524 202H556" stroke="{SOFT}" stroke-width="3"/>',
        f'<path d="M640 202H646V170" stroke="{SOFT}" stroke-width="3" fill="none"/>',
        text(380, 290, "New labels change the red map alone. Nothing is indexed again.", colour=INK),
    ]  # fmt: skip
    return drawing(320, "The query map: only queries pass through it", parts)


def main() -> None:
    data = load_dataset(bundled.path())
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    before = np.square(data.documents.all(), dtype=np.float64)
    after = np.square(model.rotate(data.documents), dtype=np.float64)
    shares = [moments.mean(0).reshape(-1, 16).sum(1) for moments in (before, after)]
    point = evaluate(model, data, widths=["auto"])["auto"]
    read = {int(width): float(count) for width, count in point.details["survivors"].items()}
    drawings = {
        "rotation": rotation(*shares),
        "prefix": prefix(),
        "taper": taper(read, point.mean_width, data.documents.width),
        "query-map": query_map(),
    }
    for name, svg in drawings.items():
        (FIGURES / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
