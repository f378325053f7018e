"""The widget on depth: its mathematics equal NumPy's, and it answers the hand."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import served, settle, state, write_page

from attnbook.depth import KINDS, NORMS
from attnbook.widgets import Depth
from attnbook.widgets import depth as module

ARRANGEMENTS = [
    {"residual": r, "norm": n, "kind": k, "gain": g}
    for r, n, k, g in itertools.product((False, True), NORMS, KINDS, module.GAINS)
    if n != "none" or k == "rms"
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("depth")
    write_page(folder, Depth())
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    page = browser.new_page()
    page.goto(address)

    def call(function: str, *arguments):
        return page.evaluate(
            """async ([name, given]) => {
                const address = new URL("_static/widgets/depth.js", location.href);
                const result = (await import(address.href))[name](...given);
                return ArrayBuffer.isView(result) ? Array.from(result) : result;
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


# --- the mathematics ---------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 128])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
def test_sizes_equal_numpy(call, arrangement, layers):
    got = call("stackSizes", 5, layers, arrangement)
    expected = module.measured(5, layers, **arrangement)
    for name in ("signal", "gradient"):
        wanted = getattr(expected, name)
        assert len(got[name]) == layers + 1
        # As floats: a whole number above 2⁶³ comes back as an int.
        sizes = np.array(got[name], dtype=float)
        np.testing.assert_allclose(sizes, wanted, rtol=1e-9, atol=0, err_msg=name)
    ends = expected.likeness[[0, -1]]
    np.testing.assert_allclose(got["likeness"], ends, rtol=0, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    layers=st.integers(1, 24),
    arrangement=st.sampled_from(ARRANGEMENTS),
)
@settings(max_examples=25)
def test_sizes_equal_numpy_for_any_network(call, seed, layers, arrangement):
    got = call("stackSizes", seed, layers, arrangement)
    expected = module.measured(seed, layers, **arrangement)
    for name in ("signal", "gradient"):
        np.testing.assert_allclose(
            got[name], getattr(expected, name), rtol=1e-9, atol=0
        )


def test_the_network_is_the_same_bit_for_bit(call):
    x, grad, layers = module.network(5, 3)
    assert call("uniforms", 5, 0, 128, 1) == x.ravel().tolist()
    assert call("uniforms", 5, 128, 128, 1) == grad.ravel().tolist()
    first = 256 + 2 * 2 * 32 * 128
    assert call("uniforms", 5, first, 4096, 32) == layers[2][0].ravel().tolist()
    assert call("uniforms", 5, first + 4096, 4096, 128) == layers[2][1].ravel().tolist()


def test_the_network_has_the_variances_that_are_promised():
    x, grad, layers = module.network(5, 8)
    for array, variance in ((x, 1), (grad, 1)):
        assert np.isclose(array.var(), variance, rtol=0.25)
    w_in, w_out = (np.stack(group) for group in zip(*layers, strict=True))
    assert np.isclose(w_in.var(), 1 / 32, rtol=0.02)
    assert np.isclose(w_out.var(), 1 / 128, rtol=0.02)
    assert abs(w_in.mean()) < 0.005


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1.0, "1.00"),
        (0.523, "0.52"),
        (23.41, "23.4"),
        (643.7, "643.7"),
        (3.04e-20, "3.0\u00a0·\u00a010⁻²⁰"),
        (9.96e11, "1.0\u00a0·\u00a010¹²"),
        (1.6e-77, "1.6\u00a0·\u00a010⁻⁷⁷"),
    ],
)
def test_sizes_are_written_alike(call, size, text):
    assert call("sizeText", size) == text
    assert module._size_text(size) == text


@pytest.mark.parametrize(
    ("size", "decades"), [(1.0, 1), (12.0, 3), (1e-5, 12), (1e30, 48), (1e-77, 96)]
)
def test_the_axis_reaches_as_far_as_the_curves(call, size, decades):
    assert call("axisDecades", [1, size]) == decades
    assert module._axis_decades(np.array([1, size])) == decades


@pytest.mark.parametrize(
    ("size", "fate"),
    [(1e-9, "vanished"), (0.5, "kept"), (9, "kept"), (1e7, "exploded")],
)
def test_the_fate_of_a_size(call, size, fate):
    assert call("fate", size) == fate


