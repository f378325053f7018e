"""The widgets alive in a page without a kernel, in a real browser."""

import math
import random
import re

import numpy as np
import pytest
from widget_support import alive, host, served, settle, state, write_page

from attnbook import ops
from attnbook.palette import DARK, LIGHT
from attnbook.widgets import AttentionInThreeSteps, ScalingAndSaturation
from attnbook.widgets import scaling as scaling_module
from attnbook.widgets.three_steps import _number, _vector

# In the page: the first and second are of one kind, so are the third and fourth.
THREE, TWIN, SCALING, LAST = range(4)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_page(
        folder,
        AttentionInThreeSteps(),
        AttentionInThreeSteps(context="company", step=3),
        ScalingAndSaturation(),
        ScalingAndSaturation(d=512, scaled=True),
    )
    with served(folder) as address:
        yield address


def put(page, place, **values) -> None:
    """Set traits as a kernel would, and wait until they are shown."""
    host(page, place).evaluate(
        """async (host, values) => {
            const { modelOf } = await import("/_static/widgets/loader.js");
            for (const [n, v] of Object.entries(values)) modelOf(host).set(n, v);
            await new Promise((done) => requestAnimationFrame(done));
        }""",
        values,
    )


def texts(locator) -> list[str]:
    return [re.sub(r"\s", " ", text).strip() for text in locator.all_inner_texts()]


# ---- coming to life ----


def test_every_widget_comes_alive_and_its_picture_gives_way(open_page):
    page = open_page()
    for place in (THREE, TWIN, SCALING, LAST):
        alive(page, place)
        assert host(page, place).get_attribute("data-hydrated") == "1"
        assert not host(page, place).locator("figure").first.is_visible()
    assert page.locator("[data-widget] [id]").count() == 0
    assert state(page, LAST)["d"] == 512


def test_a_widget_far_away_waits_until_it_comes_near(open_page):
    page = open_page(viewport={"width": 800, "height": 300})
    alive(page, THREE)
    assert host(page, LAST).get_attribute("data-hydrated") is None
    assert host(page, LAST).locator("img").get_attribute("alt")
    alive(page, LAST)


def test_without_javascript_the_picture_teaches(open_page):
    page = open_page(java_script_enabled=False)
    for place in (THREE, SCALING):
        image = host(page, place).locator("img")
        assert image.is_visible()
        assert image.bounding_box()["height"] > 150
        assert host(page, place).locator("figcaption").is_visible()


def test_a_widget_that_fails_stays_a_picture(browser, tmp_path):
    write_page(tmp_path, ScalingAndSaturation())
    (tmp_path / "_static" / "widgets" / "scaling.js").write_text("throw new Error()")
    with served(tmp_path) as address:
        page = browser.new_page()
        page.goto(address)
        page.locator("[data-hydrated=error]").wait_for()
        assert page.locator("figure img").is_visible()
        assert page.locator(".attn-root").count() == 0
        page.close()


def test_dispose_leaves_nothing_and_the_widget_can_be_revived(open_page):
    page = open_page()
    alive(page, THREE)
    devtools = page.context.new_cdp_session(page)

    def outside_listeners():
        counts = []
        for thing in ("window", "document", "document.body"):
            remote = devtools.send("Runtime.evaluate", {"expression": thing})["result"]
            found = devtools.send(
                "DOMDebugger.getEventListeners", {"objectId": remote["objectId"]}
            )
            counts.append(len(found["listeners"]))
        return counts

    dispose = """async (host) => {
        const { dispose, modelOf } = await import("/_static/widgets/loader.js");
        const model = modelOf(host);
        const root = host.querySelector(".attn-root");
        const before = model.listenerCount;
        await dispose(host);
        const text = root.textContent;
        for (const control of root.querySelectorAll("button, input")) control.click();
        await new Promise((done) => requestAnimationFrame(done));
        return [before > 0, model.listenerCount, root.textContent === text];
    }"""
    outside = outside_listeners()
    for place in (THREE, SCALING):
        alive(page, place)
        assert host(page, place).evaluate(dispose) == [True, 0, True]
        assert host(page, place).locator("figure img").is_visible()
        assert host(page, place).locator(".attn-root").count() == 0
        assert host(page, place).get_attribute("data-hydrated") is None
        assert outside_listeners() == outside
        host(page, place).evaluate(
            "async (h) => (await import('/_static/widgets/loader.js')).hydrate(h)"
        )
        assert host(page, place).get_attribute("data-hydrated") == "1"
    root = alive(page, SCALING)
    root.get_by_role("button", name="Set the width to 256").click()
    assert state(page, SCALING)["d"] == 256


