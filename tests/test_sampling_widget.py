"""The widget on sampling: its mathematics equal NumPy's, and it answers the hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import served, settle, state, write_page

from attnbook import sampling
from attnbook.ops import softmax
from attnbook.widgets import Sampling
from attnbook.widgets import sampling as module

NUMBERS = st.lists(st.integers(-40, 40), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampling")
    write_page(folder, Sampling())
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    page = browser.new_page()
    page.goto(address)

    def call(function: str, *arguments):
        got = page.evaluate(
            """async ([name, given]) => {
                const address = new URL("_static/widgets/sampling.js", location.href);
                const result = (await import(address.href))[name](...given);
                // JSON has no infinity.
                return result.map((z) => (Number.isFinite(z) ? z : null));
            }""",
            [function, list(arguments)],
        )
        return np.array([-np.inf if z is None else z for z in got], float)

    yield call
    page.close()


# --- the mathematics ---------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "number"),
    [("temperature", t) for t in (0, 0.1, 0.7, 1, 2)]
    + [("topK", k) for k in (1, 3, 36)]
    + [("topP", p) for p in (0.05, 0.5, 0.9, 0.95, 1)],
)
def test_each_knob_equals_numpy_on_every_beginning(call, function, number):
    names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p"}
    for beginning in module.BEGINNINGS:
        logits = np.array(beginning["logits"])
        expected = getattr(sampling, names[function])(logits, number)
        np.testing.assert_allclose(
            call(function, beginning["logits"], number), expected, rtol=1e-14
        )


@given(
    logits=NUMBERS,
    t=st.sampled_from([0, 0.3, 1, 1.7]),
    k=st.integers(1, 12),
    p=st.sampled_from([0.07, 0.31, 0.77, 0.93, 1]),
)
@settings(max_examples=60)
def test_what_is_drawn_from_equals_numpy_ties_included(call, logits, t, k, p):
    z = [n / 10 for n in logits]
    left = sampling.top_k(sampling.temperature(np.array(z), t), k)
    expected = softmax(sampling.top_p(left, p))
    got = call("drawnFrom", z, t, k, p)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


# --- what Python writes and refuses ------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beginning": 6}, "beginning is 6; it must be 0 to 5"),
        ({"beginning": -1}, "beginning is -1"),
        ({"t": -0.1}, "t is -0.1; it must be 0 to 2"),
        ({"t": 2.5}, "t is 2.5"),
        ({"t": float("nan")}, "t is nan"),
        ({"k": 0}, "k is 0; it must be 1 to 36"),
        ({"k": 37}, "k is 37"),
        ({"p": 0.0}, "p is 0.0; it must be above 0 and at most 1"),
        ({"p": 1.5}, "p is 1.5"),
        ({"p": "most"}, "p"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(TraitError, match=message):
        Sampling(**values)


def test_the_text_alternative_says_what_is_left():
    alt = Sampling(beginning=5, k=3)._alt()
    assert "after “and the q”, at temperature 1, top-k 3 and top-p 1" in alt
    assert "Letters left: 3 / 36; likeliest: u" in alt
    picture = Sampling(beginning=5, k=3)._picture()
    assert picture.count(">(") == module.SHOWN - 3  # in brackets: cut
    assert "<script" not in picture


# --- under the hand ----------------------------------------------------------


def test_the_page_shows_the_numbers_that_numpy_computes(open_page):
    page = open_page()
    for values in (
        {"beginning": 0, "t": 1.0, "k": 36, "p": 1.0},
        {"beginning": 2, "t": 0.5, "k": 10, "p": 0.9},
        {"beginning": 4, "t": 2.0, "k": 5, "p": 1.0},
        {"beginning": 1, "t": 0.0, "k": 36, "p": 0.5},
    ):
        page.locator("[data-widget]").evaluate(
            """async (host, values) => {
                const { modelOf } = await import("/_static/widgets/loader.js");
                for (const [n, v] of Object.entries(values)) modelOf(host).set(n, v);
                await new Promise((done) => requestAnimationFrame(done));
            }""",
            values,
        )
        widget = Sampling(**values)
        for name, text in widget._facts().items():
            assert page.locator(f"[data-fact={name}]").inner_text() == text
        own, drawn = widget._probabilities()
        order = np.argsort(-own, kind="stable")[: module.SHOWN]
        for name, wanted in (("attn-fill-output", drawn), ("attn-even", own)):
            heights = page.locator(f".attn-root rect.{name}").evaluate_all(
                "bars => bars.map((bar) => Number(bar.getAttribute('height')))"
            )
            expected = wanted[order] / module.axis_limit(own, drawn) * 214
            np.testing.assert_allclose(heights, expected, atol=0.011)


def test_every_control_answers_the_keyboard(open_page):
    page = open_page()
    root = page.locator(".attn-root")

    def press(locator, key):
        locator.focus()
        page.keyboard.press(key)
        settle(page)
        return state(page)

    t, k, p = (root.get_by_role("slider", name=n) for n in ("Temp", "Top-k", "Top-p"))
    assert root.locator(".attn-sentence").inner_text().startswith("Open")
    assert press(t, "ArrowLeft")["t"] == 0.9
    assert press(k, "ArrowLeft")["k"] == 35
    assert root.locator(".attn-sentence").inner_text().startswith("Cut: 35 letters")
    assert press(p, "ArrowLeft")["p"] == 0.95
    assert press(t, "Home")["t"] == 0
    assert root.locator(".attn-sentence").inner_text().startswith("Certain")
    assert root.locator("output").all_inner_texts() == ["0.0", "35", "0.95"]
    radio = root.get_by_role("radio").nth(2)
    assert press(radio, "ArrowRight")["beginning"] == 3
    reset = root.get_by_role("button", name="Reset")
    assert press(reset, "Enter") == Sampling()._state()


def test_a_step_of_a_slider_is_drawn_in_the_next_frame(open_page):
    page = open_page()
    shown = page.locator(".attn-root").evaluate(
        """async (root) => {
            const slider = root.querySelectorAll("[type=range]")[1];
            const seen = [];
            for (const k of [1, 7, 18]) {
                slider.value = k;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
                await new Promise((done) => requestAnimationFrame(done));
                seen.push([...root.querySelectorAll("text.attn-name")].length);
            }
            return seen;
        }"""
    )
    assert shown == [1, 7, 18]


def test_a_state_comes_from_an_address_and_damaged_ones_change_nothing(open_page):
    good = "#w.1.beginning=5&w.1.t=0.7&w.1.k=9&w.1.p=0.85"
    expected = Sampling(beginning=5, t=0.7, k=9, p=0.85)
    assert state(open_page(good)) == expected._state()
    bad = "#w.1.beginning=9&w.1.t=-1&w.1.k=2.5&w.1.p=0"
    assert state(open_page(bad)) == Sampling()._state()


@pytest.mark.parametrize("width", [320, 640, 1600])
def test_nothing_overflows_at_any_width(open_page, width):
    page = open_page(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.locator(".attn-root").evaluate(
        """(root) => {
            const box = root.getBoundingClientRect();
            return [...root.querySelectorAll("p, label, button, dd, span, svg, legend")]
                .filter((n) => !n.closest(".attn-spoken"))
                .filter((n) => n.getBoundingClientRect().right > box.right + 0.5)
                .map((n) => n.outerHTML);
        }"""
    )
    assert outside == []


def test_every_control_has_a_name_and_shows_its_focus(open_page):
    page = open_page()
    root = page.locator(".attn-root")
    root.evaluate("r => { r.tabIndex = -1; r.focus() }")
    reached = 0
    while True:
        page.keyboard.press("Tab")
        if not root.evaluate("r => r.contains(document.activeElement)"):
            break
        reached += 1
        assert root.evaluate(
            """() => [document.activeElement, document.activeElement.closest("label")]
                .some((c) => c && getComputedStyle(c).outlineStyle === "solid")"""
        )
        assert root.evaluate(
            """() => (document.activeElement.closest("label")
                ?? document.activeElement).textContent.trim()"""
        )
    assert reached == 5  # the beginnings, three knobs, reset
