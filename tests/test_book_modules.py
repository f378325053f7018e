"""The parts that the pages are built with, each by itself."""

import base64
import hashlib
import re

import book_download
import book_images
import book_math
import book_notebooks
import book_pages
import book_policy
import book_slim
import book_strings
import build
import numpy as np
import pytest
from book_slim import Uses, prune
from conftest import ROOT
from fontTools.ttLib import TTFont
from PIL import Image
from sphinx.errors import ExtensionError

from attnbook.language import catalogue, languages

# --- mathematics -------------------------------------------------------------


def test_good_formulas_become_html_and_bad_ones_an_error():
    good, bad = book_math.render([("x^2", False), (r"\frac{1", True)])
    assert 'class="katex"' in good["html"]
    assert "<math" in good["html"]
    assert "error" in bad
    assert "html" not in bad


def test_display_formulas_are_set_apart():
    inline, display = book_math.render([("x", False), ("x", True)])
    assert "katex-display" not in inline["html"]
    assert "katex-display" in display["html"]


# --- notebooks ----------------------------------------------------------------


def _cell(name: str, count: int | None, source: str = "x", **more) -> dict:
    return {
        "cell_type": "code",
        "id": name,
        "source": source,
        "execution_count": count,
        "outputs": [],
        **more,
    }


def test_a_notebook_run_from_top_to_bottom_has_no_fault():
    cells = [_cell("a", 1), {"cell_type": "markdown"}, _cell("b", 2)]
    assert book_notebooks.faults({"cells": cells}) == []


def test_an_empty_cell_needs_no_execution():
    assert book_notebooks.faults({"cells": [_cell("a", None, source=" \n")]}) == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([_cell("a", 1), _cell("b", None)], "'b' is not executed"),
        ([_cell("a", 2), _cell("b", 1)], "'a' was executed out of order"),
        ([_cell("a", 1), _cell("b", 3)], "its count is 3, needed 2"),
        ([_cell("a", 1, outputs=[{"output_type": "error"}])], "stored error"),
    ],
)
def test_each_fault_is_named(cells, words):
    assert words in " ".join(book_notebooks.faults({"cells": cells}))


# --- pages ----------------------------------------------------------------------


@pytest.fixture
def no_addresses(monkeypatch):
    for name in ("REPO_URL", "REPO_BRANCH", "BINDER_URL", "HUB_URL", "SITE_URL"):
        monkeypatch.delenv(f"BOOK_{name}", raising=False)


@pytest.mark.usefixtures("no_addresses")
def test_no_repository_no_buttons():
    assert book_pages.launch_links("notebooks/en/a.ipynb") == []


@pytest.mark.usefixtures("no_addresses")
def test_buttons_for_gitlab_have_binder_and_no_colab(monkeypatch):
    monkeypatch.setenv("BOOK_REPO_URL", "https://gitlab.com/group/sub/book.git")
    [(name, address)] = book_pages.launch_links("notebooks/zh/a.ipynb")
    assert name == "Binder"
    assert "/v2/gl/group%2Fsub%2Fbook/main?urlpath=" in address
    assert address.endswith("notebooks/zh/a.ipynb")


@pytest.mark.usefixtures("no_addresses")
def test_buttons_for_any_other_host_name_the_whole_repository(monkeypatch):
    monkeypatch.setenv("BOOK_REPO_URL", "https://git.example.edu/book")
    monkeypatch.setenv("BOOK_BINDER_URL", "https://binder.example.edu/")
    [(_, address)] = book_pages.launch_links("notebooks/en/a.ipynb")
    assert address.startswith(
        "https://binder.example.edu/v2/git/https%3A%2F%2Fgit.example.edu%2Fbook/main?"
    )


@pytest.mark.parametrize("value", ["github.com/a/b", "javascript:x", 'https://"x'])
def test_an_address_that_is_none_is_refused_by_name(monkeypatch, value):
    monkeypatch.setenv("BOOK_REPO_URL", value)
    with pytest.raises(ValueError, match="BOOK_REPO_URL is"):
        book_pages.launch_links("notebooks/en/a.ipynb")


# --- strings ----------------------------------------------------------------------


@pytest.mark.parametrize("language", languages())
def test_the_themes_strings_are_in_every_catalogue(language):
    assert set(book_strings.STRINGS.values()) <= set(catalogue(language))


def test_the_strings_that_templates_use_are_in_the_catalogue():
    used = set()
    for path in (ROOT / "book" / "_templates").glob("*.html"):
        used |= set(re.findall(r"""\bt\(["']([\w.]+)["']""", path.read_text("utf-8")))
    assert len(used) > 10
    assert used <= set(catalogue("en"))


# --- policy -----------------------------------------------------------------------

PAGE = '<html><head><meta charset="utf-8" />{}</head><body>{}</body></html>'


def test_a_policy_stands_before_the_first_script():
    html = book_policy.protect(PAGE.format("<script>a()</script>", ""), "page")
    assert html.index("Content-Security-Policy") < html.index("<script>")


def test_scripts_from_files_need_no_hash():
    assert book_policy.script_hashes('<script src="a.js"></script>') == []


@pytest.mark.parametrize(
    "tag",
    [
        '<a onclick="x()">',
        "<img alt='' onerror='x()'>",
        "<a onclick=go()>",
        "<a\nONCLICK = go()>",
        '<a title=">" onclick=go()>',
        "<img/onerror=go()/>",
        "<input autofocus onfocus=go() value=1>",
    ],
)
def test_an_inline_handler_is_refused(tag):
    with pytest.raises(ExtensionError, match="inline event handler"):
        book_policy.protect(PAGE.format("", tag), "page")