def test_two_views_of_one_model_stay_in_step(open_page):
    page = open_page()
    for place, change in ((THREE, {"context": "company"}), (SCALING, {"d": 300})):
        alive(page, place)
        host(page, place).evaluate(
            """async (host) => {
                const { modelOf } = await import("/_static/widgets/loader.js");
                const name = host.dataset.widget;
                const module = await import(`/_static/widgets/${name}.js`);
                const el = document.createElement("div");
                el.className = "second-view";
                document.body.append(el);
                module.default.render({ model: modelOf(host), el });
            }"""
        )
        first, second = alive(page, place), page.locator(".second-view").last
        put(page, place, **change)
        assert first.locator(".attn-sentence").inner_text() == (
            second.locator(".attn-sentence").inner_text()
        )
        names = [
            {i.get_attribute("name") for i in view.locator("[type=radio]").all()}
            for view in (first, second)
        ]
        assert names[0].isdisjoint(names[1])
    second.get_by_role("slider").fill("77")
    settle(page)
    assert first.locator("output").inner_text() == "77"
    assert page.locator(".second-view").first.locator("input:checked").count() == 3


# ---- what is shown is what is computed ----


def shown_rows(root) -> list[list[str]]:
    return [
        texts(row.locator("th, td")) for row in root.locator(".attn-sheet tr").all()
    ]


@pytest.mark.parametrize("seed", range(6))
def test_three_steps_shows_the_numbers_that_ops_computes(open_page, seed):
    page = open_page()
    alive(page, THREE)
    rng = random.Random(seed)
    x = [[rng.randint(-30, 30) / 10 for _ in range(2)] for _ in range(4)]
    asker, context = rng.randrange(4), rng.choice(["fruit", "company"])
    put(page, THREE, **{context: x, "context": context, "asker": asker})
    root = alive(page, THREE)

    x = np.array(x)
    k, v = x, x @ np.array([[1.0, -1.0], [-1.0, 1.0]])
    q = 2 * x[asker : asker + 1]
    products = (q @ k.T)[0]
    scores = products / math.sqrt(2)
    weights = ops.attention_weights(q, k)[0]
    output = ops.scaled_dot_product_attention(q, k, v)[0]

    assert f"q = {_vector(q[0], 1)}" in texts(root.locator(".attn-lead"))[0]
    for i, row in enumerate(shown_rows(root)[1:]):
        terms = (f"{_number(q[0][a], 1)}·{_number(k[i][a], 1)}" for a in (0, 1))
        assert row[1:] == [
            " + ".join(terms),
            _number(products[i], 2),
            _number(scores[i], 3),
        ]
    put(page, THREE, step=2)
    rows = shown_rows(root)[1:]
    exps = np.exp(scores - scores.max())
    for i, row in enumerate(rows[:4]):
        assert row[1:] == [_number(n, 3) for n in (scores[i], exps[i], weights[i])]
    assert rows[4][2:] == [_number(exps.sum(), 3), "1.000"]
    put(page, THREE, step=3)
    rows = shown_rows(root)[1:]
    for i, row in enumerate(rows[:4]):
        assert row[1:] == [
            _number(weights[i], 3),
            _vector(v[i], 1),
            _vector(weights[i] * v[i], 2),
        ]
    assert rows[4][1] == _vector(output, 2)
    assert texts(root.locator(".attn-words small")) == [_number(w, 2) for w in weights]
    assert root.locator(".attn-here").inner_text().endswith(_number(output[0], 2))
    sentence = texts(root.locator(".attn-sentence"))[0]
    assert _number(weights.max(), 2) in sentence
    assert _vector(output, 2) in sentence


