"""Colours of every picture: light and dark, and one style a method, by its name, wherever it is drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

# name -> on a light page, on a dark one
PAGE = {
    "page": ("#fdfdfc", "#14171c"),
    "ink": ("#1d2430", "#e8eaee"),
    "muted": ("#667085", "#9aa4b2"),
    "grid": ("#e7e9ee", "#2a2f38"),
    "line": ("#98a2b3", "#7a8494"),
    "shade": ("#f4f5f7", "#1d222a"),
}
LINE = PAGE["line"][0]
SERIES = (
    ("#e45756", "#ff7b72"),
    ("#8a939e", "#8f9bad"),
    ("#4c86c6", "#7aa5f7"),
    ("#3aa39b", "#4fc3b1"),
    ("#8a4fbf", "#bd93e8"),
    ("#b58900", "#dcb545"),
    ("#4f9d46", "#7cc674"),
    ("#c2255c", "#f0709b"),
    ("#0b7fab", "#5bc0de"),
    ("#7a4a2b", "#c99b7a"),
    ("#3f4a5a", "#c3ccd8"),
    ("#d6579b", "#f7a8d0"),
)
OURS = "adawidth"
ALWAYS = (OURS, "adawidth-query", "truncation", "paper")  # in colour, however many methods there are
# Methods that share a colour are drawn solid, dashed and dotted. The recipes of a model's record are here too.
FAMILIES = (
    (OURS, "rank + kl, synthetic queries", "dime"),
    ("truncation", "random-subset", "eclipse"),
    ("pca", "whitening", "rdime"),
    ("kyfan", "spectral-tempering", "adsampling"),
    ("matryoshka-adaptor", "smec", "panorama"),
    ("random", "kl, synthetic queries"),
    ("paper", "rank"),
    ("adawidth-query", "first + kl"),
    ("learning-to-select", "dense"),
    ("funnel", "search-adaptor"),
    ("int8", "pq4"),
    ("rank + kl", "conae"),
)
ALIKE = {"identity": "truncation"}  # a recipe and a method that are the same
VARIANT = 3  # the dashes of every variant
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.6)), (0, (5, 1.5, 1, 1.5)))  # by number, as a Style has it, for matplotlib


class Style(NamedTuple):
    """How a method is drawn: the number of its colour, and of its dashes: solid, dashed, dotted, or a variant's."""

    colour: int
    dashes: int = 0


_STYLES = {name: Style(number, place) for number, names in enumerate(FAMILIES) for place, name in enumerate(names)}


def style_of(name: str) -> Style | None:
    """Of a method, or of a variant of it (`name:variant`); None for a name that is not known."""
    method, _, variant = name.partition(":")
    found = _STYLES.get(ALIKE.get(method, method))
    return found._replace(dashes=VARIANT) if found is not None and variant else found


def variables() -> dict[str, tuple[str, str]]:
    """Every colour as a CSS variable."""
    return {f"--{name}": pair for name, pair in PAGE.items()} | {f"--series-{number}": pair for number, pair in enumerate(SERIES)}


def style_sheet() -> str:
    """The variables of a page that follows light and dark."""
    light, dark = ("; ".join(f"{name}: {pair[side]}" for name, pair in variables().items()) for side in (0, 1))
    return f":root {{ color-scheme: light dark; {light}; }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}; }} }}"


def themed(svg: str) -> str:
    """A picture of these colours, drawn for a light page, that also follows a dark one; what knows no styles shows the light one."""
    rules = " ".join(
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}' for light, dark in variables().values() for kind in ("fill", "stroke")
    )
    head = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:head]}<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>{svg[head:]}"
