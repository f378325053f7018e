"""Every page in a real browser, with every other host refused."""

import pytest
from conftest import AXE, pages, wake_widgets

THEMES = ["light", "dark"]
WIDTHS = [320, 768, 1400]


def test_the_site_is_there(site):
    assert "en/index.html" in pages(site)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("address", pages())
def test_page_is_quiet_and_fits_every_width(site_url, visit, address, theme):
    seen = visit(f"{site_url}/{address}", color_scheme=theme)
    page = seen.page
    wake_widgets(page)
    assert page.locator("html").get_attribute("data-theme") == theme
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    seen.assert_clean()


@pytest.mark.parametrize("address", pages())
def test_images_keep_their_proportions(site_url, visit, address):
    page = visit(f"{site_url}/{address}").page
    page.set_viewport_size({"width": 320, "height": 900})
    stretched = page.evaluate(
        """async () => {
          const found = [];
          for (const image of document.querySelectorAll("article img")) {
            image.loading = "eager";
            await image.decode();
            const { width, height } = image.getBoundingClientRect();
            if (!width) continue;  // shown in the other theme
            const shown = width / height;
            const natural = image.naturalWidth / image.naturalHeight;
            if (Math.abs(shown / natural - 1) > 0.03) found.push(image.src.slice(-60));
          }
          return found;
        }"""
    )
    assert stretched == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("address", pages())
def test_axe_finds_no_violation(site_url, visit, address, theme):
    # The policy of the page would not let the checker in.
    page = visit(f"{site_url}/{address}", color_scheme=theme, bypass_csp=True).page
    wake_widgets(page)
    page.add_script_tag(path=AXE)
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true; }")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ] == []
    assert len(found["passes"]) > 10


@pytest.mark.parametrize("language", ["en-GB", "xx"])
def test_entrance_leads_to_an_edition(site_url, visit, language):
    seen = visit(f"{site_url}/", locale=language)
    seen.page.wait_for_url("**/en/index.html")
    seen.assert_clean()


def test_entrance_needs_no_script(site_url, visit):
    page = visit(f"{site_url}/", java_script_enabled=False).page
    page.wait_for_url("**/en/index.html")


def test_without_script_a_widget_is_a_picture(site_url, visit):
    page = visit(f"{site_url}/en/index.html", java_script_enabled=False).page
    picture = page.locator("[data-widget] img").first
    assert picture.is_visible()
    assert len(picture.get_attribute("alt")) > 20


def test_search_finds_softmax(site_url, visit):
    seen = visit(f"{site_url}/en/index.html")
    page = seen.page
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")
    results = page.locator("#search-results ul.search li")
    # They appear one after the other.
    results.locator("a[href*='notation']").first.wait_for()
    page.wait_for_load_state("networkidle")
    seen.assert_clean()


def test_first_tab_skips_to_the_text(site_url, visit):
    page = visit(f"{site_url}/en/how_to_use.html").page
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.get_attribute("href") == "#main-content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")


def test_theme_button_changes_the_theme_and_is_remembered(site_url, visit):
    page = visit(f"{site_url}/en/notation.html", color_scheme="light").page
    page.locator(".theme-switch-button").first.click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.goto(f"{site_url}/en/about.html")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_chapters_open_from_the_keyboard_on_a_phone(site_url, visit):
    page = visit(
        f"{site_url}/en/index.html", viewport={"width": 320, "height": 700}
    ).page
    link = page.locator("#pst-primary-sidebar a", has_text="Notation")
    assert not link.is_visible()
    page.locator(".primary-toggle").focus()
    page.keyboard.press("Enter")
    page.locator("dialog[open] a", has_text="Notation").wait_for()


def test_copy_button_copies_the_code(site_url, visit):
    page = visit(
        f"{site_url}/en/how_to_use.html",
        permissions=["clipboard-read", "clipboard-write"],
    ).page
    button = page.locator(".book-copy").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator(".book-copy[data-done]").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").strip() == "make lab"


def test_print_shows_the_text_and_no_navigation(site_url, visit):
    page = visit(f"{site_url}/en/how_to_use.html").page
    page.emulate_media(media="print")
    for furniture in (
        "#pst-primary-sidebar",
        "#pst-secondary-sidebar",
        ".bd-header-article",
        ".prev-next-footer",
        ".book-copy",
    ):
        assert page.locator(furniture).count() > 0
        assert not page.locator(furniture).first.is_visible()
    assert page.locator("h1").is_visible()


def test_missing_address_shows_the_404_page_at_any_depth(site_url, visit):
    seen = visit(f"{site_url}/en/no/such/page.html")
    assert "There is no page here" in seen.page.locator("h1").inner_text()
    assert seen.failed == [f"404 {site_url}/en/no/such/page.html"]
    assert seen.refused == []
    seen.page.get_by_role("link", name="to the beginning").click()
    seen.page.wait_for_url("**/en/index.html")