@pytest.mark.parametrize(
    ("d", "scaled", "seed"),
    [(1, False, 1), (3, True, 2), (64, False, 91), (500, True, 7), (1024, False, 5)],
)
def test_scaling_shows_the_numbers_that_ops_computes(open_page, d, scaled, seed):
    page = open_page()
    root = alive(page, SCALING)
    put(page, SCALING, d=d, scaled=scaled, seed=seed)
    measured = root.locator("[data-fact=measured]")
    while measured.inner_text() == "…":  # a far jump is drawn over several frames
        settle(page)
    scale = d**-0.5 if scaled else 1.0
    weights = ops.softmax(scaling_module.key_products(seed, d) * scale)
    variance = (scaling_module.pair_products(seed, d) * scale).var()
    facts = {name: root.locator(f"[data-fact={name}]").inner_text() for name in
             ("largest", "entropy", "measured", "theory")}  # fmt: skip
    assert facts["largest"] == f"{weights.max():.3f}"
    assert facts["entropy"].startswith(f"{ops.entropy(weights):.2f} of 4 ")
    assert float(facts["measured"]) == pytest.approx(
        variance, abs=6e-4 if variance < 10 else 0.06
    )
    assert facts["theory"].endswith("= 1" if scaled else f"= {d}")
    heights = root.locator("rect").evaluate_all(
        "r => r.map(x => x.height.baseVal.value)"
    )
    np.testing.assert_allclose(np.array(heights) / 184, weights, atol=1e-6)


def test_the_histogram_is_drawn_from_the_sample_with_the_curve_of_theory(open_page):
    page = open_page()
    root = alive(page, SCALING)
    outline = root.locator(".attn-bins").get_attribute("d")
    tops = [float(y) for y in re.findall(r"V([\d.]+)H", outline)]
    products = scaling_module.pair_products(91, 64)
    counts, _ = np.histogram(products, 64, (-32, 32))
    peak = 4096 / math.sqrt(2 * math.pi * 64)  # bins of width 1
    highest = max(1.15 * peak, 1.05 * counts.max())
    np.testing.assert_allclose(tops, 196 - counts / highest * 188, atol=0.06)
    curve = re.findall(
        r"([\d.]+) ([\d.]+)", root.locator(".attn-curve").get_attribute("d")
    )
    heights = np.array([float(y) for _, y in curve])
    xs = np.linspace(-32, 32, 121)
    expected = 196 - peak * np.exp(-(xs**2) / 128) / highest * 188
    np.testing.assert_allclose(heights, expected, atol=0.06)
    band = root.locator(".attn-band")
    ends = [float(band.get_attribute(name)) for name in ("x1", "x2")]
    reach = 2 * products.std() / 80 * 162  # ±80 is 162 pixels to either side
    np.testing.assert_allclose(ends, [170 - reach, 170 + reach], atol=0.02)


# ---- under the hand ----


def test_a_word_follows_the_pointer_and_everything_follows_the_word(open_page):
    page = open_page()
    root = alive(page, THREE)
    handle = root.get_by_role("button", name=re.compile("^pie:"))
    before = texts(root.locator(".attn-words small"))
    twin = host(page, TWIN).inner_text()
    box, plane = handle.bounding_box(), root.locator(".attn-plane").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(plane["x"] + plane["width"] / 4, plane["y"] + 30, steps=5)
    page.mouse.up()
    page.mouse.move(plane["x"] + 200, plane["y"] + 200)  # after letting go: nothing
    settle(page)
    x, y = state(page, THREE)["fruit"][2]
    assert abs(x + 1.8) <= 0.1
    assert 2.7 <= y <= 3
    assert [x, y] == [round(x, 1), round(y, 1)]
    assert handle.get_attribute("aria-label").startswith(f"pie: fruit {_number(x, 1)}")
    assert texts(root.locator(".attn-words small")) != before
    assert host(page, TWIN).inner_text() == twin
    page.mouse.move(plane["x"] + plane["width"] / 4, plane["y"] + 30)
    page.mouse.down()
    page.mouse.move(plane["x"] - 300, plane["y"] - 300)  # out of the plane
    page.mouse.up()
    assert state(page, THREE)["fruit"][2] == [-3, 3]


