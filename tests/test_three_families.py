"""The three families' widget: its counts are those of the trainings and of ops."""

import base64
import re

import numpy as np
import pytest
import widget_support
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import served, settle, write_page

from attnbook import model, ops, train
from attnbook.widgets import ThreeFamilies, three_families

FAMILIES = three_families.FAMILIES
TEXTS = {"letters": 9, "key": 8, "rain": 6}
families = st.sampled_from(FAMILIES)
lengths = st.integers(3, 20)
places = st.lists(st.integers(0, 11), unique=True)
PLACES = {family: i for i, family in enumerate(FAMILIES)}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    write_page(folder, *(ThreeFamilies(family=family) for family in FAMILIES))
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
                    new URL("_static/widgets/three_families.js", location.href).href
                );
                return module[name](...given);
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


# ---- mathematics ----


@given(family=families, n=lengths)
@settings(max_examples=40)
def test_masks_are_those_of_ops(call, family, n):
    got = {name: np.array(rows) for name, rows in call("masks", family, n).items()}
    in_python = three_families.masks(family, n)
    assert got.keys() == in_python.keys()
    for name, allow in got.items():
        assert np.array_equal(allow, in_python[name])
    S = n // 2
    T = {"encoder": n, "decoder": n - 1, "pair": n - S}[family]
    if family == "encoder":
        assert got["own"].shape == (n, n)
        assert got["own"].all()
    else:
        assert np.array_equal(got["own"], ops.causal_mask(T))
    if family == "pair":
        assert got["read"].shape == (S, S)
        assert got["cross"].shape == (T, S)
        assert got["read"].all()
        assert got["cross"].all()


def moved(logits, ids):
    """Disturb each token; return which outputs move, (T, S)."""
    before = logits(ids)
    columns = []
    for s in range(len(ids)):
        disturbed = ids.copy()
        disturbed[s] = (ids[s] + 1) % 12
        columns.append((logits(disturbed) != before).any(axis=-1))
    return np.transpose(columns)


