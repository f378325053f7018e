"""The mask painter: its mathematics equal NumPy's, and it answers every hand."""

import base64
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import alive, served, settle, state, write_page

from attnbook import ops
from attnbook.widgets import MaskPainter, mask_painter

S = 5
KINDS = mask_painter.KINDS
EXACT = {"rtol": 1e-12, "atol": 1e-12}
signs = st.text("01", min_size=S, max_size=S)
masks = st.sampled_from([3, S]).flatmap(
    lambda rows: st.lists(signs, min_size=rows, max_size=rows)
)


def state_of(kind="causal", window=2, prefix=2, length=3, cells=("11111",) * S):
    return {
        "kind": kind,
        "window": window,
        "prefix": prefix,
        "length": length,
        "cells": list(cells),
    }


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("painter")
    write_page(folder, MaskPainter(), MaskPainter(kind="cross", disturbed=4))
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    page = browser.new_page()
    page.goto(address)

    def call(function, *arguments):
        return page.evaluate(
            """async ([name, given]) => {
                const module = await import(
                    new URL("_static/widgets/mask_painter.js", location.href).href
                );
                return module[name](...given);
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


# ---- mathematics ----


def test_the_example_is_the_same_on_both_sides(call, browser, address):
    page = browser.new_page()
    page.goto(address)
    example = page.evaluate(
        """async () => (await import(
            new URL("_static/widgets/mask_painter.js", location.href).href
        )).EXAMPLE"""
    )
    page.close()
    assert example == dict(mask_painter._EXAMPLE)


@pytest.mark.parametrize("kind", KINDS)
@given(
    window=st.integers(1, S),
    prefix=st.integers(0, S),
    length=st.integers(0, S),
    cells=masks,
)
@settings(max_examples=12)
def test_masks_are_those_of_numpy(call, kind, window, prefix, length, cells):
    state = state_of(kind, window, prefix, length, cells)
    assert call("allowed", state) == mask_painter.allowed(**state).tolist()


@given(cells=masks, disturbed=st.none() | st.integers(0, S - 1))
@settings(max_examples=60)
def test_weights_and_outputs_are_those_of_ops(call, cells, disturbed):
    allow = np.array([[sign == "1" for sign in row] for row in cells])
    got, expected = (
        call("look", allow.tolist(), disturbed),
        mask_painter.look(allow, disturbed),
    )
    for name in ("weights", "outputs"):
        np.testing.assert_allclose(got[name], expected[name], **EXACT)
    assert (np.array(got["weights"])[~allow] == 0).all()


@given(cells=masks)
@settings(max_examples=60)
def test_influence_is_measured_and_zero_to_the_last_bit(call, cells):
    allow = np.array([[sign == "1" for sign in row] for row in cells])
    got, expected = (
        np.array(call("influence", allow.tolist())),
        (mask_painter.influence(allow)),
    )
    np.testing.assert_allclose(got, expected, **EXACT)
    for t, row in enumerate(allow):
        for s, seen in enumerate(row):
            # One's own query is disturbed, too; it needs somebody to look at.
            itself = t == s and len(allow) == S and row.sum() > 1
            if not seen and not itself:
                assert got[t, s] == 0
                assert expected[t, s] == 0


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_whoever_may_look_is_moved_visibly(kind):
    allow = mask_painter.allowed(**state_of(kind))
    moves = mask_painter.influence(allow)
    assert (moves[allow] > 0.1).all()


def test_a_row_with_nothing_allowed_three_ways(call):
    nothing = [-math.inf] * S
    assert call("softmax", nothing) == [0] * S
    assert all(map(math.isnan, call("naiveSoftmax", nothing)))
    assert call("finiteSoftmax", nothing, -1e9) == pytest.approx([0.2] * S)
    some = [0.5, -math.inf, 1.0, -math.inf, 0.0]
    for name, more in (("naiveSoftmax", []), ("finiteSoftmax", [-1e9])):
        weights = call(name, some, *more)
        np.testing.assert_allclose(weights, ops.softmax(np.array(some)), **EXACT)


@pytest.mark.parametrize("x", [0, 1e-9, 0.00499, 0.005, 0.24, 1, 2.829])
def test_numbers_are_written_alike(call, x):
    assert call("share", x) == mask_painter._share(x)


# ---- Python's side ----


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"kind": "diagonal"}, "kind is 'diagonal'; .*bidirectional, causal"),
        ({"window": 0}, "window is 0; it must be 1 to 5"),
        ({"prefix": 6}, "prefix is 6; it must be 0 to 5"),
        ({"length": -1}, "length is -1; it must be 0 to 5"),
        ({"disturbed": 5}, "disturbed is 5; it must be 0 to 4"),
        ({"cells": ["11111"] * 4}, "cells is .* five rows, or three"),
        ({"cells": ["1111"] * 5}, "cells is .* five signs"),
        ({"cells": ["1111x"] * 5}, "cells is .* 0 or 1"),
        ({"cells": [1] * 5}, "cells"),
    ],
)
def test_values_that_do_not_fit_are_refused(state, message):
    with pytest.raises(TraitError, match=message):
        MaskPainter(**state)


def picture(widget) -> str:
    encoded = re.search(r"svg\+xml;base64,([^\"]+)", widget.to_html())[1]
    return base64.b64decode(encoded).decode()


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_shows_what_ops_computes(kind):
    widget = MaskPainter(kind=kind)
    allow = widget._allow()
    numbers = re.findall(r">(<0\.01|0|\d\.\d\d)</text>", picture(widget))
    both = [mask_painter.look(allow)["weights"], mask_painter.influence(allow)]
    expected = [mask_painter._share(x) for matrix in both for x in matrix.flat]
    assert numbers == expected
    assert picture(widget).count("<path") == (~allow).sum()
    assert len(widget._alt()) > 100


def test_the_words_in_the_alternative_say_who_moves():
    assert MaskPainter()._alt().endswith("these outputs move: Ben, long, letters.")
    nobody = MaskPainter(kind="padding", length=0)._alt()
    assert nobody.endswith("When pad is disturbed, no output moves.")


# ---- in a page ----


def shown(root, cells) -> list[str]:
    return root.locator(f"tr:not([hidden]) {cells}").all_inner_texts()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_is_what_is_computed(open_page, kind):
    page = open_page()
    root = alive(page)
    root.locator(f"[value={kind}]").check(force=True)
    settle(page)
    widget = MaskPainter(**state(page))
    assert widget.kind == kind
    allow = widget._allow()
    weights = mask_painter.look(allow)["weights"]
    moves = mask_painter.influence(allow)
    assert shown(root, ".attn-looks") == [mask_painter._share(x) for x in weights.flat]
    assert shown(root, ".attn-moves") == [mask_painter._share(x) for x in moves.flat]
    pressed = root.locator("tr:not([hidden]) .attn-looks").evaluate_all(
        "cells => cells.map((c) => c.getAttribute('aria-pressed') === 'true')"
    )
    assert pressed == allow.ravel().tolist()
    sliders = root.get_by_role("slider")
    assert sliders.count() == (kind in ("window", "prefix", "padding"))


@pytest.mark.parametrize(
    ("kind", "trait"),
    [("window", "window"), ("prefix", "prefix"), ("padding", "length")],
)
def test_each_amount_has_its_slider(open_page, kind, trait):
    page = open_page()
    root = alive(page)
    root.locator(f"[value={kind}]").check(force=True)
    settle(page)
    root.get_by_role("slider").press("End")
    settle(page)
    assert state(page)[trait] == 5
    root.get_by_role("slider").press("Home")
    settle(page)
    assert state(page)[trait] == (1 if trait == "window" else 0)


def test_the_sentence_says_whom_a_disturbed_token_moves(open_page):
    page = open_page()
    root = alive(page)
    sentence = root.locator(".attn-sentence")
    assert sentence.inner_text() == (
        "Disturb “Ben”, and this moves: Ben, long and letters. "
        "Not one bit changes in: Anna and sends."
    )
    root.get_by_role("radio", name="Anna").focus()
    page.keyboard.press("Space")
    settle(page)
    assert sentence.inner_text() == "Disturb “Anna”, and every output moves."
    assert root.locator("th.attn-marked").inner_text() == "Anna"
    root.locator("[value=padding]").check(force=True)
    root.get_by_role("slider").press("Home")
    settle(page)
    assert sentence.inner_text() == (
        "Disturb “pad”, and no output changes by a single bit."
    )


def test_a_row_left_empty_shows_zeros_and_what_others_give(open_page):
    page = open_page()
    root = alive(page)
    assert root.locator(".attn-nobody table").count() == 0
    root.locator("[value=painted]").check(force=True)
    settle(page)
    rows = [
        row.locator("td").all_inner_texts()
        for row in root.locator(".attn-nobody tr").all()
    ]
    assert rows == [["0"] * S, ["NaN"] * S, ["0.20"] * S]
    assert "Ben" in root.locator(".attn-nobody p").inner_text()


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_stroke_of_the_pointer_paints(open_page):
    page = open_page()
    root = alive(page)
    cells = root.locator(".attn-looks")
    page.mouse.move(*centre(cells.nth(2)))  # Anna looks at Ben: forbidden
    page.mouse.down()
    page.mouse.move(*centre(cells.nth(4)), steps=8)
    page.mouse.up()
    page.mouse.move(*centre(cells.nth(9)), steps=4)  # after letting go: nothing
    settle(page)
    assert state(page)["kind"] == "painted"
    assert state(page)["cells"] == ["10111", "11000", "11100", "11110", "11111"]
    cells.nth(0).click()
    settle(page)
    assert state(page)["cells"][0] == "00111"
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert state(page) == MaskPainter()._state()


def test_a_finger_taps(open_page):
    page = open_page(has_touch=True)
    root = alive(page)
    root.locator(".attn-looks").nth(1).tap()
    settle(page)
    assert state(page)["cells"][0] == "11000"
    root.locator(".attn-looks").nth(1).tap()
    settle(page)
    assert state(page)["cells"][0] == "10000"


def test_the_grid_answers_the_keyboard(open_page):
    page = open_page()
    root = alive(page)
    cells = root.locator(".attn-looks")
    cells.nth(0).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    assert cells.nth(7).evaluate("c => c === document.activeElement")
    page.keyboard.press("Space")
    settle(page)
    assert state(page)["cells"][1] == "11100"
    page.keyboard.press("Enter")
    settle(page)
    assert state(page)["cells"][1] == "11000"
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)  # the border of the grid is the end
    assert cells.nth(4).evaluate("c => c === document.activeElement")
    label = cells.nth(4).get_attribute("aria-label")
    assert label == "Anna looks at letters: 0"


def test_cross_attention_has_three_rows_and_can_be_painted(open_page):
    page = open_page()
    root = alive(page, 1)
    assert len(shown(root, ".attn-looks")) == 3 * S
    root.locator(".attn-looks").nth(10).focus()
    page.keyboard.press("ArrowDown")  # no fourth row to go to
    page.keyboard.press("Space")
    settle(page)
    assert state(page, 1)["cells"] == ["11111", "11111", "01111"]
    assert len(shown(root, ".attn-moves")) == 3 * S


def test_every_control_has_a_name_and_is_reached_by_tab(open_page):
    page = open_page()
    root = alive(page)
    root.locator("[value=window]").check(force=True)
    settle(page)
    controls = root.evaluate(
        """(root) => [...root.querySelectorAll("button, input")]
            .filter((c) => !c.disabled && c.checkVisibility() && c.tabIndex >= 0)
            .filter((c) => c.type !== "radio" || c.checked)
            .map((c) => c.getAttribute("aria-label")
                || c.closest("label")?.textContent || c.textContent)"""
    )
    assert all(name.strip() for name in controls)
    root.evaluate("r => { r.tabIndex = -1; r.focus() }")
    reached = 0
    while True:
        page.keyboard.press("Tab")
        if not root.evaluate(
            "r => r !== document.activeElement && r.contains(document.activeElement)"
        ):
            break
        reached += 1
        assert root.evaluate(
            """() => [document.activeElement, document.activeElement.closest("label")]
                .some((c) => c && getComputedStyle(c).outlineStyle === "solid")"""
        )
    # Kind, slider, one stop for the grid, token, Reset, link.
    assert reached == len(controls) == 6


@pytest.mark.parametrize("width", [320, 640, 1600])
def test_nothing_overflows_at_any_width(open_page, width):
    page = open_page(viewport={"width": width, "height": 900})
    for place in (0, 1):
        root = alive(page, place)
        for kind in KINDS:
            root.locator(f"[value={kind}]").check(force=True)
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            outside = root.evaluate(
                """(root) => {
                    const box = root.getBoundingClientRect();
                    const parts = "table, td, th, p, label, button, span";
                    return [...root.querySelectorAll(parts)]
                        .filter((n) => n.checkVisibility())
                        .filter((n) => !n.closest(".attn-spoken"))
                        .filter((n) => {
                            const { left, right } = n.getBoundingClientRect();
                            return right > box.right + 0.5 || left < box.left - 0.5;
                        })
                        .concat([...root.querySelectorAll("th, td, label span")]
                            .filter((n) => n.checkVisibility())
                            .filter((n) => n.scrollWidth > n.clientWidth + 1))
                        .map((n) => n.outerHTML);
                }"""
            )
            assert outside == []


def test_a_state_comes_from_the_address(open_page):
    page = open_page(
        "#w.1.kind=%22painted%22&w.1.disturbed=4"
        "&w.1.cells=%5B%2200000%22,%2211111%22,%2210101%22%5D"
    )
    root = alive(page)
    assert state(page)["cells"] == ["00000", "11111", "10101"]
    assert len(shown(root, ".attn-looks")) == 3 * S
    assert root.locator(".attn-nobody").inner_text().startswith("Nobody to look at")


@pytest.mark.parametrize(
    "fragment",
    [
        "#w.1.kind=%22all%22&w.1.window=0&w.1.disturbed=5&w.1.length=-1",
        "#w.1.cells=%5B%221%22%5D&w.1.prefix=2.5",
        "#w.1.cells=%22111%22&w.1.kind=3",
        "#w.1.cells=%5B11111,11111,11111%5D",
    ],
)
def test_damaged_states_change_nothing(open_page, fragment):
    page = open_page(fragment)
    alive(page)
    assert state(page) == MaskPainter()._state()


def test_leaving_the_page_leaves_nothing(open_page):
    page = open_page()
    alive(page)
    left = page.locator("[data-widget]").first.evaluate(
        """async (host) => {
            const { dispose, modelOf } = await import("/_static/widgets/loader.js");
            const model = modelOf(host);
            const cell = host.querySelector(".attn-looks");
            await dispose(host);
            cell.click();
            return [model.listenerCount, model.get("kind")];
        }"""
    )
    assert left == [0, "causal"]
