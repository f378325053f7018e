"""The widget of heads and groups: its mathematics, its numbers, and its controls."""

import html

import numpy as np
import pytest
from traitlets import TraitError
from widget_support import alive, served, settle, state, write_page

from attnbook import cost, ops
from attnbook.cost import CONFIGS
from attnbook.widgets import HeadsAndGroups

QWEN, LLAMA, WIDE, LATER = range(4)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads")
    write_page(
        folder,
        HeadsAndGroups(),
        HeadsAndGroups(heads=64, kv_heads=8, asker=60),
        HeadsAndGroups(heads=64, kv_heads=64, head_width=256, asker=63),
        HeadsAndGroups(heads=1, kv_heads=1, head_width=8),
    )
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    page = browser.new_page()
    page.goto(address)

    def call(function, *arguments):
        return page.evaluate(
            """async ([name, given]) => {
                const address = new URL("_static/widgets/heads.js", location.href);
                const thing = (await import(address.href))[name];
                return typeof thing === "function" ? thing(...given) : thing;
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


def rows(root):
    return [
        [cell.inner_text() for cell in row.locator("td").all()]
        for row in root.locator("tbody tr").all()
    ]


def expected_rows(heads, kv_heads, width):
    columns = [(heads, kv_heads, width), (heads, heads, width), (1, 1, heads * width)]
    return [
        [str(cost.attention_flops(1, 1, h, d) // 2) for h, _, d in columns],
        [str(cost.attention_exponentials(1, 1, h)) for h, _, _ in columns],
        [str(cost.kv_cache_bytes(1, 1, g, d, 1)) for _, g, d in columns],
        [str(cost.kv_cache_bytes(1, 1, g, d)) for _, g, d in columns],
    ]


# ---- mathematics ----


def test_presets_are_the_published_configurations(call):
    presets = {preset.pop("name"): preset for preset in call("PRESETS")}
    names = ("heads", "kv_heads", "head_width", "layers")
    assert presets == {
        name: {part: getattr(config, part) for part in names}
        for name, config in CONFIGS.items()
    }


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (6, 2), (9, 3), (28, 4)])
def test_who_reads_whom_is_what_repeat_kv_does(call, heads, kv_heads):
    numbered = np.arange(float(kv_heads)).reshape(kv_heads, 1, 1)
    repeated = ops.repeat_kv(numbered, heads // kv_heads).ravel()
    assert call("readers", heads, kv_heads) == repeated.tolist()


def test_key_heads_that_do_not_fit_become_the_next_divisor_below(call):
    for heads in (1, 7, 12, 28, 64):
        divisors = [n for n in range(1, heads + 1) if heads % n == 0]
        assert call("divisors", heads) == divisors
        for wanted in (1, 5, 64):
            assert call("fit", heads, wanted) == max(n for n in divisors if n <= wanted)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "width"), [(28, 4, 128), (9, 3, 64), (1, 1, 8), (64, 64, 256)]
)
def test_costs_are_those_of_the_library_and_of_real_arrays(
    call, heads, kv_heads, width
):
    got = call("costs", heads, kv_heads, width)
    arrays = [np.zeros((kv_heads, 1, width), np.float16) for _ in "KV"]
    assert got == {
        "products": cost.attention_flops(1, 1, heads, width) // 2,
        "exponentials": cost.attention_exponentials(1, 1, heads),
        "kept": sum(array.size for array in arrays),
        "bytes": sum(array.nbytes for array in arrays),
    }


# ---- in the page ----


@pytest.mark.parametrize(
    ("place", "sizes"),
    [(QWEN, (28, 4, 128)), (LLAMA, (64, 8, 128)), (WIDE, (64, 64, 256))],
)
def test_the_table_shows_what_the_library_counts(open_page, place, sizes):
    root = alive(open_page(), place)
    assert rows(root) == expected_rows(*sizes)
    group = sizes[0] // sizes[1]
    share = root.locator("[data-fact=share]").inner_text()
    assert share == ("1" if group == 1 else f"1/{group}")
    assert root.locator("[data-fact=served]").inner_text() == str(group)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_preset_sets_everything_and_says_the_bytes(open_page, name):
    page = open_page()
    root = alive(page, LATER)
    root.get_by_role("radio", name=name, exact=True).check(force=True)
    settle(page)
    config = CONFIGS[name]
    sizes = (config.heads, config.kv_heads, config.head_width)
    assert rows(root) == expected_rows(*sizes)
    kib = config.kv_cache_bytes(1) / 1024
    assert f"{kib:g} KiB for each token" in root.locator(".attn-sentence").inner_text()
    now = state(page, LATER)
    assert (now["heads"], now["kv_heads"], now["head_width"]) == sizes


def test_the_way_drawn_is_from_the_asker_to_the_head_it_reads(open_page):
    page = open_page()
    root = alive(page, QWEN)
    way = root.locator("svg .attn-stroke-query")
    asker = root.get_by_role("slider", name="Follow query head")
    for h in (0, 6, 7, 27):
        asker.fill(str(h))
        settle(page)
        ends = [float(way.get_attribute(name)) for name in ("x1", "x2")]
        pitch, read = 340 / 28, h // 7
        wanted = [(h + 0.5) * pitch, (read * 7 + 3.5) * pitch]
        np.testing.assert_allclose(ends, wanted, atol=0.01)
        full = root.locator("rect:not(.attn-faint)")
        assert full.count() == 7 + 2  # its group, one key and one value
        sentence = root.locator(".attn-sentence").inner_text()
        assert f"{read * 7} to {read * 7 + 6} share key/value head {read}" in sentence
    assert root.locator("rect").count() == 28 + 2 * 4


def test_key_heads_follow_when_query_heads_change(open_page):
    page = open_page()
    root = alive(page, QWEN)
    heads = root.get_by_role("slider", name="Query heads")
    heads.fill("9")
    settle(page)
    now = state(page, QWEN)
    assert (now["heads"], now["kv_heads"], now["asker"]) == (9, 3, 8)
    groups = root.get_by_role("slider", name="Key/value heads")
    seen = []
    groups.focus()
    page.keyboard.press("Home")
    for _ in range(3):
        settle(page)
        seen.append((state(page, QWEN)["kv_heads"], groups.get_attribute("max")))
        page.keyboard.press("ArrowRight")
    assert seen == [(1, "2"), (3, "2"), (9, "2")]
    assert groups.get_attribute("aria-valuetext") == "9"
    assert "Full multi-head" in root.locator(".attn-sentence").inner_text()


def test_every_control_changes_what_is_shown_and_reset_undoes_it(open_page):
    page = open_page()
    root = alive(page, QWEN)
    before = rows(root), root.locator(".attn-sentence").inner_text()
    for slider in root.get_by_role("slider").all():
        was = root.inner_html()
        slider.focus()
        page.keyboard.press("ArrowRight")
        settle(page)
        assert root.inner_html() != was
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert (rows(root), root.locator(".attn-sentence").inner_text()) == before
    assert state(page, QWEN) == HeadsAndGroups()._state()


def test_a_state_comes_from_the_address(open_page):
    page = open_page("#w.1.heads=12&w.1.kv_heads=2&w.1.head_width=64&w.1.asker=7")
    assert rows(alive(page, QWEN)) == expected_rows(12, 2, 64)


@pytest.mark.parametrize(
    "fragment",
    [
        "#w.1.heads=65&w.1.kv_heads=0&w.1.head_width=300&w.1.asker=-1",
        "#w.1.heads=%22many%22&w.1.kv_heads=1.5&w.1.head_width=9&w.1.asker=64",
    ],
)
def test_a_damaged_address_changes_nothing(open_page, fragment):
    page = open_page(fragment)
    alive(page, QWEN)
    assert state(page, QWEN) == HeadsAndGroups()._state()


def test_an_address_whose_heads_do_not_go_together_still_draws(open_page):
    root = alive(open_page("#w.1.heads=9"), QWEN)
    assert rows(root) == expected_rows(9, 3, 128)


@pytest.mark.parametrize("width", [320, 640, 1600])
def test_nothing_overflows(open_page, width):
    page = open_page(viewport={"width": width, "height": 900})
    for place in (QWEN, LLAMA, WIDE, LATER):
        root = alive(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        outside = root.evaluate(
            """(root) => {
                const box = root.getBoundingClientRect();
                const parts = "table, td, th, p, label, button, dd, span, text";
                return [...root.querySelectorAll(parts)]
                    .filter((n) => !n.closest(".attn-spoken"))
                    .filter((n) => {
                        const { left, right } = n.getBoundingClientRect();
                        return right > box.right + 0.5 || left < box.left - 0.5;
                    })
                    .map((n) => n.outerHTML);
            }"""
        )
        assert outside == []


def test_every_control_has_a_label_and_the_picture_is_described(open_page):
    root = alive(open_page(), QWEN)
    assert root.get_by_role("slider").count() == 4
    for control in root.locator("input").all():
        assert control.evaluate("n => n.labels.length || n.ariaLabel.length") > 0
    alt = root.locator("svg").get_attribute("aria-label")
    assert "Query head 9 reads key/value head 1" in alt


def test_dispose_leaves_nothing(open_page):
    page = open_page()
    alive(page, QWEN)
    left = page.locator("[data-widget]").first.evaluate(
        """async (host) => {
            const { dispose, modelOf } = await import("/_static/widgets/loader.js");
            await dispose(host);
            return [modelOf(host)?.listenerCount ?? 0,
                    host.querySelectorAll(".attn-root").length];
        }"""
    )
    assert left == [0, 0]


def test_without_javascript_the_picture_teaches(open_page):
    page = open_page(java_script_enabled=False)
    image = page.locator("[data-widget] img").first
    assert image.is_visible()
    assert "56 KiB" in image.get_attribute("alt")


# ---- Python's side ----


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"heads": 0}, "heads is 0; it must be 1 to 64"),
        ({"heads": 65}, "heads is 65"),
        ({"kv_heads": 3}, "kv_heads is 3, but .* must divide heads, 28"),
        ({"heads": 9}, "heads is 9, but kv_heads, 4, must divide heads, 9"),
        ({"head_width": 12}, "head_width is 12; it must be a multiple of 8"),
        ({"head_width": 264}, "head_width is 264"),
        ({"asker": 64}, "asker is 64; it must be 0 to 63"),
    ],
)
def test_values_that_do_not_fit_are_refused(given, message):
    with pytest.raises(TraitError, match=message):
        HeadsAndGroups(**given)
    widget = HeadsAndGroups()
    before = repr(widget)
    ((name, value),) = given.items()
    with pytest.raises(TraitError, match=message):
        setattr(widget, name, value)
    assert repr(widget) == before


def test_heads_and_key_heads_can_change_together():
    widget = HeadsAndGroups()
    with widget.hold_trait_notifications():
        widget.heads = 9
        widget.kv_heads = 3
    assert (widget.heads, widget.kv_heads) == (9, 3)


def test_the_picture_on_paper_says_what_the_library_counts():
    shown = html.unescape(HeadsAndGroups()._picture())
    for row in expected_rows(28, 4, 128):
        for value in row:
            assert f">{value}<" in shown
    assert "Q9" in shown
    assert "1/7" in shown
    assert "single head" in HeadsAndGroups(heads=1, kv_heads=1)._alt()