# --- what Python writes and refuses ------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": 0}, "layers is 0; it must be 1 to 128"),
        ({"layers": 129}, "layers is 129; it must be 1 to 128"),
        ({"norm": "batch"}, "norm"),
        ({"kind": "batch"}, "kind"),
        ({"gain": 3.0}, "gain"),
        ({"residual": "yes"}, "residual"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(TraitError, match=message):
        Depth(**values)


def test_the_text_alternative_says_what_is_measured():
    widget = Depth(layers=128, residual=True, norm="pre", kind="layer")
    sizes = module.measured(5, 128, True, "pre", "layer", 1.0)
    alt = widget._alt()
    assert "128 layers, residual, pre-norm (LayerNorm)" in alt
    assert f"the signal ends at {sizes.signal[-1]:.2f}" in alt
    assert module._size_text(sizes.gradient[0]) in alt
    assert "no residual, no norm:" in Depth()._alt()


# --- under the hand ----------------------------------------------------------


def test_the_page_shows_the_numbers_that_numpy_computes(open_page):
    page = open_page()
    for arrangement in ARRANGEMENTS[::4]:
        page.locator("[data-widget]").evaluate(
            """async (host, values) => {
                const { modelOf } = await import("/_static/widgets/loader.js");
                for (const [n, v] of Object.entries(values)) modelOf(host).set(n, v);
                await new Promise((done) => requestAnimationFrame(done));
            }""",
            {**arrangement, "layers": 40},
        )
        sizes = module.measured(5, 40, **arrangement)
        facts = [
            page.locator(f"[data-fact={name}]").inner_text()
            for name in ("signal", "gradient", "likeness")
        ]
        texts = [module._size_text(s) for s in (sizes.signal[-1], sizes.gradient[0])]
        assert facts[:2] == texts
        likeness = float(facts[2].replace("−", "-"))
        assert likeness == pytest.approx(sizes.likeness[-1], abs=0.006)
        sentence = page.locator(".attn-sentence").inner_text()
        assert all(text in sentence for text in texts)
        path = page.locator(".attn-stroke-output").get_attribute("d")
        ys = np.array([float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", path)])
        decades = module._axis_decades(np.concatenate([sizes.signal, sizes.gradient]))
        expected = 118 - np.log10(sizes.signal) / decades * 108
        np.testing.assert_allclose(ys, expected, atol=0.06)


def test_every_control_answers_the_keyboard(open_page):
    page = open_page()
    root = page.locator(".attn-root")

    def press(locator, key):
        locator.focus()
        page.keyboard.press(key)
        settle(page)
        return state(page)

    slider = root.get_by_role("slider")
    assert press(slider, "ArrowRight")["layers"] == 65
    assert press(slider, "End")["layers"] == 128
    assert root.locator("output").inner_text() == "128"
    assert root.locator(".attn-sentence").inner_text().startswith("Vanished")
    assert press(root.get_by_role("switch"), "Space")["residual"] is True
    assert root.locator(".attn-sentence").inner_text().startswith("Exploded")
    assert root.get_by_role("radio", name="LayerNorm").is_disabled()
    assert (
        press(root.get_by_role("radio", name="no norm"), "ArrowRight")["norm"] == "pre"
    )
    assert root.locator(".attn-sentence").inner_text().startswith("In range")
    kind = root.get_by_role("radio", name="RMSNorm")
    assert press(kind, "ArrowLeft")["kind"] == "layer"
    gain = root.get_by_role("radio", name="1", exact=True)
    before = root.locator("[data-fact=signal]").inner_text()
    assert press(gain, "ArrowRight")["gain"] == 2
    assert root.locator("[data-fact=signal]").inner_text() != before
    assert press(root.get_by_role("button", name="New weights"), "Enter")["seed"] == 6
    assert press(root.get_by_role("button", name="Reset"), "Enter") == Depth()._state()


def test_a_step_of_the_slider_is_drawn_in_the_next_frame(open_page):
    page = open_page()
    shown = page.locator(".attn-root").evaluate(
        """async (root) => {
            const slider = root.querySelector("[type=range]");
            const seen = [];
            for (const n of [1, 128, 17]) {
                slider.value = n;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
                await new Promise((done) => requestAnimationFrame(done));
                const path = root.querySelector(".attn-stroke-query").getAttribute("d");
                seen.push(path.split("L").length - 1);
            }
            return seen;
        }"""
    )
    assert shown == [1, 128, 17]


def test_a_state_comes_from_an_address_and_damaged_ones_change_nothing(open_page):
    good = "#w.1.layers=9&w.1.residual=true&w.1.norm=%22post%22&w.1.gain=2"
    assert (
        state(open_page(good))
        == Depth(layers=9, residual=True, norm="post", gain=2.0)._state()
    )
    bad = "#w.1.layers=0&w.1.norm=%22x%22&w.1.gain=3&w.1.kind=1&w.1.residual=1"
    assert state(open_page(bad)) == Depth()._state()


@pytest.mark.parametrize("width", [320, 360, 640, 1600])
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


def test_the_focus_can_be_seen_on_every_control_and_each_has_a_name(open_page):
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
    # Slider, switch, norm, gain, new weights, reset; without a norm it has no kind.
    assert reached == 6
