"""For everyone: by keyboard, by screen reader, on a phone, in the dark; and under a strict content security policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from browser_page import QUERY, Watched, found, search_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from adawidth.serve.run import Running

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
FOCUSED = "document.activeElement.id || document.activeElement.textContent"


def tab_to(page: Page, wanted: str, most: int = 80) -> None:
    """Presses Tab until an element that matches has the focus; each one on the way shows it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if not page.evaluate("document.activeElement === document.body"):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", page.evaluate(FOCUSED)
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            return
    pytest.fail(f"{most} presses of Tab never reach {wanted}")


@contextmanager
def new_results(page: Page) -> Iterator[None]:
    """Waits until other results stand where those of before stood, so that what is pressed next is not about to go."""
    page.eval_on_selector("#results > li", "item => { item.dataset.before = ''; }")
    yield
    page.locator("#results > li[data-before]").wait_for(state="detached")


def settle(page: Page) -> None:
    """Everything shown: an answer, its numbers, all charts."""
    search_for(page)
    page.click("#planner button")
    page.locator("#planner-chart svg").wait_for()
    page.locator("#live svg").first.wait_for()
    page.locator("#model svg").wait_for()
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")


def test_everything_works_by_keyboard_alone(page: Page) -> None:
    tab_to(page, ".skip")
    page.keyboard.press("Enter")
    tab_to(page, "#query")
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    page.locator("#compare .card").nth(2).wait_for()
    tab_to(page, "#budget")
    with new_results(page):
        page.keyboard.press("Home")
    page.get_by_text("32 numbers per candidate", exact=False).first.wait_for()
    tab_to(page, "#automatic")
    with new_results(page):
        page.keyboard.press("Space")
    page.locator("#automatic[aria-pressed=true]").wait_for()
    tab_to(page, ".thumb")
    page.keyboard.press("Space")
    page.locator(".thumb[aria-pressed=true]").wait_for()
    tab_to(page, "#way summary")
    page.keyboard.press("Enter")
    page.locator("#way table").wait_for()
    tab_to(page, "#add-id")
    page.keyboard.type("pan")
    tab_to(page, "#add-text")
    page.keyboard.type("A pan fries eggs.")
    tab_to(page, "#add button")
    page.keyboard.press("Enter")
    page.locator("#documents-status button").wait_for()
    page.focus("#remove-id")
    page.keyboard.press("Enter")
    page.locator("#confirm[open]").wait_for()
    assert page.evaluate("document.activeElement.id") == "confirm-no"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Removed pan").wait_for()


def test_landmarks_headings_and_live_regions(answered: Page) -> None:
    for landmark in ("banner", "navigation", "main", "search", "contentinfo"):
        assert answered.get_by_role(landmark).count() == 1, landmark
    levels = answered.eval_on_selector_all("h1, h2, h3", "items => items.map((item) => Number(item.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert answered.inner_text("#status").startswith("10 results.")
    assert answered.locator("[role=status]#status").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", ["desktop", "phone"])
def test_axe_finds_nothing(served: Running, visit: Callable[..., Watched], scheme: str, where: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = visit(served.url, color_scheme=scheme, **(PHONE if where == "phone" else {})).page
    settle(page)
    result = Axe().run(page, options={"resultTypes": ["violations", "passes"]})
    assert len(result.response["passes"]) > 20  # it did look
    problems = [(found["id"], [node["html"] for node in found["nodes"]]) for found in result.response["violations"]]
    assert problems == [], json.dumps(problems, indent=1)


def test_the_page_fits_a_phone(served: Running, visit: Callable[..., Watched]) -> None:
    page = visit(served.url, **PHONE).page
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter((one) => !one.closest(".scroll, pre, svg, .sr") && !one.matches(".sr")
           && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert wide == []
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, summary")].filter((one) => one.offsetParent
           && (one.offsetHeight < 24 || one.offsetWidth < 24)).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert small == []
    assert len(found(page)) == 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_are_those_the_reader_prefers(served: Running, visit: Callable[..., Watched], scheme: str) -> None:
    page = visit(served.url, color_scheme=scheme).page
    ground, ink = (
        sum(int(part) for part in page.evaluate(f"getComputedStyle(document.body).{name}").strip("rgb()").split(",")) / 3
        for name in ("backgroundColor", "color")
    )
    assert (ground > 200 > 60 > ink) if scheme == "light" else (ground < 60 < 200 < ink)


def test_the_policy_stops_inline_scripts_and_foreign_requests(served: Running, visit: Callable[..., Watched]) -> None:
    watched = visit(served.url)
    page = watched.page
    page.locator("#examples-list button").first.wait_for()
    assert watched.violations() == []
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.inlined = 1";
        document.body.append(script);
        return fetch("http://127.0.0.1:9/").catch(() => null);
    }""")
    assert page.evaluate("window.inlined") is None
    assert {violation.split()[0] for violation in watched.violations()} == {"script-src-elem", "connect-src"}
    watched.errors.clear()
    page.evaluate("window.violations = []")
