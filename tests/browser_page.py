"""What the tests in a browser share: a query, a key, and how one searches."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

KEY = "a key for tests in a browser"
PATIENCE = 120_000  # milliseconds: the first search loads an encoder
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
QUERY = "count how often each element occurs"
NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@dataclass
class Watched:
    """A page with what went wrong on it; a test empties `errors` of what it meant to cause."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.add_init_script(NOTE_VIOLATIONS)

    def violations(self) -> list[str]:
        """Of the content security policy."""
        found: list[str] = self.page.evaluate("window.violations")
        return found


def chromium() -> str | None:
    """Where it is installed; None where it is not."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def launched(playwright: Playwright) -> Browser:
    """A new browser, with a profile of its own."""
    return playwright.chromium.launch(executable_path=chromium(), args=FLAGS)


def search_for(page: Page, text: str = QUERY) -> None:
    """Searches, and waits until all three lists are there."""
    page.evaluate("document.getElementById('compare').replaceChildren()")
    page.fill("#query", text)
    page.click("#search button[type=submit]")
    page.locator("#compare .card").nth(2).wait_for()


def found(page: Page, list_of: str = "#results") -> list[str]:
    """Ids of the results."""
    ids: list[str] = page.eval_on_selector_all(f"{list_of} > li", "items => items.map((item) => item.dataset.id)")
    return ids
