"""The attention explorer shows what was recorded, and goes to what was found."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import served, state, write_page

from attnbook.widgets import AttentionExplorer, attention_explorer, static_files

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import real_models

DATA = AttentionExplorer.data
PRESETS = DATA["presets"]
KEYS = [(n, text) for n, texts in DATA["order"].items() for text in texts]
recorded = attention_explorer.recorded_attention


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorer")
    write_page(folder, AttentionExplorer(), AttentionExplorer(**PRESETS["induction"]))
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def call(browser, address):
    page = browser.new_page()
    page.goto(address)

    def call(code, *given):
        """Call a function of the module, on what the file of a sentence holds."""
        return page.evaluate(
            """async ([code, given]) => {
                const folder = new URL("_static/widgets/", location.href);
                const from = (name) =>
                    import(new URL(`attention_explorer${name}.js`, folder).href);
                const m = await from("");
                const open = async (network, text) => {
                    const file = await from(`.${network}.${text}`);
                    const { tokens, weights } = file.default;
                    return { bytes: await m.inflate(weights), T: tokens.length };
                };
                const codes = {
                    steps: async (network, text, shape, layer, head) => {
                        const { bytes, T } = await open(network, text);
                        return m.stepsOf(bytes, { ...shape, T }, layer, head);
                    },
                    weights: async (steps) => m.weightsOf(steps),
                    every: async (network, text, shape, token, target) => {
                        const { bytes, T } = await open(network, text);
                        return m.everyHead(bytes, { ...shape, T }, token, target);
                    },
                    within: async (state, tokens) => m.within(state, tokens),
                };
                return codes[code](...given);
            }""",
            [code, list(given)],
        )

    yield call
    page.close()


# ---- mathematics ----


@pytest.mark.parametrize(("network", "text"), KEYS)
def test_weights_in_the_browser_are_those_in_numpy(call, network, text):
    weights = recorded(network, text)
    shape = DATA["networks"][network]
    layers, heads, T, _ = weights.shape
    assert (layers, heads) == (shape["layers"], shape["heads"])
    for layer, head in ((0, 0), (layers // 2, heads - 1), (layers - 1, heads // 2)):
        steps = call("steps", network, text, shape, layer, head)
        got = np.array(call("weights", steps))
        np.testing.assert_allclose(got, weights[layer, head], atol=1e-15)
        np.testing.assert_allclose(got.sum(axis=-1), 1, atol=1e-12)
    for token, target in ((T - 1, 0), (T // 2, T // 2), (2, T - 1)):
        every = call("every", network, text, shape, token, target)
        np.testing.assert_allclose(every, weights[:, :, token, target], atol=1e-15)


@pytest.mark.parametrize(
    ("network", "text"), [("minilm", "queen_she"), ("smollm2", "planet")]
)
def test_steps_are_within_half_of_one_of_the_real_attention(call, network, text):
    (real,) = real_models.Reader(network).attention([DATA["sentences"][text]])
    shape = DATA["networks"][network]
    for layer in (0, shape["layers"] // 2, shape["layers"] - 1):
        for head in range(shape["heads"]):
            steps = np.array(call("steps", network, text, shape, layer, head))
            # Another machine may round a weight between two steps the other way.
            assert np.abs(steps / 255 - real[layer, head]).max() <= 0.5 / 255 + 1e-5


@pytest.mark.parametrize(("network", "text"), KEYS)
def test_rows_sum_to_one_and_the_future_is_unseen(network, text):
    weights = recorded(network, text)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    after = np.triu(np.ones(weights.shape[-2:], bool), k=1)
    assert (weights[:, :, after].max() == 0) == DATA["networks"][network]["causal"]


@given(
    network=st.sampled_from(list(DATA["networks"])),
    text=st.sampled_from(list(DATA["sentences"])),
    places=st.tuples(*[st.integers(0, 40)] * 4),
    tokens=st.integers(1, 20),
)
@settings(max_examples=40)
def test_a_state_is_brought_to_what_exists(call, network, text, places, tokens):
    names = ("layer", "head", "token", "target")
    state = {"network": network, "text": text, **dict(zip(names, places, strict=True))}
    got = call("within", state, tokens)
    shape = DATA["networks"][network]
    most = (shape["layers"], shape["heads"], tokens, tokens)
    order = DATA["order"][network]
    assert got == {
        "network": network,
        "text": text if text in order else order[0],
        **{
            name: min(place, count - 1)
            for name, place, count in zip(names, places, most, strict=True)
        },
    }


# ---- what was found ----


def weight_at(name):
    preset = PRESETS[name]
    weights = recorded(preset["network"], preset["text"])
    return weights[preset["layer"], preset["head"]]


@pytest.mark.parametrize("network", ["minilm", "smollm2"])
def test_the_gender_head_turns_with_the_pronoun(network):
    preset = PRESETS[f"gender_{network}"]
    found = DATA["found"][f"gender_{network}"]
    assert found["pairs"] == found["of"] == 24
    assert found["p"] < 0.001
    on = {}
    for pronoun in ("she", "he"):
        text = f"ball_{pronoun}"
        tokens = attention_explorer._SENTENCES[network, text]["tokens"]
        weights = recorded(network, text)[preset["layer"], preset["head"]]
        row = weights[tokens.index(pronoun)]
        on[pronoun] = row[tokens.index("girl")] - row[tokens.index("boy")]
    assert on["she"] > 0.15
    assert on["he"] < -0.15


def test_names_lead_to_what_they_say():
    induction = weight_at("induction")
    half = len(induction) // 2
    again = np.arange(half, 2 * half - 1)
    mean = induction[again, again - half + 1].mean()
    assert mean == pytest.approx(DATA["found"]["induction"]["mean"], abs=0.01)
    assert np.diagonal(weight_at("previous"), -1).mean() > 0.6
    assert weight_at("sink")[1:, 0].mean() > 0.95
    apple = PRESETS["apple"]
    every = recorded("minilm", apple["text"])[:, :, apple["token"], apple["target"]]
    assert every.max() == every[apple["layer"], apple["head"]]
    for name in ("reason_minilm", "reason_smollm2"):
        assert DATA["found"][name]["p"] > 0.05


# ---- Python's side ----


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"network": "gpt"}, "network is 'gpt'; .*minilm, smollm2"),
        ({"text": "car"}, "text is 'car'; .*ball_she"),
        ({"layer": 30}, "layer is 30; it must be 0 to 29"),
        ({"head": 12}, "head is 12; it must be 0 to 11"),
        ({"token": -1}, "token is -1; it must be 0 to 15"),
        ({"target": 16}, "target is 16; it must be 0 to 15"),
    ],
)
def test_values_that_do_not_fit_are_refused(state, message):
    with pytest.raises(TraitError, match=message):
        AttentionExplorer(**state)


def test_a_live_notebook_is_handed_the_chosen_sentence_only():
    widget = AttentionExplorer()
    assert widget._recorded["key"] == "minilm.ball_she"
    widget.text = "planet"  # not recorded with this network
    assert widget._recorded["key"] == "minilm.ball_she"
    widget.network = "smollm2"
    sent = widget._recorded
    assert sent["key"] == "smollm2.planet"
    file = static_files("en")["attention_explorer.smollm2.planet.js"]
    held = json.loads(file.removeprefix("export default ").removesuffix(";\n"))
    assert held == {name: sent[name] for name in ("tokens", "weights")}
    assert sent["weights"] not in widget.to_html()
    assert sent["weights"] not in widget._esm


def test_files_are_small():
    files = {k: v for k, v in static_files("en").items() if k.startswith("attention_")}
    assert len(files) == 1 + len(KEYS)
    assert len(DATA["sentences"]) == 12
    assert sum(map(len, files.values())) < 300_000
    assert max(len(v) for k, v in files.items() if k.count(".") > 1) < 40_000
    assert len(AttentionExplorer().to_html()) < 12_000


def test_the_picture_and_its_alternative_say_the_weights():
    widget = AttentionExplorer(**PRESETS["gender_smollm2"])
    row = weight_at("gender_smollm2")[widget.token]
    encoded = re.search(r"svg\+xml;base64,([^\"]+)", widget.to_html())[1]
    picture = base64.b64decode(encoded).decode()
    for weight in row:
        said = "&lt;0.01" if weight < 0.005 else f"{weight:.2f}"
        assert f">{said}<" in picture
    drawn = picture.count('fill="none" stroke="#') - 1  # the frame of the row
    assert drawn == ((row >= 0.005) & (np.arange(len(row)) != widget.token)).sum()
    assert f"“she” looks at girl {row.max():.2f}" in widget._alt()
    assert "layer 9, head 4, counted from 0" in widget._alt()


# ---- in a page ----


@pytest.fixture
def open_page(browser, address):
    contexts, reports = [], []

    def open_page(fragment="", **settings):
        settings = {"viewport": {"width": 800, "height": 1100}, **settings}
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: reports.append(message.text))
        page.on("pageerror", lambda error: reports.append(str(error)))
        page.goto(address + fragment)
        return page

    open_page.reports = reports
    yield open_page
    for context in contexts:
        context.close()
    assert reports == []


def alive(page, place=0):
    host = page.locator("[data-widget]").nth(place)
    host.scroll_into_view_if_needed()
    host.locator(".attn-lane label").first.wait_for()
    page.mouse.move(0, 0)
    return host.locator(".attn-root")


def settle(page) -> None:
    page.evaluate("new Promise((d) => requestAnimationFrame(() => setTimeout(d, 60)))")


def until_tokens(page, count) -> None:
    """Wait until the first widget shows a sentence of so many tokens."""
    page.wait_for_function(
        """(n) => document.querySelector("[data-widget]")
            .querySelectorAll(".attn-amount").length === n""",
        arg=count,
    )
    settle(page)


def shown(root) -> list[str]:
    return root.locator(".attn-amount").all_inner_texts()


def expected(state) -> list[str]:
    weights = recorded(state["network"], state["text"])
    row = weights[state["layer"], state["head"], state["token"]]
    causal = DATA["networks"][state["network"]]["causal"]
    return [
        "×" if causal and s > state["token"] else attention_explorer._share(w)
        for s, w in enumerate(row)
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_each_name_leads_to_its_head(open_page, name):
    page = open_page()
    root = alive(page)
    root.locator(".attn-row button").nth(DATA["goes_to"].index(name)).click()
    until_tokens(
        page, len(recorded(PRESETS[name]["network"], PRESETS[name]["text"])[0, 0])
    )
    assert state(page) == PRESETS[name]
    assert shown(root) == expected(PRESETS[name])
    pressed = root.locator(".attn-row button[aria-pressed=true]")
    assert pressed.count() == 1
    note = root.locator(".attn-about").inner_text()
    found = DATA["found"][name]
    assert str(found.get("pairs", found.get("mean"))) in note
    assert "{" not in note
    T = len(shown(root))
    causal = DATA["networks"][PRESETS[name]["network"]]["causal"]
    matrix, heads = root.locator(".attn-cells").all()
    assert matrix.locator("rect").count() == (T * (T + 1) // 2 if causal else T * T)
    shape = DATA["networks"][PRESETS[name]["network"]]
    assert heads.locator("rect").count() == shape["layers"] * shape["heads"]
    assert heads.locator(".attn-here").count() == 1


def test_everything_can_be_chosen_with_the_keyboard(open_page):
    page = open_page()
    root = alive(page)
    sliders = root.get_by_role("slider")
    sliders.nth(0).focus()
    page.keyboard.press("ArrowRight")
    sliders.nth(1).focus()
    page.keyboard.press("End")
    root.locator(".attn-lane").nth(0).locator("input").nth(10).focus()
    page.keyboard.press("ArrowUp")
    root.locator(".attn-lane").nth(1).locator("input").nth(8).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    settle(page)
    now = state(page)
    assert now == {
        **PRESETS["gender_minilm"],
        "layer": 2,
        "head": 11,
        "token": 9,
        "target": 10,
    }
    assert shown(root) == expected(now)
    root.locator("select").focus()
    page.keyboard.press("ArrowDown")
    settle(page)
    root.locator(".attn-lanes").wait_for()
    settle(page)
    assert state(page)["text"] == "ball_he"
    assert shown(root) == expected(state(page))


def test_cells_of_both_pictures_can_be_pressed(open_page):
    page = open_page()
    root = alive(page)
    matrix, heads = root.locator(".attn-cells").all()
    matrix.locator("[data-a='5'][data-b='2']").click()
    heads.locator("[data-a='4'][data-b='7']").click()
    settle(page)
    now = state(page)
    assert [now[n] for n in ("token", "target", "layer", "head")] == [5, 2, 4, 7]
    row = recorded("minilm", "ball_she")[4, 7, 5]
    said = root.locator(".attn-sentence").inner_text()
    assert said.startswith("MiniLM (encoder), layer 4, head 7: “ball” looks most at")
    assert attention_explorer._share(row.max()) in said
    here = heads.locator(".attn-here")
    assert float(here.get_attribute("fill-opacity")) == pytest.approx(row[2], abs=1e-3)


def test_another_model_keeps_what_it_can(open_page):
    page = open_page()
    root = alive(page)
    root.locator("select").select_option("trophy_big")
    root.locator("[value=smollm2]").check(force=True)
    until_tokens(page, 13)
    assert root.locator("select").input_value() == "ball_she"
    options = root.locator("option").all_inner_texts()
    assert options == [DATA["sentences"][t] for t in DATA["order"]["smollm2"]]
    assert root.get_by_role("slider").nth(0).get_attribute("max") == "29"
    assert root.get_by_role("slider").nth(1).get_attribute("max") == "8"
    effective = {**state(page), "text": "ball_she"}
    assert shown(root) == expected(effective)


def test_a_page_loads_only_what_is_shown(open_page, address):
    page = open_page()
    alive(page)  # else its own requests may still come after the reload
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.reload()
    root = alive(page)
    settle(page)
    first = [name for name in asked if name.startswith("attention_explorer.m")]
    assert first == ["attention_explorer.minilm.ball_she.js"]
    root.locator("select").select_option("apple_food")
    until_tokens(page, 9)
    more = [name for name in asked if name.startswith("attention_explorer.m")]
    assert more == [*first, "attention_explorer.minilm.apple_food.js"]


def test_a_sentence_that_cannot_be_loaded_is_said_to_be_missing(open_page):
    page = open_page()
    root = alive(page)
    page.route("**/*queen_he*", lambda route: route.abort())
    root.locator("select").select_option("queen_he")
    root.get_by_text("could not be loaded").first.wait_for()
    assert not root.locator(".attn-lanes").is_visible()
    root.locator("select").select_option("queen_she")
    root.locator(".attn-lanes").wait_for()
    settle(page)
    assert any("queen_he.js is missing" in report for report in open_page.reports)
    open_page.reports.clear()


def test_with_a_kernel_weights_come_as_a_trait(open_page):
    page = open_page()
    alive(page)
    page.on("request", lambda request: pytest.fail(f"asked for {request.url}"))
    widget = AttentionExplorer(**PRESETS["sink"])
    sent = widget._recorded
    texts = page.evaluate(
        """async ([state, sent]) => {
            const { default: widget } = await import(
                new URL("_static/widgets/attention_explorer.js", location.href).href
            );
            const held = { ...state, _start: state, _recorded: {} };
            const listeners = new Map();
            const model = {
                send() {},
                save_changes() {},
                get: (name) => held[name],
                set: (name, value) => (held[name] = value),
                on: (name, f) => listeners.set(name, f),
                off: (name) => listeners.delete(name),
            };
            const el = document.createElement("div");
            document.body.append(el);
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            const end = widget.render({ model, el });
            const said = () => el.querySelector(".attn-sentence")?.textContent;
            while (!said()) await frame();
            const before = said();
            held._recorded = sent;
            listeners.get("change:_recorded")();
            while (said() === before) await frame();
            const after = said();
            end();
            return [before, after, String(listeners.size), el.innerHTML];
        }""",
        [widget._state(), sent],
    )
    assert texts[0] == "The weights of this sentence are on their way."
    assert texts[1].startswith("SmolLM2 (decoder), layer 18, head 8: “is” looks most")
    assert texts[2:] == ["0", ""]


def test_an_address_holds_a_state(open_page):
    page = open_page("#w.1.head=5&w.1.layer=99&w.1.text=%22queen_he%22")
    root = alive(page)
    settle(page)
    now = state(page)
    assert (now["head"], now["layer"], now["text"]) == (5, 1, "queen_he")
    assert shown(root) == expected(now)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_narrow_page(open_page, theme):
    page = open_page(viewport={"width": 320, "height": 900}, color_scheme=theme)
    page.evaluate("(t) => (document.documentElement.dataset.theme = t)", theme)
    root = alive(page, 1)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    heights = root.locator(".attn-lane label").evaluate_all(
        "(all) => [...new Set(all.map((l) => l.getBoundingClientRect().height))]"
    )
    assert heights == [28]  # as the arcs beside them are drawn
    arcs = root.locator(".attn-arcs").bounding_box()
    assert arcs["height"] == pytest.approx(28 * 16, abs=0.5)


def test_nothing_is_left_behind(open_page):
    page = open_page()
    alive(page)
    left = page.evaluate(
        """async () => {
            const { dispose, modelOf } = await import("/_static/widgets/loader.js");
            const host = document.querySelector("[data-widget]");
            const model = modelOf(host);
            await dispose(host);
            return [model.listenerCount, host.querySelectorAll(".attn-root").length];
        }"""
    )
    assert left == [0, 0]