def test_a_word_follows_a_finger(open_page):
    page = open_page(has_touch=True)
    root = alive(page, THREE)
    handle = root.get_by_role("button", name=re.compile("^pie:"))
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    devtools = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x - 60, "y": y - 60}]),
        ("touchEnd", []),
    ):
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    settle(page)
    moved_x, moved_y = state(page, THREE)["fruit"][2]
    assert 1 < moved_x < 2
    assert 1 < moved_y < 2


def test_apple_is_pulled_by_its_context(open_page):
    page = open_page()
    root = alive(page, THREE)
    sentence = root.locator(".attn-sentence")
    assert sentence.inner_text().startswith(
        "The word “apple” looks mostly at pie: 0.67."
    )
    assert "towards fruit" in sentence.inner_text()
    root.get_by_text("buy apple shares today", exact=True).click()
    settle(page)
    assert sentence.inner_text().startswith(
        "The word “apple” looks mostly at shares: 0.67."
    )
    assert "towards company" in sentence.inner_text()
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert "towards fruit" in sentence.inner_text()


@pytest.mark.parametrize("place", [THREE, SCALING], ids=["three_steps", "scaling"])
def test_every_control_has_a_name_and_is_reached_by_tab(open_page, place):
    page = open_page()
    root = alive(page, place)
    for details in root.locator("summary").all():
        details.click()
    put(page, place, **({"step": 2} if place == THREE else {"d": 65}))
    controls = root.evaluate(
        """(root) => [...root.querySelectorAll("button, input, summary")]
            .filter((c) => !c.disabled && (c.type !== "radio" || c.checked))
            .map((c) => [c.tagName, c.getAttribute("aria-label")
                || c.closest("label")?.textContent || c.textContent])"""
    )
    assert all(name.strip() for _, name in controls)
    root.evaluate("r => { r.tabIndex = -1; r.focus() }")
    reached = 0
    while True:
        page.keyboard.press("Tab")
        inside = root.evaluate("r => r.contains(document.activeElement)")
        if not inside:
            break
        reached += 1
        # The focus can be seen: an outline on the control or on its label.
        assert root.evaluate(
            """() => [document.activeElement, document.activeElement.closest("label")]
                .some((c) => c && getComputedStyle(c).outlineStyle === "solid")"""
        )
    assert reached == len(controls)