@pytest.mark.parametrize("n", [6, 9])
def test_masks_are_what_the_models_do(n):
    rng = np.random.default_rng(0)
    sizes = {"vocabulary": 12, "length": 12, "width": 16}
    ids = rng.integers(0, 12, n)
    masks = three_families.masks
    reader = model.EncoderOnly.random(rng, **sizes)
    assert np.array_equal(moved(reader.logits, ids), masks("encoder", n)["own"])
    writer = model.DecoderOnly.random(rng, **sizes)
    assert np.array_equal(moved(writer.logits, ids[:-1]), masks("decoder", n)["own"])
    pair, allow = model.EncoderDecoder.random(rng, **sizes), masks("pair", n)
    source, target = ids[: n // 2], ids[n // 2 :]
    own = moved(lambda ids: pair.logits(source, ids), target)
    cross = moved(lambda ids: pair.logits(ids, target), source)
    read = moved(pair.encode, source)
    assert np.array_equal(own, allow["own"])
    assert np.array_equal(cross, allow["cross"])
    assert np.array_equal(read, allow["read"])


@given(family=families, n=lengths, holes=places)
@settings(max_examples=60)
def test_lessons_are_the_same_on_both_sides(call, family, n, holes):
    assert call("lesson", family, n, holes) == three_families.lesson(family, n, holes)
    count = three_families.losses(family, n, holes)
    assert call("losses", family, n, holes) == count
    for rate in (5, 15, 40):
        mean = three_families.expected(family, n, rate)
        assert call("expected", family, n, rate) == pytest.approx(mean)


OBJECTIVES = {"encoder": "masked_15", "decoder": "decoder", "pair": "encoder_decoder"}


@pytest.mark.parametrize("family", FAMILIES)
def test_lessons_are_those_of_the_trainings(call, family):
    n = train.MarkovChain.LENGTH
    text = np.arange(n)[None]
    objective = train.OBJECTIVES[OBJECTIVES[family]]
    asked = train.question(objective, text, np.random.default_rng(0))
    holes = np.flatnonzero(asked["asked"][0]).tolist() if family == "encoder" else []
    got = call("lesson", family, n, holes)
    signs = {
        three_families.MASK: train.MarkovChain.MASK,
        three_families.START: train.MarkovChain.START,
    }
    assert [signs.get(g, g) for g in got["given"]] == asked["inputs"][0].tolist()
    assert got["source"] == asked.get("source", np.empty((1, 0), int))[0].tolist()
    answers = np.where(asked["asked"], asked["targets"], -9)[0].tolist()
    assert [-9 if a is None else a for a in got["answers"]] == answers
    assert call("losses", family, n, holes) == asked["asked"].sum()


@pytest.mark.parametrize("rate", [15, 40])
def test_the_mean_is_that_of_the_chapter(call, rate):
    n = train.MarkovChain.LENGTH
    texts = train.MarkovChain(np.random.default_rng(1)).draw(
        np.random.default_rng(0), 1000
    )
    asked = train.question(
        train.OBJECTIVES[f"masked_{rate}"], texts, np.random.default_rng(2)
    )
    mean = asked["asked"].sum() / len(texts)
    assert call("expected", "encoder", n, rate) == pytest.approx(mean, rel=0.05)
    drawn = [len(call("covered", seed, rate, [], n)) for seed in range(200)]
    assert np.mean(drawn) == pytest.approx(mean, rel=0.15)


@given(
    seed=st.integers(0, 9999),
    rate=st.sampled_from(range(5, 55, 5)),
    flipped=places,
    n=lengths,
)
@settings(max_examples=60)
def test_holes_are_drawn_alike_and_turned_over(call, seed, rate, flipped, n):
    holes = call("covered", seed, rate, flipped, n)
    assert holes == three_families.covered(seed, rate, flipped, n)
    drawn = call("covered", seed, rate, [], n)
    assert set(holes) == set(drawn) ^ {p for p in flipped if p < n}
    more = call("covered", seed, min(rate + 5, 50), [], n)
    assert set(drawn) <= set(more)  # a higher share only adds


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [3, 8, 9])
def test_what_a_place_sees_is_its_row(call, family, n):
    count = n - 1 if family == "decoder" else n
    for place in range(count):
        seen = call("sees", family, n, place)
        assert seen == three_families.sees(family, n, place)
        reads = family == "pair" and place < n // 2
        if family == "encoder":
            expected = range(n)
        elif family == "decoder":
            expected = range(place + 1)
        else:
            expected = range(n // 2) if reads else range(n // 2, place + 1)
        assert seen["own"] == list(expected)
        across = range(n // 2) if family == "pair" and not reads else []
        assert seen["across"] == list(across)


@pytest.mark.parametrize("whole", [6, 8, 9])
def test_shares_are_written_alike_and_halves_go_up(call, whole):
    for part in range(whole + 1):
        assert call("percent", part, whole) == three_families._percent(part, whole)
    assert three_families._percent(1, 8) == "13 %"


# ---- Python's side ----


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"family": "rnn"}, "family is 'rnn'; .*encoder, decoder, pair"),
        ({"text": "long"}, "text is 'long'; .*letters, key, rain"),
        ({"rate": 12}, "rate is 12; it must be a multiple of 5 from 5 to 50"),
        ({"rate": 0}, "rate is 0; .* 5 to 50"),
        ({"seed": -1}, "seed is -1; it must be 0 to 9999"),
        ({"place": 12}, "place is 12; it must be 0 to 11"),
        ({"flipped": [1, 1]}, r"flipped is \[1, 1\]; .* different places"),
        ({"flipped": [12]}, "flipped is .* 0 to 11"),
    ],
)
def test_values_that_do_not_fit_are_refused(state, message):
    with pytest.raises(TraitError, match=message):
        ThreeFamilies(**state)


def picture(widget) -> str:
    encoded = re.search(r"svg\+xml;base64,([^\"]+)", widget.to_html())[1]
    return base64.b64decode(encoded).decode()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_picture_shows_masks_and_answers(family, text):
    widget = ThreeFamilies(family=family, text=text, flipped=[0, 2], place=11)
    n = TEXTS[text]
    assert len(widget._words()) == n
    masks = three_families.masks(family, n).values()
    shown = picture(widget)
    assert shown.count('fill-opacity="0.55"') == sum(m.sum() for m in masks)
    assert shown.count('fill-opacity="1"') == sum((~m).sum() for m in masks)
    count = three_families.losses(family, n, widget._holes())
    assert shown.count("→") == count
    assert f">{count} of {n}<" in shown


def test_the_alternative_says_who_sees_whom_and_what_is_asked():
    alt = ThreeFamilies(family="pair", text="rain")._alt()
    assert "3 and: sees 1–3; asked nothing" in alt
    assert "5 the: sees 4–5 and across 1–3; asked for river" in alt
    assert "Encoder–decoder 3 of 6" in alt
    assert "7 [mask]: sees 1–9; asked for she" in ThreeFamilies()._alt()


# ---- in a page ----


