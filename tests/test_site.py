"""The site: it builds without a warning, every link leads somewhere, and nothing public is missing from it. Nothing is fetched."""

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from runpy import run_path
from urllib.parse import unquote, urldefrag

import pytest
from sphinx.util.inventory import InventoryFile

import adawidth
from adawidth import bundled

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks" / "results").exists(), reason="pages show results, which an sdist leaves out")
SOURCES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
HOSTED = re.compile(
    r"https://(?:github\.com/adawidth/adawidth/(?:blob|tree)|raw\.githubusercontent\.com/adawidth/adawidth)/main/([^)\s\"]+)"
)
SAID = re.compile(r"^### `(.+)`$", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-d", folder / "doctrees", ".", folder / "html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """The ids of a page, and where its links and pictures lead."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.targets.append(value)


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {file: Page(file) for file in site.rglob("*.html")}
    assert len(pages) > 30
    broken = []
    for file, page in pages.items():
        for target in page.targets:
            address, anchor = urldefrag(target)
            if re.match(r"\w+:|//", address):
                assert not re.search(r"\.(js|css|woff2?)$", address), f"{file}: {address} would be fetched"
                continue
            there = (file.parent / unquote(address.partition("?")[0])).resolve() if address else file
            known = there.is_file() and (not anchor or there not in pages or unquote(anchor) in pages[there].ids)
            if not known and anchor != "":
                broken.append(f"{file.relative_to(site)}: {target}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    """As GitHub shows it; links to the project's own files by their full address are followed too."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    relative = [(page.parent, link) for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:", link)]
    for base, link in [*relative, *((ROOT, link) for link in HOSTED.findall(text))]:
        address, anchor = urldefrag(link)
        there = (base / unquote(address)).resolve() if address else page
        assert there.exists(), link
        assert not anchor or there.suffix != ".md" or anchor in headings(there), link


def public() -> Iterator[str]:
    """Every name that the reference must have."""
    for module in (adawidth, bundled, import_module("adawidth.batch"), import_module("adawidth.integrations")):
        for name in module.__all__:
            found = getattr(module, name)
            if callable(found):
                yield f"{module.__name__}.{name}"
            if inspect.isclass(found):
                members = (inner for inner, member in vars(found).items() if inspect.isroutine(getattr(member, "__func__", member)))
                yield from (f"{module.__name__}.{name}.{inner}" for inner in members if not inner.startswith("_"))


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    named = {name for kind in inventory.data.values() for name in kind}
    wanted = set(public())
    assert len(wanted) > 60
    assert wanted - named == set()


@cache
def strings() -> list[str]:
    """Every string in the package, with … for what is filled in."""
    found = []
    for file in (ROOT / "src" / "adawidth").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[-+.0-9]*[a-z]|%%", "…", node.value))
    return found


@pytest.mark.parametrize("message", SAID.findall((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")))
def test_every_message_that_is_explained_is_still_said(message: str) -> None:
    wanted = re.compile(".*".join(re.escape(part.strip()) for part in message.split("…")))
    assert any(map(wanted.search, strings()))


@pytest.mark.parametrize("page", ["README.md", "docs/home.md", "docs/performance.md"])
def test_figures_are_those_of_the_results(page: str) -> None:
    written = run_path(str(ROOT / "tools" / "figures_in_docs.py"))["written"]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- end of " in text
    assert written(text) == text, "run python tools/figures_in_docs.py"


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pictures_follow_the_page(page: Path) -> None:
    """Pictures drawn for the documentation have colours for light and for dark pages."""
    for link in re.findall(r"!\[[^]]*\]\(([^)\s]+figures/[^)\s]+\.svg)\)", page.read_text(encoding="utf-8")):
        file = ROOT / HOSTED.sub(r"\1", link) if "://" in link else page.parent / link
        assert "prefers-color-scheme:dark" in file.read_text(encoding="utf-8"), link


def test_the_figures_of_hybrid_search_are_those_measured() -> None:
    benchmark, page = run_path(str(ROOT / "benchmarks" / "hybrid.py")), ROOT / "docs" / "hybrid.md"
    text, result = page.read_text(encoding="utf-8"), json.loads(benchmark["RESULTS"].read_text(encoding="utf-8"))
    assert {cell["dataset"] for cell in result["cells"]} == set(benchmark["COLLECTIONS"])
    assert benchmark["written"](text, result) == text, "run python benchmarks/hybrid.py"