def test_three_steps_answers_the_keyboard(open_page):
    page = open_page()
    root = alive(page, THREE)

    def press(locator, key):
        locator.focus()
        page.keyboard.press(key)
        settle(page)
        return state(page, THREE)

    assert press(root.locator("[value=fruit]"), "ArrowRight")["context"] == "company"
    assert press(root.locator("[value=company]"), "ArrowLeft")["context"] == "fruit"
    asker = root.get_by_role("radio", name="apple")
    assert press(root.locator(".attn-words input").nth(1), "ArrowRight")["asker"] == 2
    assert asker.count() >= 1
    steps = root.get_by_role("group", name="Step", exact=True).get_by_role("radio")
    assert press(steps.nth(0), "ArrowRight")["step"] == 2
    assert press(root.locator(".attn-next"), "Enter")["step"] == 3
    assert press(root.locator(".attn-next"), "Space")["step"] == 1
    handle = root.locator(".attn-handle").nth(0)
    assert press(handle, "ArrowUp")["fruit"][0] == [2, 0.1]
    assert press(handle, "ArrowLeft")["fruit"][0] == [1.9, 0.1]
    assert press(handle, "Shift+ArrowDown")["fruit"][0] == [1.9, -0.9]
    assert press(handle, "Shift+ArrowRight")["fruit"][0] == [2.9, -0.9]
    assert press(handle, "Shift+ArrowRight")["fruit"][0] == [3, -0.9]
    press(root.locator("summary"), "Enter")
    number = root.get_by_role("spinbutton", name="pie, company")
    assert press(number, "ArrowUp")["fruit"][2] == [3, 0.1]
    number.fill("-1.5")
    settle(page)
    assert state(page, THREE)["fruit"][2] == [3, -1.5]
    number.fill("")
    number.press("Tab")
    assert number.input_value() == "-1.5"
    number.fill("7")
    settle(page)
    assert number.input_value() == "3.0"
    assert press(root.get_by_role("button", name="Reset"), "Enter") == (
        AttentionInThreeSteps()._state()
    )


def test_scaling_answers_the_keyboard(open_page):
    page = open_page()
    root = alive(page, SCALING)

    def press(locator, key):
        locator.focus()
        page.keyboard.press(key)
        settle(page)
        return state(page, SCALING)

    slider = root.get_by_role("slider")
    assert press(slider, "ArrowRight")["d"] == 65
    assert press(slider, "End")["d"] == 1024
    assert press(slider, "Home")["d"] == 1
    for power in range(11):
        button = root.locator(f"[aria-label='Set the width to {2**power}']")
        assert press(button, "Enter")["d"] == 2**power
        assert button.get_attribute("aria-pressed") == "true"
    assert press(root.get_by_role("switch"), "Space")["scaled"] is True
    assert root.locator("[data-fact=theory]").inner_text().endswith("= 1")
    before = root.locator("[data-fact=largest]").inner_text()
    assert press(root.get_by_role("button", name="New sample"), "Enter")["seed"] == 92
    assert root.locator("[data-fact=largest]").inner_text() != before
    assert press(root.get_by_role("button", name="Reset"), "Space") == (
        ScalingAndSaturation()._state()
    )


def test_keys_and_presses_stay_inside_but_shortcuts_of_the_page_pass(open_page):
    page = open_page()
    root = alive(page, SCALING)
    assert root.get_attribute("data-lm-suppress-shortcuts") == "true"
    page.evaluate(
        """() => {
            globalThis.heard = [];
            for (const type of ["keydown", "pointerdown", "mousedown"])
                document.addEventListener(type, (e) => heard.push(e.key ?? type));
        }"""
    )
    root.get_by_role("slider").press("ArrowRight")
    root.get_by_role("slider").click()
    root.get_by_role("slider").press("Control+k")
    assert [k for k in page.evaluate("heard") if k != "Control"] == ["k"]


def test_what_happened_is_said_once_the_reader_pauses(open_page):
    page = open_page()
    root = alive(page, SCALING)
    spoken = root.locator("[aria-live=polite]")
    assert spoken.inner_text() == ""
    root.get_by_role("slider").press("End")
    sentence = root.locator(".attn-sentence")
    spoken.filter(has_text=re.compile(r"\w")).wait_for(state="attached")
    assert spoken.inner_text() == sentence.inner_text()


