"""Chromium on the page of a real service: over the bundled docstrings with a key, and over vectors alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adawidth import AdaWidth, Dataset, Index, open_index
from adawidth.cli.demo_serve import index_docstrings
from browser_page import KEY, PATIENCE, Watched, chromium, launched, search_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from adawidth.serve.run import Running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("there is no Chromium, and only root can install one: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield launched(playwright)


@pytest.fixture(scope="session")
def docstrings(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The index of `adawidth demo --serve`."""
    path = tmp_path_factory.mktemp("demo") / "docstrings.index"
    index_docstrings(path)
    return open_index(path)


@pytest.fixture(scope="session")
def served(docstrings: Index) -> Iterator[Running]:
    """A service over the docstrings, with a key."""
    from adawidth.serve.run import running

    assert docstrings.path is not None
    with running(open_index(docstrings.path), key=KEY) as service:
        yield service


@pytest.fixture
def vectors_alone(collection: Dataset, tmp_path: Path) -> Iterator[Running]:
    """A service over documents of which only ids and vectors are known."""
    from adawidth.serve.run import running

    with running(AdaWidth.fit(collection, recipe="pca").index(collection.documents, tmp_path / "vectors.index"), key=KEY) as service:
        yield service


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Opens an address in a new window; at the end nothing may have gone wrong there."""
    with ExitStack() as stack:

        def opened(url: str, *, key: str | None = KEY, **options: Any) -> Watched:
            context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            watched = Watched(context.new_page())
            seen.append(watched)
            watched.page.goto(f"{url}/#key={key}" if key else url)
            return watched

        seen: list[Watched] = []
        yield opened
        assert [error for watched in seen for error in watched.errors] == []
        assert [violation for watched in seen for violation in watched.violations()] == []


@pytest.fixture
def page(visit: Callable[..., Watched], served: Running) -> Page:
    """The page over the docstrings, ready for a search."""
    found = visit(served.url).page
    found.locator("#examples-list button").first.wait_for()
    return found


@pytest.fixture
def answered(page: Page) -> Page:
    """The same after a search."""
    search_for(page)
    return page
