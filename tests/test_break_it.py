"""The broken models: two measured again, and the tool that shows all of them."""

import json
import math
from pathlib import Path

import pytest
import widget_support
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError
from widget_support import served, settle, write_page

from attnbook.widgets import BreakIt, break_it

ROOT = Path(__file__).resolve().parents[1]
RECORD = json.loads((ROOT / "attnbook/data/real.json").read_text("utf-8"))
CHANGES = list(break_it.NAMES)
nats = st.none() | st.floats(0, 700)


# ---- the record ----


@pytest.fixture(scope="module")
def chapter():
    """The names that the chapter's cells define, up to where it runs the changes."""
    path = ROOT / "notebooks" / "en" / "09_real.ipynb"
    names: dict = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["id"] == "break-run":
            break
        needed = cell["id"].startswith("break-") or cell["id"] in ("setup", "own-run")
        if cell["cell_type"] == "code" and (needed or cell["id"].startswith("live")):
            source = "".join(cell["source"])
            if cell["id"] == "own-run":  # of this cell the prompt alone
                source = source.split("\n\n")[0]
            exec(compile(source, cell["id"], "exec"), names)
    assert names["ask"].live
    return names


@pytest.mark.parametrize(
    "change", ["no mask", "heads tiled", "wrong pairs", "no norm", "no last division"]
)
def test_what_was_recorded_is_measured_again(chapter, change):
    functions = chapter["changes"][change]
    again = chapter["ask"](change, lambda: chapter["measure"](functions, 5))
    recorded = RECORD[f"break: {change}"]
    if recorded["nats"] is None:
        assert again["nats"] is None
    else:
        assert again["nats"] == pytest.approx(recorded["nats"], abs=0.01)
    assert again["same"] == pytest.approx(recorded["same"], abs=0.03)
    assert recorded["says"].startswith(again["says"])


def test_all_changes_are_recorded_and_shown(chapter):
    assert list(break_it.NAMES.values()) == list(chapter["changes"])
    assert {f"break: {name}" for name in chapter["changes"]} <= set(RECORD)
    assert BreakIt.data == {
        change: RECORD[f"break: {name}"] for change, name in break_it.NAMES.items()
    }


def test_the_record_says_what_the_lessons_say():
    found = {change: BreakIt.data[change]["nats"] for change in CHANGES}
    blind = math.log(break_it.VOCABULARY)
    assert found["mask"] == min(n for n in found.values() if n is not None)
    assert found["norm"] is None
    assert found["last_division"] > 100
    assert found["last_gain"] > blind
    assert BreakIt.data["last_division"]["says"] == BreakIt.data["intact"]["says"]
    assert BreakIt.data["last_division"]["same"] == 1
    assert BreakIt.data["last_gain"]["same"] < 0.1
    assert found["heads"] > blind
    assert abs(found["pairs"] - found["positions"]) < 0.2 < found["pairs"] - 4
    assert "Paris" in BreakIt.data["pairs"]["says"]


# ---- the tool ----


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("break_it")
    write_page(folder, BreakIt(), BreakIt(change="norm"))
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
                    new URL("_static/widgets/break_it.js", location.href).href
                );
                return module[name](...given);
            }""",
            [function, list(arguments)],
        )

    yield call
    page.close()


@given(nats=nats)
@settings(max_examples=60)
def test_page_and_python_compute_the_same(call, nats):
    assert call("perplexity", nats) == break_it.perplexity(nats)
    assert call("share", nats) == pytest.approx(break_it.share(nats))


@pytest.mark.parametrize(
    ("nats", "text"),
    [
        (None, "—"),
        (0.0, "1.0"),
        (math.log(3.66), "3.7"),
        (math.log(39.7), "40"),
        (math.log(862), "860"),
        (math.log(123_456), "120,000"),
        (650.0, "> 10¹⁷"),
    ],
)
def test_perplexity_is_given_to_two_digits(nats, text):
    assert break_it.perplexity(nats) == text


def test_another_change_is_refused():
    with pytest.raises(TraitError, match=r"change is 'all'; .*intact, scale"):
        BreakIt(change="all")


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_shows_what_was_recorded(open_page, change):
    page = open_page()
    root = widget_support.alive(page)
    root.locator(f"[value={change}]").check(force=True)
    settle(page)
    assert widget_support.state(page)["change"] == change
    widget = BreakIt(change=change)
    cells = root.locator("tbody td").all_inner_texts()
    now = [widget._nats(change), break_it.perplexity(widget.data[change]["nats"])]
    assert cells[-1:] == now[1:]
    assert now[0] in cells
    assert root.locator("pre").text_content() == widget.data[change]["says"]
    assert root.locator(".attn-bar-now").count() == 1
    lesson = widget._say(f"lesson.{change}")
    assert lesson in root.locator(".attn-sentence").inner_text()
    assert lesson in widget._alt()
    assert now[0] in widget._alt()


def test_it_answers_the_keyboard(open_page):
    page = open_page()
    root = widget_support.alive(page)
    root.locator("[value=mask]").focus()
    page.keyboard.press("ArrowDown")
    settle(page)
    assert widget_support.state(page)["change"] == "heads"
    root.get_by_role("button", name="Reset").click()
    settle(page)
    assert widget_support.state(page)["change"] == "mask"


def test_a_bar_that_would_be_too_long_ends_with_the_scale(open_page):
    page = open_page()
    root = widget_support.alive(page)
    widths = [
        float(bar.get_attribute("width"))
        for bar in root.locator(".attn-bar-now, .attn-bar-other").all()
    ]
    assert len(widths) == len(CHANGES)
    full = widths[CHANGES.index("last_division")]
    assert full == max(widths)
    # No number is no short bar: it is as long as can be, and empty.
    assert widths[CHANGES.index("norm")] == full
    empty = root.locator(".attn-bar-none")
    assert empty.count() == 1
    assert empty.evaluate("bar => getComputedStyle(bar).fill") == "none"
    assert widths[CHANGES.index("intact")] == pytest.approx(
        full * break_it.share(BreakIt.data["intact"]["nats"]), abs=0.1
    )
