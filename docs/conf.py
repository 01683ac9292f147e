"""How the site is built: `make docs` writes it to build/site. Nothing is fetched, neither for building nor for reading.

The sources lie where GitHub shows them: the whole repository is the source folder, and every relative link means the same in both.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import adawidth

project = "AdaWidth"
author = copyright = "The AdaWidth authors"
version = release = adawidth.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]

root_doc = "docs/home"
include_patterns = [
    "docs/**.md",
    "benchmarks/README.md",
    "benchmarks/results/paper/*.md",
    "examples/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "adawidth-demo", "**/__pycache__"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3  # the anchors that GitHub gives
myst_links_external_new_tab = False

nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!adawidth).*|adawidth(\.\w+){3,}|adawidth\.(hits|record|tasks)\..*")
]  # others' names, and inner ones

default_role = "code"  # docstrings are read in a terminal first, and set code as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
maximum_signature_line_length = 90

html_theme = "furo"
html_title = f"AdaWidth {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_additional_pages = {"index": "redirect.html"}  # docs/index.md is the page on the index, so the first page has another name
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_logo": "icon.svg",
    "dark_logo": "icon.svg",
    "source_repository": "https://github.com/adawidth/adawidth/",
    "source_branch": "main",
    "source_directory": "",
}
templates_path = ["_templates"]
pygments_style = "friendly"
pygments_dark_style = "native"


def prepare(_app: Sphinx, name: str, source: list[str]) -> None:
    """Leaves out the comments that are for tests; lists pages on the first one that it does not place itself."""
    source[0] = source[0].replace("<!-- not run -->\n", "")
    if name == root_doc:
        placed = set(source[0].splitlines())
        others = sorted({page.stem for page in (ROOT / "docs").glob("*.md")} - placed - {Path(root_doc).stem})
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", ":caption: More", "", *others, "```", ""]) if others else ""


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare)