def alive(page, family="encoder"):
    root = widget_support.alive(page, PLACES[family])
    page.mouse.move(0, 0)
    return root


def state(page, family="encoder") -> dict:
    return widget_support.state(page, PLACES[family])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_shown_is_what_is_computed(open_page, family, text):
    page = open_page()
    root = alive(page)
    root.locator(f"[value={family}]").check(force=True)
    root.locator(f"[value={text}]").check(force=True)
    settle(page)
    widget = ThreeFamilies(**state(page))
    assert (widget.family, widget.text) == (family, text)
    rows = widget._rows()
    buttons = root.locator("button.attn-place").all_inner_texts()
    assert buttons == [f"{row['place']} {row['given']}" for row in rows]
    answers = [a for a in root.locator("td.attn-answer").all_inner_texts() if a]
    assert answers == [f"→ {row['answer']}" for row in rows if row["answer"]]
    masks = list(three_families.masks(family, TEXTS[text]).values())
    shown = [
        [[c == "●" for c in r.locator("td > span").all_inner_texts()] for r in t.all()]
        for t in (t.locator("tbody tr") for t in root.locator(".attn-sight").all())
    ]
    assert shown == [m.tolist() for m in masks]
    counts = root.locator(".attn-table td:nth-child(2)").all_inner_texts()
    assert counts == [count for _, count, _ in widget._counts()]
    assert (root.get_by_role("slider").count() == 1) == (family == "encoder")
    assert root.locator("svg circle").count() == len(rows)


def test_pointing_at_a_row_shows_what_it_sees(open_page):
    page = open_page()
    root = alive(page, "pair")
    root.locator("tr[data-place='4']").first.hover()
    settle(page)
    assert state(page, "pair")["place"] == 4
    assert root.locator(".attn-sentence").inner_text() == (
        "“[start]” sees the answer so far (5) and, across, the whole source (1–4); "
        "it is asked for the next token, “letters”. "
        "Losses from this text: 5 for 9 tokens, 56 %."
    )
    assert root.locator("tr.attn-followed").count() == 2  # its own and across
    assert root.locator("svg .attn-stroke-key").count() == 4
    assert root.locator("svg .attn-seen").count() == 5
    root.locator("tr[data-place='1']").hover()
    settle(page)
    assert root.locator("svg .attn-stroke-key").count() == 0
    assert "is read: it sees all 4" in root.locator(".attn-sentence").inner_text()


def test_rows_answer_the_keyboard(open_page):
    page = open_page()
    root = alive(page)
    root.locator("button.attn-place[tabindex='0']").focus()
    page.keyboard.press("Home")
    settle(page)
    page.keyboard.press("ArrowUp")  # the border is the end
    page.keyboard.press("ArrowDown")
    settle(page)
    assert state(page)["place"] == 1
    page.keyboard.press("Space")
    settle(page)
    assert state(page)["flipped"] == [1]
    head = root.locator("button.attn-place").nth(1)
    assert head.inner_text() == "2 [mask]"
    assert head.get_attribute("aria-pressed") == "true"
    assert head.get_attribute("aria-label") == "2 [mask]: sees 1–9; asked for sends"
    assert "2 for 9 tokens, 22 %" in root.locator(".attn-sentence").inner_text()
    page.keyboard.press("Enter")
    settle(page)
    assert state(page)["flipped"] == []
    page.keyboard.press("End")
    settle(page)
    assert state(page)["place"] == 8


def test_a_pointer_at_rest_does_not_hold_the_keyboard_back(open_page):
    page = open_page()
    root = alive(page)
    root.locator("button.attn-place").nth(2).click()
    for place in (3, 4):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(150)  # the browser looks again what lies below it
        assert state(page)["place"] == place
    page.mouse.move(*page_point(root.locator("tr[data-place='7'] td").nth(1)))
    settle(page)
    assert state(page)["place"] == 7