def test_a_step_of_the_slider_is_painted_in_the_same_frame_and_drawn_once(open_page):
    page = open_page()
    root = alive(page, SCALING)
    frames = root.evaluate(
        """async (root) => {
            const slider = root.querySelector("[type=range]");
            const fact = root.querySelector("[data-fact=theory]");
            const bins = root.querySelector(".attn-bins");
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            // The samples are drawn in advance; here all at once, by going to the end.
            const { modelOf } = await import("/_static/widgets/loader.js");
            modelOf(root.closest("[data-widget]")).set("d", 1024);
            const measured = root.querySelector("[data-fact=measured]");
            do await frame(); while (measured.textContent === "…");
            const seen = [];
            for (const d of [65, 200, 700, 701, 702, 1024, 3]) {
                let draws = 0;
                const watch = new MutationObserver((changes) => {
                    draws += changes.length;
                });
                watch.observe(bins, { attributes: true, attributeFilter: ["d"] });
                for (const value of [d === 1024 ? 5 : d + 1, d]) {
                    slider.value = value;
                    slider.dispatchEvent(new Event("input", { bubbles: true }));
                }
                // One frame on: this callback runs before that frame is painted.
                const shown = await new Promise((done) => requestAnimationFrame(
                    () => done(fact.textContent.endsWith(`= ${d}`))
                ));
                seen.push([shown, draws]);
                watch.disconnect();
            }
            return seen;
        }"""
    )
    assert frames == [[True, 1]] * 7


# ---- addresses ----


def test_a_state_goes_into_an_address_and_back(open_page, address):
    page = open_page()
    root = alive(page, THREE)
    link = root.get_by_role("button", name="Copy link to this state")
    assert link.is_disabled()
    root.locator(".attn-handle").nth(3).press("Shift+ArrowUp")
    root.get_by_text("3 Weighted sum").click()
    settle(page)
    assert page.url == address  # nothing is put there unasked
    link.click()
    page.get_by_text(re.compile("Link copied|holds the link")).first.wait_for()
    assert page.url.startswith(address + "#w.1.")
    assert "w.2" not in page.url
    wanted = state(page, THREE)
    assert wanted["fruit"][3] == [0, 1]

    other = open_page(page.url.removeprefix(address))
    alive(other, THREE)
    alive(other, TWIN)
    assert state(other, THREE) == wanted
    assert state(other, TWIN)["step"] == 3
    assert state(other, TWIN)["fruit"][3] == [0, 0]
    alive(other, THREE).get_by_role("button", name="Reset").click()
    assert state(other, THREE) == AttentionInThreeSteps()._state()


def test_an_address_is_followed_to_its_widget_and_when_it_changes(open_page):
    page = open_page("#w.3.d=300&w.3.scaled=true")
    host(page, SCALING).locator(".attn-root").wait_for()
    assert state(page, SCALING) == {"d": 300, "scaled": True, "seed": 91}
    assert page.evaluate("scrollY") > 300
    page.evaluate("location.hash = '#w.3.d=9'")
    root = alive(page, SCALING)
    root.get_by_text("= 9", exact=False).first.wait_for()
    assert state(page, SCALING)["d"] == 9


@pytest.mark.parametrize(
    "fragment",
    [
        "#end",
        "#w.3.d=99999&w.3.scaled=%22yes%22&w.3.seed=0.5",
        "#w.3.d=%7Bbroken&w.3&w.3.=1&w..d=4&w.3.d.e=4",
        "#w.3._start=%7B%7D&w.3.__proto__=1&w.3.constructor=1",
        "#w.1.fruit=%5B%5B1%5D%5D&w.1.fruit.x=2&w.1.context=%22car%22&w.1.asker=9",
        "#w.1.fruit=%5B%5B0.55,9%5D,%5B0,0%5D,%5B0,0%5D,%5B0,0%5D%5D&w.9.d=3",
    ],
)
def test_other_anchors_and_damaged_states_change_nothing(open_page, address, fragment):
    page = open_page(fragment)
    alive(page, THREE)
    alive(page, SCALING)
    assert state(page, THREE) == AttentionInThreeSteps()._state()
    assert state(page, SCALING) == ScalingAndSaturation()._state()
    assert page.url == address + fragment


