"""Search, the query's way, the budget, side by side: what the page shows is what the service and the index say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest

from adawidth import Index, open_index
from adawidth.rotation import QueryMap
from adawidth.tasks import TaskMap
from browser_page import KEY, QUERY, Watched, found, search_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from adawidth.serve.run import Running

pytestmark = pytest.mark.browser


@pytest.fixture
def service(served: Running) -> httpx.Client:
    return httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=120)


def ids(index: Index, **options: object) -> list[str]:
    return [str(hit.id) for hit in index.search(text=QUERY, k=10, **options)[0]]


def test_examples_come_from_the_index(page: Page, service: httpx.Client) -> None:
    chip = page.locator("#examples-list button").first
    text = chip.inner_text()
    chip.click()
    page.locator("#results > li").first.wait_for()
    assert page.input_value("#query") == text
    pages = [service.get(f"/v1/documents?limit=1000&offset={start}").json()["documents"] for start in range(0, 4000, 1000)]
    assert any(" ".join(one["text"].split()).startswith(text) for page_of in pages for one in page_of)  # it is a first sentence


def test_results_are_those_of_the_index_with_their_scores(answered: Page, docstrings: Index) -> None:
    hits = docstrings.search(text=QUERY, k=10)[0]
    assert found(answered) == [hit.id for hit in hits]
    shown = answered.locator("#results .score").all_inner_texts()
    assert [float(text.split()[-1]) for text in shown] == pytest.approx([hit.score for hit in hits], abs=6e-4)


def test_the_way_of_a_query_is_drawn_and_told(answered: Page, service: httpx.Client) -> None:
    way = service.post("/v1/search", json={"text": QUERY, "explain": True}).json()["results"][0]["explain"]
    steps = way["steps"]
    story = answered.inner_text("#way-story")
    assert f"All {way['documents']:,} documents were compared on their first {way['start_width']} of {way['full_width']} numbers" in story
    chain = [int(part) for part in re.search(r"([\d,]+(?: → [\d,]+)+)", story)[0].replace(",", "").split(" → ")]
    assert chain[0] == steps[0]["candidates"]
    assert chain[-1] == 10
    assert set(chain[1:-1]) <= {step["candidates"] for step in steps}
    assert chain == sorted(chain, reverse=True)
    drawn = answered.locator("#way svg").first.get_attribute("aria-label")
    assert all(f"{step['candidates']:,} at {step['width']}" in drawn for step in steps)
    assert answered.locator("#way svg").count() == 3  # the funnel, the bytes, the scores
    answered.click("#way summary")
    rows = answered.locator("#way tbody tr").all_inner_texts()
    assert [[int(cell.replace(",", "")) for cell in row.split()] for row in rows] == [
        [step[name] for name in ("width", "candidates", "survivors", "coordinates", "bytes")] for step in steps
    ]


def test_the_budget_acts_at_once(answered: Page, docstrings: Index) -> None:
    from playwright.sync_api import expect

    slider, note = answered.locator("#budget"), answered.locator("#results-note")
    automatic = note.inner_text()
    slider.focus()
    slider.press("Home")
    expect(answered.locator("#budget-value")).to_have_text("32")
    expect(note).to_contain_text("32 numbers per candidate")
    assert found(answered) == ids(docstrings, budget=32)
    assert answered.locator("#automatic").get_attribute("aria-pressed") == "false"
    slider.press("End")
    expect(answered.locator("#budget-value")).to_have_text("384")
    expect(answered.locator("#compare .card").nth(1)).to_contain_text("10 of 10")
    assert found(answered) == ids(docstrings, budget=384)
    answered.click("#automatic")
    expect(note).to_contain_text(automatic.split(" · ")[0])
    assert found(answered) == ids(docstrings)


def test_three_ways_side_by_side_with_differences_marked(answered: Page, docstrings: Index) -> None:
    start, adaptive, full = (ids(docstrings, **options) for options in ({"width": 32}, {}, {"width": "full", "shortlist": len(docstrings)}))
    assert start != full  # else there would be nothing to mark
    for place, own in enumerate((start, adaptive, full)):
        card = answered.locator("#compare .card").nth(place)
        assert card.locator("li .name").all_inner_texts() == own  # a docstring's title is its id
        marked = card.locator("li.differs .name").all_inner_texts()
        assert marked == [name for name in own if name not in full]
        missing = card.locator(".missing").all_inner_texts()
        assert missing == ([f"Missing: {', '.join(lost)}"] if (lost := [name for name in full if name not in own]) else [])
        if own != full:
            assert card.locator("dd").last.inner_text() == f"{10 - len(marked)} of 10"


def test_a_filter_narrows_all_three_lists(answered: Page, docstrings: Index) -> None:
    from playwright.sync_api import expect

    assert "module" in answered.inner_text("#filter-hint")
    narrow(answered, "module = 'collections'")
    wanted = ids(docstrings, where="module = 'collections'")
    assert wanted
    assert all(name.startswith("collections") for name in wanted)
    assert found(answered) == wanted
    for place in range(3):
        names = answered.locator("#compare .card").nth(place).locator("li .name").all_inner_texts()
        assert names
        assert all(name.startswith("collections") for name in names)
    narrow(answered, "module = 'nowhere'")
    expect(answered.locator("#way-story")).to_have_text("No document meets the filter.")
    assert found(answered) == []
    narrow(answered, "")
    assert found(answered) == ids(docstrings)


def test_a_filter_that_is_none_is_told_and_marked(visit: Callable[..., Watched], served: Running) -> None:
    from playwright.sync_api import expect

    watched = visit(served.url)
    search_for(watched.page)
    watched.page.fill("#filter", "modul = 'x'")
    watched.page.keyboard.press("Tab")
    expect(watched.page.locator("#problem")).to_contain_text("module")  # the names there are
    assert watched.page.get_attribute("#filter", "aria-invalid") == "true"
    assert watched.errors.pop().startswith("Failed to load resource")  # as Chromium tells a 422
    narrow(watched.page, "module = 'collections'")
    assert watched.page.get_attribute("#filter", "aria-invalid") is None
    assert watched.page.locator("#problem").is_hidden()


def test_words_count_where_they_are_asked_to(answered: Page, docstrings: Index) -> None:
    from playwright.sync_api import expect

    wanted = ids(docstrings, hybrid=True)
    assert wanted != ids(docstrings)
    clear(answered)
    answered.check("#hybrid")
    answered.locator("#compare .card").nth(2).wait_for()
    assert found(answered) == wanted
    answered.locator("#results button.quiet", has_text="More like this").first.click()  # a document has no words to ask with
    expect(answered.locator("#results-note")).to_contain_text("Like ")
    assert found(answered)[0] == wanted[0]


def test_a_task_is_chosen_where_the_model_has_some(docstrings: Index, visit: Callable[..., Watched]) -> None:
    """A query map that turns queries around, so that nothing it finds is found without it."""
    from adawidth.serve.run import running

    model = docstrings.model
    turned = QueryMap.fold(model.rotation, -2 * np.eye(model.width, dtype=np.float32), np.zeros(model.width, np.float32))
    tasks = {"opposite": TaskMap(turned, model.policies)}
    assert docstrings.path is not None
    served = open_index(docstrings.path).with_model(replace(model, tasks=tasks))
    with running(served, key=KEY) as service:
        page = visit(service.url).page
        search_for(page)
        assert page.locator("#task option").all_inner_texts() == ["opposite", "none"]
        assert page.input_value("#task") == "none"
        assert found(page) == ids(docstrings)
        clear(page)
        page.select_option("#task", "opposite")
        page.locator("#compare .card").nth(2).wait_for()
        assert found(page) == ids(served, task="opposite")
        assert not set(found(page)) & set(ids(docstrings))


def test_fields_that_an_index_has_no_use_for_are_not_there(vectors_alone: Running, visit: Callable[..., Watched], page: Page) -> None:
    bare = visit(vectors_alone.url).page
    bare.locator("#examples-list button").first.wait_for()
    assert not any(bare.locator(f"#{name}").is_visible() for name in ("filter", "task", "hybrid"))
    assert [page.locator(f"#{name}").is_visible() for name in ("filter", "task", "hybrid")] == [True, False, True]


def clear(page: Page) -> None:
    """Empties the three lists, to see when they are there again."""
    page.evaluate("document.getElementById('compare').replaceChildren()")


def narrow(page: Page, condition: str) -> None:
    """Sets the filter by keyboard, and waits for the answer."""
    clear(page)
    page.fill("#filter", condition)
    page.locator("#filter").press("Tab")
    page.locator("#compare .card").nth(2).wait_for()


def test_live_charts_follow_the_queries(answered: Page) -> None:
    from playwright.sync_api import expect

    note = answered.locator("#live-note")
    expect(note).to_contain_text("queries since this worker started")
    before = int(note.inner_text().split()[0].replace(",", ""))
    search_for(answered, "open a file")
    expect(note).not_to_contain_text(f"{before:,} queries")
    ends = answered.locator("#live section").first
    ends.locator("summary").click()
    counts = [int(row.split()[-1]) for row in ends.locator("tbody tr").all_inner_texts()]
    assert f"{sum(counts):,} adaptive queries" in ends.inner_text()
    legend = answered.locator(".legend").inner_text()
    assert all(stage in legend for stage in ("encoding the text", "scan at the start width", "reading on"))


def test_the_model_card_is_drawn(page: Page, service: httpx.Client) -> None:
    card = service.get("/v1/index/card").json()
    page.locator("#model svg").wait_for()
    page.click("#model summary >> nth=0")
    rows = [row.split("\t") for row in page.locator("#model tbody tr").all_inner_texts()]
    fixed = {float(width.replace(",", "")): kept for width, kept, how in rows if how == "one width"}
    assert {width: round(100 * share) for width, share in ((int(w), s) for w, s in card["fixed"].items())} == {
        width: int(kept.split()[0]) for width, kept in fixed.items()
    }
    page.click("#model summary >> nth=1")
    assert page.locator("#model pre").text_content() == card["card"]


@pytest.mark.parametrize(("given", "documents"), [("2 thousand", 2_000), ("100 million", 100_000_000), ("1,500", 1_500)])
def test_the_planner_answers_or_says_why_not(page: Page, service: httpx.Client, given: str, documents: int) -> None:
    from playwright.sync_api import expect

    page.fill("#planner-documents", given)
    page.keyboard.press("Enter")
    page.locator("#planner-chart svg").wait_for()
    plan = service.get(f"/v1/width?documents={documents}").json()
    told = plan["reason"] if plan["width"] is None else f"about {plan['width']} of {plan['full_width']} numbers"
    expect(page.locator("#planner-answer")).to_contain_text(told)


def test_the_planner_takes_no_nonsense(page: Page) -> None:
    page.fill("#planner-documents", "many")
    page.keyboard.press("Enter")
    assert "Give a number of documents" in page.inner_text("#planner-answer")