def page_point(locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_click_covers_for_the_encoder_alone(open_page):
    page = open_page()
    root = alive(page)
    root.locator("button.attn-place").nth(6).click()
    settle(page)
    assert state(page)["flipped"] == [6]
    assert "Losses from this text: 0 for 9 tokens, 0 %." in (
        root.locator(".attn-sentence").inner_text()
    )
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert state(page) == ThreeFamilies()._state()
    root = alive(page, "decoder")
    root.locator("button.attn-place").nth(3).click()
    settle(page)
    assert state(page, "decoder")["flipped"] == []
    assert state(page, "decoder")["place"] == 3


def test_a_finger_taps(open_page):
    page = open_page(has_touch=True)
    root = alive(page)
    root.locator("button.attn-place").nth(0).tap()
    settle(page)
    assert state(page)["flipped"] == [0]
    assert state(page)["place"] == 0


def test_places_are_drawn_anew_and_by_another_share(open_page):
    page = open_page()
    root = alive(page)
    root.locator("button.attn-place").nth(0).click()
    root.get_by_role("button", name="Draw other places").click()
    settle(page)
    now = state(page)
    assert (now["seed"], now["flipped"]) == (12, [])
    assert root.get_by_text("Draw 12").is_visible()
    root.get_by_role("slider").press("End")
    settle(page)
    now = state(page)
    assert now["rate"] == 50
    holes = three_families.covered(12, 50, [], 9)
    pressed = root.locator("button.attn-place[aria-pressed=true]")
    assert pressed.count() == len(holes)
    assert root.locator("output").inner_text() == "50 %"


def test_every_control_has_a_name_and_is_reached_by_tab(open_page):
    page = open_page()
    root = alive(page)
    root.evaluate("r => { r.tabIndex = -1; r.focus() }")
    names = []
    while True:
        page.keyboard.press("Tab")
        if not root.evaluate(
            "r => r !== document.activeElement && r.contains(document.activeElement)"
        ):
            break
        name, outline = root.evaluate(
            """() => {
                const it = document.activeElement;
                const label = it.closest("label");
                return [it.getAttribute("aria-label") || (label ?? it).textContent,
                    [it, label].some(
                        (c) => c && getComputedStyle(c).outlineStyle === "solid")];
            }"""
        )
        assert outline
        names.append(name)
    # Family, text, share, draw, one stop for the rows, Reset; the link is off.
    assert len(names) == 6
    assert all(name.strip() for name in names)


@pytest.mark.parametrize("width", [320, 640, 1600])
def test_nothing_overflows_at_any_width(open_page, width):
    page = open_page(viewport={"width": width, "height": 900})
    for family in FAMILIES:
        root = alive(page, family)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        outside = root.evaluate(
            """(root) => {
                const box = root.getBoundingClientRect();
                return [...root.querySelectorAll("td, th, p, label, button, text")]
                    .filter((n) => n.checkVisibility() && !n.closest(".attn-spoken"))
                    .filter((n) => {
                        const { left, right } = n.getBoundingClientRect();
                        return right > box.right + 0.5 || left < box.left - 0.5;
                    })
                    .concat([...root.querySelectorAll("th, td, button, label span")]
                        .filter((n) => n.checkVisibility())
                        .filter((n) => n.scrollWidth > n.clientWidth + 1))
                    .map((n) => n.outerHTML);
            }"""
        )
        assert outside == []


def test_a_state_comes_from_the_address(open_page):
    page = open_page(
        "#w.1.family=%22pair%22&w.1.text=%22rain%22&w.1.place=11&w.1.rate=40"
        "&w.1.flipped=%5B0,3%5D&w.1.seed=77"
    )
    root = alive(page)
    assert (
        state(page)
        == ThreeFamilies(
            family="pair", text="rain", place=11, rate=40, flipped=[0, 3], seed=77
        )._state()
    )
    # The last place stands for one that this text does not have.
    assert "“the” sees the answer so far (4–5)" not in (
        root.locator(".attn-sentence").inner_text()
    )
    assert "“river” sees the answer so far (4–6)" in (
        root.locator(".attn-sentence").inner_text()
    )


@pytest.mark.parametrize(
    "fragment",
    [
        "#w.1.family=%22rnn%22&w.1.text=3&w.1.rate=12&w.1.place=12",
        "#w.1.flipped=%5B1,1%5D&w.1.seed=10000&w.1.rate=55",
        "#w.1.flipped=%5B12%5D&w.1.seed=0.5&w.1.place=-1",
        "#w.1.flipped=3&w.1.family=null",
    ],
)
def test_damaged_states_change_nothing(open_page, fragment):
    page = open_page(fragment)
    alive(page)
    assert state(page) == ThreeFamilies()._state()


def test_leaving_the_page_leaves_nothing(open_page):
    page = open_page()
    alive(page)
    left = page.locator("[data-widget]").first.evaluate(
        """async (host) => {
            const { dispose, modelOf } = await import("/_static/widgets/loader.js");
            const model = modelOf(host);
            const cell = host.querySelector("button.attn-place");
            await dispose(host);
            cell.click();
            return [model.listenerCount, model.get("flipped")];
        }"""
    )
    assert left == [0, []]