# ---- every screen ----


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_follow_the_theme_and_paper_is_light(open_page, theme):
    page = open_page()
    root = alive(page, THREE)
    page.evaluate("t => { document.documentElement.dataset.theme = t }", theme)

    def colours():
        return root.evaluate(
            """(r) => ["page", "ink", "query"].map((name) =>
                getComputedStyle(r).getPropertyValue(`--attn-${name}`).trim())"""
        )

    names = ("page", "ink", "query")
    palette = DARK if theme == "dark" else LIGHT
    assert colours() == [palette[name] for name in names]
    red, green, blue = (int(palette["page"][i : i + 2], 16) for i in (1, 3, 5))
    assert root.evaluate("r => getComputedStyle(r).backgroundColor") == (
        f"rgb({red}, {green}, {blue})"
    )
    page.emulate_media(media="print")
    assert colours() == [LIGHT[name] for name in names]
    assert root.locator(".attn-sheet").is_visible()
    assert not root.get_by_role("button", name="Reset").is_visible()


def test_a_page_that_styles_lists_and_captions_leaves_the_widgets_theirs(open_page):
    page = open_page()
    root = alive(page, SCALING)
    page.evaluate(
        """() => { // As the book's theme does, before the widgets' own sheet.
            const sheet = document.styleSheets[0];
            for (const rule of [
                "dl[class]:not(.option-list, .simple) { margin-bottom: 3rem }",
                "dl[class]:not(.option-list, .simple) dd { margin-left: 2rem }",
                "figure figcaption { font-family: serif; text-align: center }",
            ]) sheet.insertRule(rule, sheet.cssRules.length);
        }"""
    )
    lefts = root.locator(".attn-facts div").first.evaluate(
        "d => [...d.children].map((part) => part.getBoundingClientRect().left)"
    )
    assert lefts[0] == lefts[1]
    styles = root.evaluate(
        """(root) => {
            const style = (name) => getComputedStyle(root.querySelector(name));
            const caption = style(".attn-panel figcaption");
            return [style(".attn-facts").marginBottom, caption.textAlign,
                caption.fontFamily === getComputedStyle(root).fontFamily];
        }"""
    )
    assert styles == ["0px", "left", True]


@pytest.mark.parametrize("width", [320, 360, 640, 1600])
def test_nothing_overflows_at_any_width(open_page, width):
    # Still, so that marks are measured where they come to rest.
    viewport = {"width": width, "height": 900}
    page = open_page(viewport=viewport, reduced_motion="reduce")
    for place in (THREE, TWIN, SCALING, LAST):
        root = alive(page, place)
        for summary in root.locator("summary").all():
            summary.click()
        steps = (1, 2, 3) if place in (THREE, TWIN) else (1, 100, 1024)
        for step in steps:
            if place in (THREE, TWIN):
                put(
                    page, place, step=step, fruit=[[-3, -3], [-3, 3], [3, -2.9], [3, 3]]
                )
            else:
                put(page, place, d=step)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            outside = root.evaluate(
                """(root) => {
                    const box = root.getBoundingClientRect();
                    const parts = "table, td, th, p, label, button, dd, span";
                    return [...root.querySelectorAll(parts)]
                        .filter((n) => !n.closest(".attn-plane, .attn-spoken"))
                        .filter((n) => {
                            const { left, right } = n.getBoundingClientRect();
                            return right > box.right + 0.5 || left < box.left - 0.5;
                        })
                        .map((n) => n.outerHTML);
                }"""
            )
            assert outside == []


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_numbers_move_between_steps_unless_the_reader_wants_stillness(
    open_page, motion
):
    page = open_page(reduced_motion=motion)
    root = alive(page, THREE)
    moving = """async (root) => {
        root.querySelector(".attn-next").click();
        await new Promise((done) => requestAnimationFrame(done));
        return [...root.querySelectorAll("[data-flow]")]
            .filter((n) => n.getAnimations().length).map((n) => n.dataset.flow);
    }"""
    expected = [[f"score{i}" for i in range(4)], [f"weight{i}" for i in range(4)]]
    for flows in expected:
        assert root.evaluate(moving) == (flows if motion == "no-preference" else [])
    if motion == "reduce":
        assert root.evaluate("r => r.getAnimations({ subtree: true }).length") == 0
