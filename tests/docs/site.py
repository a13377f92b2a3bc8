"""Looks at the built site as a reader does who opens it from disk: `make docs`, then `python -m tests.docs.site`.

Every page, in light and dark, on a screen and on a phone: axe finds nothing, nothing is wider than the window, nothing
is loaded from elsewhere; and the search for a word of the field shows the right page first.
"""

from __future__ import annotations

import importlib
import sys
from itertools import product
from pathlib import Path
from typing import Any, Literal

from conftest import CHROMIUM, FLAGS
from tests.docs.search import FIRST

NOT_LOOKED_AT = ("404", "gallery/", "reference/api/", "reference/study", "reference/collect")
"""Pages of the API are alike, and one of them is looked at; live pages have tests of their own."""

RUN = "axe.run(document, {rules: {'target-size': {enabled: true}}}).then(found => found.violations)"


def faults(tab: Any, page: Path, axe: str) -> list[str]:
    """What is wrong with a page as it is shown now."""
    elsewhere: list[str] = []
    tab.on("request", lambda asked: elsewhere.append(asked.url))
    tab.goto(page.as_uri())
    tab.wait_for_timeout(250)
    tab.evaluate(axe)
    found = [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in tab.evaluate(RUN)]
    if tab.evaluate("document.documentElement.scrollWidth - innerWidth") > 1:
        found.append("wider than the window")
    return found + [f"loads {url}" for url in elsewhere if not url.startswith(("file:", "data:", "blob:"))]


def searched(tab: Any, site: Path, word: str) -> str:
    """The page that the search shows first."""
    tab.goto((site / "index.html").as_uri())
    tab.click(".md-search__input")
    tab.keyboard.type(word, delay=30)
    tab.wait_for_selector(".md-search-result__item", timeout=30_000)
    tab.wait_for_timeout(500)
    link = str(tab.locator(".md-search-result__link").first.get_attribute("href"))
    return link.partition(".html")[0].rpartition(f"{site.name}/")[2]


def main(site: Path) -> None:
    """Look at everything, and say what does not hold."""
    from playwright.sync_api import sync_playwright

    axe_playwright_python = importlib.import_module("axe_playwright_python")
    axe = (Path(str(axe_playwright_python.__file__)).parent / "axe.min.js").read_text(encoding="utf-8")
    names = [path.relative_to(site).with_suffix("").as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [name for name in names if not name.startswith(NOT_LOOKED_AT)]
    pages += ["gallery/figures", "reference/study", "reference/api/dissensus"]
    wrong = 0
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        tab = browser.new_page()
        for word, page in FIRST.items():
            if (first := searched(tab, site, word)) != page:
                wrong += 1
                print(f"the search for '{word}' shows {first} first, not {page}", flush=True)
        tab.close()
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for width, scheme in product((1280, 390), schemes):
            for name in pages:
                tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                for fault in faults(tab, site / f"{name}.html", axe):
                    wrong += 1
                    print(f"{name}, {width} px, {scheme}: {fault}", flush=True)
                tab.close()
        browser.close()
    print(f"{len(FIRST)} searches, {len(pages)} pages, 4 ways each: {wrong} faults")
    raise SystemExit(int(wrong > 0))


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "site").resolve())