def test_code_that_speaks_of_handlers_is_not_one():
    for shown in (
        "<pre>&lt;a onclick=&quot;x()&quot;&gt;</pre>",
        '<script>a.innerHTML = "<a onclick=x()>"</script>',
        '<p title="<a onclick=x()>" data-on="1">on = 1</p>',
        "<!-- <a onclick=x()> -->",
    ):
        assert shown in book_policy.protect(PAGE.format("", shown), "page")


def test_the_policy_is_this_and_its_hashes_are_sorted():
    scripts = [f"<script>a({n})</script>" for n in range(4)]
    hashes = sorted(
        "'sha256-"
        + base64.b64encode(hashlib.sha256(f"a({n})".encode()).digest()).decode()
        + "'"
        for n in range(4)
    )
    for order in (scripts, scripts[::-1], scripts * 2):
        assert book_policy.policy("".join(order)) == (
            f"default-src 'none'; script-src 'self' {' '.join(hashes)}; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
            "font-src 'self'; connect-src 'self'; form-action 'self'; "
            "base-uri 'none'"
        )


# --- style sheets and fonts ---------------------------------------------------------


def test_rules_for_unused_classes_go_and_all_others_stay():
    css = ".a{color:red}.b{color:red}.a .b,.a>p{margin:0}p:not(.b){top:0}#x.b{left:0}"
    expected = ".a{color:red}.a>p{margin:0}p:not(.b){top:0}"
    assert prune(css, Uses(frozenset({"a"}))) == expected


def test_pruning_reaches_into_media_rules_and_keeps_licences():
    css = (
        "/*! MIT */@media print{.b{top:0}.a{top:0 !important}}@media screen{.b{top:0}}"
    )
    kept = "/*! MIT */@media print{.a{top:0!important}}"
    assert prune(css, Uses(frozenset({"a"}))) == kept


def test_properties_that_nothing_reads_go_with_those_only_they_read():
    css = ":root{--a:1;--b:var(--a);--c:var(--b);--d:2}p{top:var(--d)}"
    assert prune(css, Uses(frozenset())) == ":root{--d:2}p{top:var(--d)}"
    everything = Uses(frozenset(), "getPropertyValue('--c')")
    assert prune(css, everything) == css


def test_a_cut_font_has_the_wanted_glyphs_only(tmp_path):
    path = tmp_path / "font.woff2"
    whole = book_math.KATEX / "fonts" / "KaTeX_Main-Regular.woff2"
    contents = []
    for _ in range(2):
        path.write_bytes(whole.read_bytes())
        book_slim.cut_font(path, {"a", "+"})
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    with TTFont(path) as font:
        assert set(font.getBestCmap()) == {ord("a"), ord("+")}


def test_webp_has_the_pixels_of_the_png(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    webp, size = book_images.as_webp(tmp_path / "a.png")
    assert size == (30, 20)
    assert not (tmp_path / "a.png").exists()
    with Image.open(webp) as image:
        np.testing.assert_array_equal(np.asarray(image), pixels)


# --- the build ------------------------------------------------------------------------


def test_another_edition_overrides_only_what_it_names():
    base = {"title": "A", "sphinx": {"config": {"language": "en", "x": 1}}}
    override = {"title": "B", "sphinx": {"config": {"language": "zh_CN"}}}
    assert build.merged(base, override) == {
        "title": "B",
        "sphinx": {"config": {"language": "zh_CN", "x": 1}},
    }
    assert base["sphinx"]["config"]["language"] == "en"


def test_the_root_404_page_links_from_the_root(monkeypatch):
    page = '<a href="a.html#b"><a href="#c"><a href="../zh/a.html"><a href="https://x">'
    monkeypatch.delenv("BOOK_SITE_URL", raising=False)
    assert build.not_found(page, "en") == (
        '<a href="/en/a.html#b"><a href="#c"><a href="/zh/a.html"><a href="https://x">'
    )
    monkeypatch.setenv("BOOK_SITE_URL", "https://someone.example/book/")
    assert 'href="/book/en/a.html#b"' in build.not_found(page, "en")


# --- the notebook that is downloaded -----------------------------------------


def _markdown(text: str) -> dict:
    return {"cells": [{"cell_type": "markdown", "source": text, "metadata": {}}]}


def test_a_downloaded_notebook_holds_its_figures(tmp_path):
    (tmp_path / "01_a.svg").write_text("<svg/>")
    notebook = book_download.portable(
        _markdown("![words, more](figures/01_a.svg)"), tmp_path, ""
    )
    (cell,) = notebook["cells"]
    assert cell["source"] == "![words, more](attachment:01_a.svg)"
    stored = cell["attachments"]["01_a.svg"]["image/svg+xml"]
    assert base64.b64decode(stored) == b"<svg/>"


@pytest.mark.parametrize(
    ("text", "alone", "published"),
    [
        ("[N](notation.md)", "N", "[N](https://x.y/en/notation.html)"),
        ("[N](a_b.md#k1)", "N", "[N](https://x.y/en/a_b.html#k1)"),
        ("[C](02_scaling.ipynb)", "C", "[C](https://x.y/en/02_scaling.html)"),
        ("[W](https://a.b/c.md)", "[W](https://a.b/c.md)", "[W](https://a.b/c.md)"),
        ("`a[0](b)` [h](#top)", "`a[0](b)` [h](#top)", "`a[0](b)` [h](#top)"),
    ],
)
def test_a_downloaded_notebook_has_no_relative_link(tmp_path, text, alone, published):
    for edition, expected in (("", alone), ("https://x.y/en", published)):
        notebook = book_download.portable(_markdown(text), tmp_path, edition)
        assert notebook["cells"][0]["source"] == expected
