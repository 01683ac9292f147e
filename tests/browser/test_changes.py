"""Changes through the page: documents come and go, labels reach the file, and hostile text stays text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from adawidth import AdaWidth, Dataset, Index
from browser_page import KEY, QUERY, Watched, found, search_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from adawidth.serve.run import Running

pytestmark = pytest.mark.browser
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def add(page: Page, name: str, title: str, text: str) -> None:
    page.fill("#add-id", name)
    page.fill("#add-name", title)
    page.fill("#add-text", text)
    page.click("#add button[type=submit]")
    page.locator("#documents-status button").wait_for()


def remove_first(page: Page, name: str) -> None:
    page.locator(f'#results > li[data-id="{name}"]').get_by_role("button", name="Remove").click()
    page.click("#confirm-yes")
    page.locator(f'#results > li[data-id="{name}"]').wait_for(state="detached")


def test_what_is_added_is_found_and_what_is_removed_is_gone(page: Page) -> None:
    from playwright.sync_api import expect

    add(page, "kettle", "Kettle", "A kettle boils water for tea on the stove.")
    page.click("#documents-status button")
    page.locator("#compare .card").nth(2).wait_for()
    assert found(page)[0] == "kettle"
    search_for(page, "boil water for tea")
    assert found(page)[0] == "kettle"
    remove_first(page, "kettle")
    expect(page.locator("#results-note")).to_contain_text("Removed Kettle")
    search_for(page, "boil water for tea")
    assert "kettle" not in found(page)


def test_a_document_is_removed_by_its_id_after_a_question(page: Page) -> None:
    from playwright.sync_api import expect

    add(page, "spoon", "Spoon", "A spoon stirs tea.")
    status = page.locator("#documents-status")
    page.fill("#remove-id", "spoon")
    page.click("#remove button")
    page.click("#confirm-no")
    expect(page.locator("#confirm")).not_to_be_visible()
    search_for(page, "stir tea with a spoon")
    assert found(page)[0] == "spoon"
    page.fill("#remove-id", "spoon")
    page.click("#remove button")
    page.click("#confirm-yes")
    expect(status).to_contain_text("Removed spoon")
    assert "spoon" not in found(page)


def test_metadata_are_kept_and_filtered_by(page: Page) -> None:
    from playwright.sync_api import expect

    page.fill("#add-metadata", '{"kind": "pan", "size": 28, "round": true}')
    add(page, "pan", "Pan", "A pan fries eggs on the stove.")
    expect(page.locator("#add-metadata")).to_have_value("")
    expect(page.locator("#filter-hint")).to_contain_text(re.compile("kind.*round.*size"))
    page.fill("#filter", "kind = 'pan' AND size > 20")
    search_for(page, "fry eggs on the stove")
    assert found(page) == ["pan"]
    page.fill("#filter", "size > 28")
    page.keyboard.press("Enter")
    page.get_by_text("No document meets the filter.").first.wait_for()
    page.fill("#filter", "")
    search_for(page, "fry eggs on the stove")
    remove_first(page, "pan")


@pytest.mark.parametrize(
    ("given", "named"),
    [('{"kind": pan}', "no JSON"), ('["pan"]', "this is a list"), ("28", "this is a number"), ("null", "this is null")],
)
def test_metadata_that_are_no_object_are_refused(page: Page, given: str, named: str) -> None:
    from playwright.sync_api import expect

    page.fill("#add-metadata", given)
    page.fill("#add-id", "pot")
    page.fill("#add-text", "A pot boils soup.")
    page.click("#add button[type=submit]")
    expect(page.locator("#documents-status")).to_contain_text(named)
    expect(page.locator("#documents-status")).to_contain_text("The document was not added.")
    expect(page.locator("#add-metadata")).to_be_focused()
    expect(page.locator("#add-metadata")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#add-text")).to_have_value("A pot boils soup.")
    page.fill("#add-metadata", "{}")
    page.click("#add button[type=submit]")
    page.locator("#documents-status button").wait_for()
    expect(page.locator("#add-metadata")).not_to_have_attribute("aria-invalid", "true")


def test_thumbs_write_labels(answered: Page, docstrings: Index) -> None:
    assert docstrings.path is not None
    file = docstrings.path.with_name(f"{docstrings.path.name}.feedback.jsonl")
    before = len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0
    first, second = (answered.locator("#results > li").nth(place) for place in (0, 1))
    first.get_by_role("button", name="Relevant:", exact=False).first.click()
    second.get_by_role("button", name="Not relevant").click()
    answered.locator("#results > li:nth-child(1) .thumb[data-grade='1'][aria-pressed=true]").wait_for()
    answered.locator("#results > li:nth-child(2) .thumb[data-grade='0'][aria-pressed=true]").wait_for()
    labels = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[before:]]
    shown = found(answered)
    assert [(label["query"], label["document"], label["grade"]) for label in labels] == [(QUERY, shown[0], 1), (QUERY, shown[1], 0)]


def test_a_script_in_a_document_is_shown_and_not_run(page: Page) -> None:
    name = '"><img src=x onerror="window.hacked=1">'
    add(page, name, HOSTILE, f"{HOSTILE} hostile markup in a document")
    search_for(page, "hostile markup in a document")
    first = page.locator("#results > li").first
    assert first.get_attribute("data-id") == name
    assert HOSTILE in first.inner_text()
    assert HOSTILE in page.locator("#compare .card").nth(2).locator("li").first.inner_text()
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("window.hacked") is None
    first.get_by_role("button", name="Remove").click()
    assert HOSTILE in page.inner_text("#confirm-text")
    page.click("#confirm-yes")
    first.filter(has_text=HOSTILE).wait_for(state="detached")
    search_for(page, HOSTILE)
    assert HOSTILE not in page.inner_text("#results")
    assert page.evaluate("window.hacked") is None


def test_an_index_of_vectors_alone_is_searched_by_its_documents(vectors_alone: Running, visit: Callable[..., Watched]) -> None:
    page = visit(vectors_alone.url).page
    chip = page.locator("#examples-list button").first
    name = chip.inner_text()
    chip.click()
    page.locator("#compare .card").nth(2).wait_for()
    assert found(page)[0] == name
    assert "this document" in page.locator("#results > li").first.inner_text()
    neighbour = page.locator("#results > li").nth(1)
    other = neighbour.get_attribute("data-id")
    neighbour.get_by_role("button", name="More like this").click()
    page.locator(f'#results > li:first-child[data-id="{other}"]').wait_for()
    page.locator("#results .thumb").first.click()
    page.locator("#results .thumb[aria-pressed=true]").wait_for()
    page.fill("#query", name)
    page.keyboard.press("Enter")
    page.locator(f'#results > li:first-child[data-id="{name}"]').wait_for()


def test_a_vector_is_added_and_found(vectors_alone: Running, visit: Callable[..., Watched]) -> None:
    page = visit(vectors_alone.url).page
    page.locator("#examples-list button").first.wait_for()
    add(page, "new", "", ", ".join(str((7 * place) % 13 - 6) for place in range(64)))
    page.click("#documents-status button")
    page.locator('#results > li:first-child[data-id="new"]').wait_for()
    assert page.locator("#results .score").first.inner_text().split()[-1] == "1.000"


def test_an_empty_index_says_so_and_takes_its_first_document(collection: Dataset, visit: Callable[..., Watched]) -> None:
    from adawidth.serve.run import running

    index = AdaWidth.fit(collection, recipe="pca").index(collection.documents)
    index.remove(list(index))
    with running(index, key=KEY) as service:
        page = visit(service.url).page
        page.get_by_text("This index is empty.").wait_for()
        assert page.locator("#examples").is_hidden()
        add(page, "first", "", ", ".join(str(place % 5 + 1) for place in range(64)))
        page.click("#documents-status button")
        page.locator("#compare .card").nth(2).wait_for()
        assert found(page) == ["first"]


def test_without_a_key_nothing_can_be_changed(docstrings: Index, visit: Callable[..., Watched]) -> None:
    from adawidth import open_index
    from adawidth.serve.run import running

    assert docstrings.path is not None
    with running(open_index(docstrings.path)) as service:
        page = visit(service.url, key=None).page
        page.locator("#examples-list button").first.wait_for()
        search_for(page)
        assert "read-only" in page.inner_text("#documents-note")
        assert page.locator("#documents").is_hidden()
        assert page.locator("#results").get_by_role("button", name="Remove").count() == page.locator(".thumb").count() == 0


def test_the_key_is_asked_for_and_kept_out_of_the_address(served: Running, visit: Callable[..., Watched]) -> None:
    watched = visit(served.url, key=None)
    page = watched.page
    page.locator("#key").fill("a wrong key of some length")
    page.keyboard.press("Enter")
    page.get_by_text("The service does not take this key.").wait_for()
    assert {"401" in error for error in watched.errors} == {True}
    watched.errors.clear()
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")
    page.locator("#examples-list button").first.wait_for()
    assert page.locator("#key-form").is_hidden()
    given = visit(served.url).page
    given.locator("#examples-list button").first.wait_for()
    assert given.evaluate("location.href") == f"{served.url}/"
