"""Colours of all pictures: one for each method everywhere, and lines, text and paper that follow a light or a dark page.

Pictures are drawn in stand-ins, which become CSS variables in the file. A page that shows one as an image passes its own scheme on; where
a browser can't, the paper is in the picture, so that it is legible all the same.
"""

INK, SOFT, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
LIGHT = {INK: "#1f2328", SOFT: "#59636e", GRID: "#d8dee4", PAPER: "#ffffff"}
DARK = {INK: "#e6edf3", SOFT: "#9ea7b3", GRID: "#343a42", PAPER: "#131416"}
NAMES = {INK: "ink", SOFT: "soft", GRID: "grid", PAPER: "paper"}
METHODS = {
    "truncation": "#8a939e",
    "pca": "#4c86c6",
    "kyfan": "#3aa39b",
    "adawidth:unlabelled": "#b279a2",
    "adawidth": "#e45756",
    "funnel": "#3aa39b",
    "router": "#4c86c6",
    "paper": "#4f9d46",
    "oracle": "#c9941f",
    "certify": "#b279a2",
}


def themed(svg: str) -> str:
    """The picture with variables for the stand-ins."""
    for stand_in, name in NAMES.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    head, tag, body = svg.partition("<svg")
    attributes, _, inside = body.partition(">")
    style = f"<style>:root{{{_variables(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}</style>"
    return f"{head}{tag}{attributes}>{style}{inside}"


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{NAMES[stand_in]}:{colour};" for stand_in, colour in colours.items())
