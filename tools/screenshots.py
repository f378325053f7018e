"""Take the README's two pictures, light and dark, from the built book."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from serving import browser_options, serve  # noqa: E402 (after the path)

PICTURES = ROOT / ".github" / "screenshots"
SIZE = {"width": 1120, "height": 760}


def main() -> None:
    site = ROOT / "_build" / "site"
    if not (site / "en" / "01_qkv.html").exists():
        sys.exit("there is no built book: run make book first")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with serve(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_options())
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport=SIZE, color_scheme=scheme)
            tab.goto(f"{address}/en/01_qkv.html")
            widget = tab.locator("[data-widget=three_steps]")
            widget.scroll_into_view_if_needed()
            tab.wait_for_selector("[data-widget=three_steps][data-hydrated='1']")
            widget.evaluate(
                "(host) => scrollBy(0, host.getBoundingClientRect().top - 90)"
            )
            tab.wait_for_timeout(500)
            path = PICTURES / f"chapter-{scheme}.png"
            tab.screenshot(path=path)
            print(path.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
