"""Takes the picture of the service's page in docs/figures: python tools/page_picture.py [INDEX]

Without an index, that of `adawidth demo --serve` is made for it. Needs Chromium and `pip install 'adawidth[browser]'`.
"""

import io
import sys
import tempfile
from pathlib import Path
from runpy import run_path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from adawidth import open_index
from adawidth.cli.demo_serve import index_docstrings
from adawidth.serve.run import running

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "figures" / "page.png"
SHARED = run_path(str(ROOT / "tests" / "browser_page.py"))
SIZE = {"width": 1200, "height": 960}
SCALE, COLOURS = 1.5, 128
LARGEST = 300_000  # bytes


def pictured(page: Page, address: str) -> Image.Image:
    """The page after a search, at its top."""
    page.set_default_timeout(SHARED["PATIENCE"])
    page.goto(address)
    page.locator("#examples-list button").first.wait_for()
    for text in ("open a file", SHARED["QUERY"]):  # the first one loads the encoder
        SHARED["search_for"](page, text)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return Image.open(io.BytesIO(page.screenshot()))


def main() -> None:
    """Writes the picture, with few colours."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "docstrings.index")
        if len(sys.argv) == 1:
            index_docstrings(path)
        browser = SHARED["launched"](playwright)
        with running(open_index(path), key=SHARED["KEY"]) as service:
            picture = pictured(browser.new_page(viewport=SIZE, device_scale_factor=SCALE), f"{service.url}/#key={SHARED['KEY']}")
        browser.close()
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(OUT, optimize=True)
    if OUT.stat().st_size > LARGEST:
        raise SystemExit(f"{OUT} has {OUT.stat().st_size} bytes, more than {LARGEST}: take fewer colours, or a smaller scale")


if __name__ == "__main__":
    main()
