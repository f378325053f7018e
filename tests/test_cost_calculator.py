"""The cost calculator: its mathematics, its numbers, and its controls."""

import html
from fractions import Fraction

import pytest
from traitlets import TraitError
from widget_support import alive, served, settle, state, write_page

from attnbook import cost
from attnbook.cost import CONFIGS
from attnbook.widgets import CostCalculator
from attnbook.widgets import cost_calculator as module

QWEN, LARGEST, SMALLEST = range(3)
EXTREME = {
    "layers": 128,
    "width": 16384,
    "heads": 128,
    "kv_heads": 128,
    "head_width": 512,
    "ffn_width": 65536,
    "tokens": 2**20,
}
LEAST = {
    "layers": 1,
    "width": 64,
    "heads": 1,
    "kv_heads": 1,
    "head_width": 8,
    "ffn_width": 128,
    "gated": False,
    "bytes_per_number": 1,
    "tokens": 1,
}
# Few factors of two, so that a double cannot hold its counts.
ODD = {
    "layers": 127,
    "width": 704,
    "heads": 127,
    "kv_heads": 1,
    "head_width": 504,
    "tokens": 2**20 - 1,
}


def widgets():
    return (
        CostCalculator(),
        CostCalculator(**EXTREME, bytes_per_number=4),
        CostCalculator(**LEAST),
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost")
    write_page(folder, *widgets())
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    """Call a function of the module; whole numbers beyond 2⁵³ go as their digits."""
    page = browser.new_page()
    page.goto(address)

    def call(function, *arguments):
        return page.evaluate(
            """async ([name, given]) => {
                const file = "_static/widgets/cost_calculator.js";
                const thing = (await import(new URL(file, location.href).href))[name];
                const big = (x) => typeof x === "string" ? BigInt(x) : x;
                const plain = (x) => typeof x === "bigint" ? String(x) : x;
                if (typeof thing !== "function") return thing;
                const out = thing(...given.map(big));
                if (out === null || typeof out !== "object") return plain(out);
                if (Array.isArray(out)) return out;
                return Object.fromEntries(
                    Object.entries(out).map(([name, x]) => [name, plain(x)]));
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


def shown(root):
    """Return the values that the living widget shows, in the order of the page."""
    return [node.text_content() for node in root.locator("[data-value]").all()]


def expected(widget):
    """Return what it should show."""
    n, held = widget.tokens, widget._memory()
    whole, one = widget._arithmetic(n, n), widget._arithmetic(1, n)
    counts = [part[name] for name in one for part in (whole, one)]
    return [module._count_text(c) for c in counts] + [
        module._bytes_text(size) for size in held.values()
    ]


def digits(counts):
    return {name: str(count) for name, count in counts.items()}


# ---- mathematics ----


def test_presets_and_limits_are_those_of_the_library(call):
    presets = {preset.pop("name"): preset for preset in call("PRESETS")}
    assert list(presets) == list(CONFIGS)
    for name, config in CONFIGS.items():
        assert presets[name].pop("gated") == (config.ffn_matrices == 3)
        for part, size in presets[name].items():
            assert getattr(config, part) == size
    limits = {name: list(limit) for name, limit in module.LIMITS.items()}
    assert limits.pop("tokens") == [1, 2 ** call("MOST_PLACES"), 1]
    assert call("LIMITS") == limits


@pytest.mark.parametrize("name", CONFIGS)
def test_counts_are_exactly_those_of_the_library(call, name):
    config = CONFIGS[name]
    sizes = module._sizes_of(config)
    for queries, keys in ((1, 1), (1, 2**20), (2**20, 2**20), (1000, 99_991)):
        assert call("arithmetic", sizes, queries, keys) == digits(
            {
                "projections": config.projection_flops(queries),
                "scores": config.attention_flops(queries, keys),
                "feed_forward": config.feed_forward_flops(queries),
            }
        )
    for n in (1, 99_991, 2**20):
        layer = cost.weights_bytes(n, n, config.heads)
        assert call("memory", sizes, n, 2) == digits(
            {
                "weights_layer": layer,
                "weights": layer * config.layers,
                "cache_token": config.kv_cache_bytes(1),
                "cache": config.kv_cache_bytes(n),
            }
        )
    assert call("levelKeys", sizes) == str(config.level_keys())


@pytest.mark.parametrize("given", [EXTREME, LEAST, {**ODD, "gated": False}])
def test_counts_are_exact_for_sizes_of_your_own(call, given):
    widget = CostCalculator(**given)
    sizes = {n: getattr(widget, n) for n in (*module.LIMITS, "gated")}
    n = sizes.pop("tokens")
    assert call("arithmetic", sizes, n, n) == digits(widget._arithmetic(n, n))
    held = digits(widget._memory())
    assert call("memory", sizes, n, widget.bytes_per_number) == held
    assert call("levelKeys", sizes) == str(widget._level())


def test_some_counts_are_beyond_what_doubles_hold():
    widget = CostCalculator(**ODD)
    scores = widget._arithmetic(widget.tokens, widget.tokens)["scores"]
    assert scores > 2**53
    assert int(float(scores)) != scores


def test_key_heads_that_do_not_fit_become_the_next_divisor_below(call):
    for heads in (1, 7, 28, 128):
        divisors = [n for n in range(1, heads + 1) if heads % n == 0]
        assert call("divisors", heads) == divisors
        for wanted in (1, 5, 128):
            assert call("fit", heads, wanted) == max(n for n in divisors if n <= wanted)


COUNTS = [0, 1, 999, 1000, 99_999, 999_999, 1_000_000, 1_049_999, 1_050_000, 9_949_999]
COUNTS += [9_950_000, 99_999_999, 10**18, 2**63 + 1, 1023, 1024, 1025, 1536, 2**20 - 1]
COUNTS += [2**30, 3 * 2**29, 2**50 * 5000]


def test_numbers_are_written_alike_in_both_languages(call):
    for count in COUNTS:
        assert call("countText", str(count)) == module._count_text(count)
        assert call("bytesText", str(count)) == module._bytes_text(count)
    for part, whole in ((0, 7), (1, 7), (7, 7), (1, 10**9), (1, 2000), (1, 2001)):
        text = module._share_text(part, whole)
        assert call("shareText", str(part), str(whole)) == text
        if "<" not in text:
            exact = Fraction(100 * part, whole)
            assert abs(Fraction(text.rstrip("%")) - exact) <= Fraction(1, 20)
    assert module._count_text(9_950_000) == "1.0\u00a0·\u00a010⁷"
    assert module._bytes_text(57_344) == "56\u00a0KiB"
    assert module._bytes_text(2**30 + 2**29 + 1) == "1.5\u00a0GiB"


# ---- in the page ----


def test_every_number_shown_is_the_librarys(open_page):
    page = open_page()
    for place, widget in enumerate(widgets()):
        root = alive(page, place)
        assert shown(root) == expected(widget)
        assert root.locator(".attn-sentence").inner_text() == widget._alt()
        crossing = root.locator("[data-fact=crossing]").inner_text()
        assert crossing == f"{widget._level():,} keys"


def test_formulas_give_the_value_beside_them(open_page):
    root = alive(open_page(), QWEN)
    widget = CostCalculator()
    n, held = widget.tokens, widget._memory()
    whole, one = widget._arithmetic(n, n), widget._arithmetic(1, n)
    wanted = [part[name] for name in one for part in (whole, one)]
    wanted += list(held.values())
    sums = [p.locator("span").inner_text() for p in root.locator("p:has(> b)").all()]
    for text, value in zip(sums, wanted, strict=True):
        plain = text.replace("\u00a0", " ").replace(",", "").replace("·", "*")
        assert eval(plain) == value


def test_bars_have_the_share_that_is_written(open_page):
    root = alive(open_page(), QWEN)
    widths = root.locator(".attn-meter").evaluate_all(
        "bars => bars.map((bar) => Number(bar.style.getPropertyValue('--share')))"
    )
    widget = CostCalculator()
    one, held = widget._arithmetic(1, widget.tokens), widget._memory()
    wanted = [part / sum(one.values()) for part in one.values()]
    wanted += [1.0, held["cache"] / held["weights"]]
    assert widths == pytest.approx(wanted, abs=2e-6)
    backgrounds = root.locator(".attn-meter").evaluate_all(
        "bars => bars.map((bar) => getComputedStyle(bar).backgroundImage)"
    )
    assert len(set(backgrounds)) == 4  # weights and scores share their colour


def test_presets_and_controls_set_the_state_and_reset_undoes_it(open_page):
    page = open_page()
    root = alive(page, QWEN)
    before = shown(root), root.locator(".attn-sentence").inner_text()
    for name, config in CONFIGS.items():
        root.get_by_role("radio", name=name, exact=True).check(force=True)
        settle(page)
        assert shown(root) == expected(CostCalculator(**module._sizes_of(config)))
        context = root.locator("[data-fact=context]").inner_text()
        assert context == f"{config.context:,} tokens"
    root.get_by_text("Sizes of your own").click()
    for slider in root.get_by_role("slider").all():
        was = root.inner_html()
        slider.focus()
        page.keyboard.press("ArrowLeft")
        settle(page)
        assert root.inner_html() != was
    root.get_by_role("switch").uncheck()
    root.get_by_role("radio", name="4", exact=True).check(force=True)
    settle(page)
    now = state(page, QWEN)
    assert (now["gated"], now["bytes_per_number"], now["tokens"]) == (False, 4, 2**16)
    assert shown(root) == expected(CostCalculator(**now))
    assert "A model of these sizes" in root.locator(".attn-sentence").inner_text()
    assert root.locator("[data-fact=context]").inner_text() == "–"
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert (shown(root), root.locator(".attn-sentence").inner_text()) == before
    assert state(page, QWEN) == CostCalculator()._state()


def test_the_control_of_tokens_is_logarithmic(open_page):
    page = open_page()
    root = alive(page, QWEN)
    tokens = root.get_by_role("slider", name="Tokens, n")
    for place in (0, 12, 20):
        tokens.fill(str(place))
        settle(page)
        assert state(page, QWEN)["tokens"] == 2**place
        assert tokens.get_attribute("aria-valuetext") == f"{2**place:,}"


def test_a_state_comes_from_the_address_and_a_damaged_one_does_not(open_page):
    page = open_page("#w.1.tokens=1000&w.1.heads=9&w.2.tokens=1048577&w.2.width=65")
    root = alive(page, QWEN)
    widget = CostCalculator(heads=9, kv_heads=3, tokens=1000)
    assert shown(root) == expected(widget)
    alive(page, LARGEST)
    assert state(page, LARGEST) == widgets()[LARGEST]._state()


@pytest.mark.parametrize("width", [320, 1600])
def test_nothing_overflows_and_everything_has_a_label(open_page, width):
    page = open_page(viewport={"width": width, "height": 900})
    for place in (QWEN, LARGEST, SMALLEST):
        root = alive(page, place)
        root.get_by_text("Sizes of your own").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        outside = root.evaluate(
            """(root) => {
                const box = root.getBoundingClientRect();
                const parts = "p, b, label, button, dd, dt, span";
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
        assert root.get_by_role("slider").count() == 7
        for control in root.locator("input").all():
            assert control.evaluate("n => n.labels.length || n.ariaLabel.length") > 0


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


# ---- Python's side ----


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layers": 0}, "layers is 0; it must be 1 to 128"),
        ({"width": 65}, "width is 65; it must be 64 to 16384 in steps of 64"),
        ({"kv_heads": 3}, "kv_heads is 3, but .* must divide heads, 28"),
        ({"heads": 9}, "heads is 9, but kv_heads, 4, must divide heads, 9"),
        ({"tokens": 2**20 + 1}, "tokens is 1048577"),
        ({"ffn_width": 0}, "ffn_width is 0"),
        ({"head_width": 513}, "head_width is 513"),
    ],
)
def test_values_that_do_not_fit_are_refused(given, message):
    with pytest.raises(TraitError, match=message):
        CostCalculator(**given)
    widget = CostCalculator()
    before = repr(widget)
    ((name, value),) = given.items()
    with pytest.raises(TraitError, match=message):
        setattr(widget, name, value)
    assert repr(widget) == before


def test_the_picture_on_paper_says_what_the_library_counts():
    for widget in widgets():
        picture = html.unescape(widget._picture())
        for value in expected(widget):
            assert f">{value}<" in picture
    assert "7\u00a0GiB" in CostCalculator()._alt()
