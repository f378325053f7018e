"""Python in the pages: cells edited, run, stopped and kept, in a real browser.

One page with a warm Python serves all tests that leave it as they found it; every
other host is refused throughout.
"""

import json
import re
import time

import pytest
from conftest import AXE, Visit, open_visit
from playwright.sync_api import Browser, Locator, Page
from verdict_cases import CASES, CHAPTER, judge, plain, told

PYTHON = 120  # seconds that a start of Python may take on a busy machine

pytestmark = pytest.mark.usefixtures("live")


def cell(page: Page, name: str) -> Locator:
    return page.locator(f'[data-cell="{name}"]')


def wait(condition, seconds: float = PYTHON, page: Page | None = None) -> None:
    """Wait until a condition holds, and fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        page.wait_for_timeout(20)


def status(page: Page, name: str) -> str:
    return cell(page, name).locator(".live-status").inner_text()


def state(page: Page, name: str) -> str | None:
    return cell(page, name).locator(".live-bar").get_attribute("data-state")


def finish(page: Page, name: str) -> str:
    """Wait until a cell has run; return what it shows."""
    wait(lambda: state(page, name) == "idle", page=page)
    output = cell(page, name).locator(".live-output")
    return output.inner_text().strip() if output.count() else ""


def run(page: Page, name: str) -> str:
    cell(page, name).locator(".live-run").click()
    return finish(page, name)


def write(page: Page, name: str, text: str) -> None:
    """Put a text into a cell, as one who types or pastes it."""
    edit = cell(page, name).locator(".live-edit")
    if edit.is_visible():
        edit.click()
    cell(page, name).locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def reset(page: Page, name: str) -> None:
    cell(page, name).locator(".live-reset").click()


def text_of(page: Page, name: str) -> str:
    """Return what the editor of a cell holds."""
    lines = cell(page, name).locator(".cm-line").all_inner_texts()
    return "\n".join(line.rstrip("\n") for line in lines)


@pytest.fixture(scope="module")
def chapter(site_url: str) -> str:
    return f"{site_url}/en/{CHAPTER}.html"


@pytest.fixture
def visit(visit):
    """The same with little patience: what is slow here says so."""

    def start(url: str, **options: object) -> Visit:
        seen = visit(url, **options)
        seen.page.set_default_timeout(15_000)
        return seen

    return start


@pytest.fixture(scope="module")
def warm(browser: Browser, chapter: str) -> Visit:
    """The chapter with all its cells open and Python started."""
    seen = open_visit(browser, chapter)
    seen.before = list(seen.requested)
    page = seen.page
    page.set_default_timeout(15_000)
    page.get_by_role("button", name="Edit and run all code here").click()
    cell(page, "words").locator(".live-bar").wait_for()
    assert run(page, "words") == "(4, 2)"
    yield seen
    page.context.close()


@pytest.fixture
def page(warm: Visit) -> Page:
    """The warm page; a test says what it leaves behind by resetting it."""
    warm.errors.clear()
    warm.page.keyboard.press("Escape")
    yield warm.page
    while warm.page.locator(".live-reset:visible").count():
        warm.page.locator(".live-reset:visible").first.click()


# --- before the first Run ------------------------------------------------------


def test_nothing_is_loaded_before_a_button_is_pressed(warm):
    mine = [url for url in warm.before if "/live/" in url or "/pyodide/" in url]
    assert [url.rpartition("/")[2] for url in mine] == ["start.en.js"]
    assert any("/pyodide/numpy" in url for url in warm.requested)
    assert not any("/pyodide/matplotlib" in url for url in warm.before)


def test_loading_says_what_and_how_much(visit, chapter):
    page = visit(chapter).page
    page.route("**/pyodide.asm.wasm", lambda route: None)
    cell(page, "softmax-check").locator(".live-run").click()
    wait(lambda: "Python" in status(page, "softmax-check"), page=page)
    assert re.fullmatch(
        r"Loading Python, up to \d+ MB the first time …", status(page, "softmax-check")
    )
    cell(page, "softmax-check").locator(".live-stop").click()
    wait(lambda: state(page, "softmax-check") == "idle", 2, page)


# --- running -------------------------------------------------------------------


def test_a_cell_runs_what_it_needs_first(page):
    assert run(page, "words").endswith("(4, 2)")
    assert "array([[4., 2., 6., 0.]" in run(page, "all-pairs-code")


def test_two_cells_in_a_row(page):
    cell(page, "words").locator(".live-run").click()
    cell(page, "dot").locator(".live-run").click()
    assert finish(page, "dot") == "3.0"
    assert state(page, "words") == "idle"


@pytest.mark.parametrize("name", CASES)
def test_the_page_judges_like_the_library(page, name, monkeypatch):
    case = CASES[name]
    write(page, case.stub, case.source)
    shown = run(page, case.check)
    box = cell(page, case.check).locator(".live-verdict")
    assert box.get_attribute("data-status") == case.status

    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    verdict = judge(case)
    assert (verdict.status, verdict.mistake) == (case.status, case.mistake)
    # Where a line of the answer is quoted, only the page knows its text.
    said, expected = plain(shown), told(verdict)
    if case.status == "error":
        assert "In line 2: return x.sofmax()" in said
        said = said.replace(" return x.sofmax()", "")
    if case.status == "right":
        # What is kept is said where it is kept.
        assert said.startswith(expected)
        assert "work.json" in said
    else:
        assert said == expected


def test_a_right_answer_is_kept_in_the_form_of_work_json(page):
    case = CASES["a right softmax"]
    write(page, case.stub, case.source)
    run(page, case.check)
    record = json.loads(stored(page))
    entry = record["exercises"]["softmax"]
    assert entry["status"] == "right"
    assert entry["source"].startswith("import numpy as np")
    assert case.source.strip() in entry["source"]
    # And Python gets it back, as a later chapter's cell would ask for it.
    write(
        page,
        "words",
        "from attnbook.exercises import load_answer\n"
        "load_answer('softmax')(np.array([0.0, 0.0]))",
    )
    assert run(page, "words") == "array([0.5, 0.5])"


def stored(page: Page) -> str:
    return page.evaluate(
        "Object.entries(localStorage)"
        ".find(([key]) => key.startsWith('attnbook.work'))?.[1] ?? ''"
    )


def test_an_error_is_short_and_about_the_readers_code(page):
    write(page, "words", "def f(x):\n    return np.linalg.inv(x)\n\nf(np.ones((2, 3)))")
    shown = run(page, "words")
    assert status(page, "words") == "Ended in an error."
    assert shown.splitlines()[0] == 'File "cell words", line 4, in <module>'
    assert "line 2, in f" in shown
    assert shown.splitlines()[-1] == (
        "numpy.linalg.LinAlgError: Last 2 dimensions of the array must be square"
    )
    assert "site-packages" not in shown
    assert len(shown.splitlines()) <= 8


def test_an_error_in_what_is_needed_is_shown_with_its_cell(page):
    write(page, "words", "words = 1 +")
    shown = run(page, "dot")
    assert shown.startswith("This cell needs the cell words, which ended in an error:")
    assert "SyntaxError" in shown
    assert status(page, "dot") == "Ended in an error."


def test_a_plot_is_shown(page):
    write(page, "words", "plt.plot([1, 2, 1])\nplt.show()\nlen(plt.get_fignums())")
    assert run(page, "words") == "0"
    picture = cell(page, "words").locator(".live-output img")
    assert picture.get_attribute("src").startswith("data:image/png;base64,")
    assert picture.get_attribute("alt") == "Plot drawn by this cell"
    assert (
        picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    )
    # The stored output comes back with the book's text.
    stored_output = cell(page, "words").locator(".cell_output")
    assert not stored_output.is_visible()
    reset(page, "words")
    assert stored_output.is_visible()


def test_a_widget_is_alive(page):
    run(page, "three-steps")
    host = cell(page, "three-steps").locator(".live-output [data-widget]")
    wait(lambda: host.get_attribute("data-hydrated") == "1", 10, page)
    assert not host.locator("figure").first.is_visible()
    assert host.locator("svg").first.is_visible()


def test_printing_without_end_is_cut(page):
    write(page, "words", "for i in range(30_000):\n    print('line', i)\n'the end'")
    shown = run(page, "words")
    assert "The rest of the output is left out" in shown
    assert shown.endswith("'the end'")
    assert 90_000 < len(shown) < 120_000


def test_a_long_value_and_a_long_error_are_cut_in_their_middle(page):
    write(page, "words", "'a' + 2_000_000 * '-' + 'z'")
    shown = run(page, "words")
    assert shown.startswith("'a--")
    assert shown.endswith("--z'")
    assert 90_000 < len(shown) < 110_000
    write(page, "words", "raise ValueError('a' + 6_000_000 * '-' + 'z')")
    shown = run(page, "words")
    assert "ValueError: a--" in shown
    assert shown.endswith("--z")
    assert len(shown) < 25_000


def test_an_error_is_shown_however_much_was_shown_before_it(page):
    write(
        page,
        "words",
        "from IPython.display import display\n"
        "for i in range(60):\n    display(i)\n1 / 0",
    )
    shown = run(page, "words")
    assert "The rest of the output is left out" in shown
    assert shown.endswith("ZeroDivisionError: division by zero")


def test_a_record_that_is_no_text_harms_nothing(page):
    write(page, "words", "open('work.json', 'wb').write(b'\\xff')\n'fine'")
    assert run(page, "words") == "'fine'"
    assert run(page, "words") == "'fine'"


def test_a_key_held_down_does_not_fill_the_queue(page):
    write(
        page,
        "words",
        "import time\ntimes = globals().get('times', 0) + 1\ntime.sleep(0.5)\ntimes",
    )
    for _ in range(6):
        page.keyboard.press("Shift+Enter")
    output = cell(page, "words").locator(".live-output")
    wait(lambda: output.all_inner_texts() == ["2"], page=page)
    page.wait_for_timeout(1500)
    # One ran when the second was asked for; the others were that one.
    assert output.inner_text() == "2"
    assert state(page, "words") == "idle"


def test_changing_a_cell_runs_what_follows_it_again(page):
    assert run(page, "dot") == "3.0"
    write(page, "words", "x = np.array([[0., 0], [1, 1], [5, 0], [0, 0]])\nT = D = 0")
    page.keyboard.press("Shift+Enter")
    finish(page, "words")
    write(page, "dot", "x[1] @ x[2]")
    assert run(page, "dot") == "np.float64(5.0)"


def test_input_has_nobody_to_ask(page):
    write(page, "words", "input('who?')")
    assert "input() has nobody to ask in a page" in run(page, "words")


# --- security ------------------------------------------------------------------

HOSTILE = """\
class Page:
    def _repr_html_(self):
        return '''<p id=shown>a table</p><script>parent.hacked = 1</script>
        <img src=x: onerror="parent.hacked = 2"><iframe srcdoc="<script>top.hacked = 3
        </script>"></iframe><a href="javascript:parent.hacked=4" id=link>link</a>
        <img src="http://other.example/pixel.png"><svg onload="parent.hacked = 5"></svg>
        <form action="http://other.example/"><button id=send>send</button></form>
        <meta http-equiv=refresh content="0; url=http://other.example/">'''

Page()
"""


def test_html_of_the_readers_code_cannot_script_the_page(warm, page):
    write(page, "words", HOSTILE)
    run(page, "words")
    frame = cell(page, "words").locator(".live-frame")
    assert frame.get_attribute("sandbox") == "allow-same-origin"
    inside = cell(page, "words").frame_locator(".live-frame")
    assert inside.locator("#shown").inner_text() == "a table"
    inside.locator("#link").click()
    inside.locator("#send").click()
    page.wait_for_timeout(500)
    assert page.evaluate("globalThis.hacked") is None
    assert page.url.startswith("http://127.0.0.1")
    assert warm.refused == []


def test_a_link_in_a_cells_html_that_leads_elsewhere_harms_nothing(warm, page):
    write(
        page,
        "words",
        "from IPython.display import HTML\n"
        "HTML('<a href=\"http://other.example/\">away</a>')",
    )
    run(page, "words")
    cell(page, "words").frame_locator(".live-frame").locator("a").click()
    page.wait_for_timeout(300)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(200)
    page.emulate_media(color_scheme="light")
    assert warm.refused == []
    assert [e for e in warm.errors if "Content Security Policy" not in e] == []


def test_python_reaches_no_other_host(warm, page):
    write(
        page,
        "words",
        "import js\n"
        "asked = []\n"
        "for act in (js.fetch, js.importScripts):\n"
        "    try:\n"
        "        await act('http://other.example/x.js')\n"
        "    except Exception as error:\n"
        "        asked.append(type(error).__name__)\n"
        "asked",
    )
    assert run(page, "words") == "['JsException', 'JsException']"
    assert warm.refused == []


def test_what_python_says_is_text(page):
    write(page, "words", "print('<img src=x: onerror=hacked=1>')\n'<b>bold</b>'")
    assert "<img src=x: onerror=hacked=1>" in run(page, "words")
    assert cell(page, "words").locator(".live-output b, .live-output img").count() == 0
    assert page.evaluate("globalThis.hacked") is None


def test_a_tampered_wheel_is_refused_with_a_clear_line(visit, chapter):
    page = visit(chapter).page

    def tamper(route):
        answer = route.fetch()
        body = bytearray(answer.body())
        body[len(body) // 2] ^= 1
        route.fulfill(response=answer, body=bytes(body))

    page.context.route("**/pyodide/numpy*.whl", tamper)
    shown = run(page, "softmax-check")
    assert re.fullmatch(
        r"Python could not be loaded: numpy\S+\.whl is not the file that the book was "
        r"made with\.",
        shown,
    )
    assert state(page, "softmax-check") == "idle"


# --- stopping ------------------------------------------------------------------


def test_endless_loops_are_stopped_by_hand_and_by_the_clock(visit, chapter):
    seen = visit(chapter)
    page = seen.page
    page.clock.install()
    write(page, "softmax-stub", "print('here')\nwhile True:\n    pass")
    cell(page, "softmax-stub").locator(".live-run").click()
    loop = cell(page, "softmax-stub")
    wait(
        lambda: "here" in "".join(loop.locator(".live-output").all_inner_texts()),
        page=page,
    )
    start = time.monotonic()
    loop.locator(".live-stop").click()
    assert finish(page, "softmax-stub") == "here"
    assert time.monotonic() - start < 2
    assert status(page, "softmax-stub") == "Stopped. The next run starts Python anew."

    # The next run ends by itself after half a minute, and nothing that waits runs.
    loop.locator(".live-run").click()
    wait(
        lambda: "here" in "".join(loop.locator(".live-output").all_inner_texts()),
        page=page,
    )
    page.clock.fast_forward(29_000)
    assert state(page, "softmax-stub") == "running"
    page.clock.fast_forward(2_000)
    assert "Stopped after 30 s." in finish(page, "softmax-stub")

    # And what was typed is still there, and runs.
    assert "while True" in text_of(page, "softmax-stub")
    write(page, "softmax-stub", CASES["a right softmax"].source)
    assert run(page, "softmax-check").startswith("✓ softmax")
    assert seen.errors == []


CRASHES = {
    "exits": "import os\n\nos._exit(1)",
    "runs out of its stack": "x = []\nfor i in range(100_000):\n    x = [x]\nx",
}


def test_after_a_crash_the_text_is_there_and_the_next_run_works(visit, chapter):
    page = visit(chapter).page
    for source in CRASHES.values():
        write(page, "softmax-stub", source)
        cell(page, "softmax-stub").locator(".live-run").click()
        # Nobody has to wait for the clock to find out.
        assert "Python broke down" in finish(page, "softmax-stub")
        assert "Your text is kept" in status(page, "softmax-stub")
        assert text_of(page, "softmax-stub") == source
        assert source.splitlines()[0] in stored(page)
    write(page, "softmax-stub", CASES["a right softmax"].source)
    assert run(page, "softmax-check").startswith("✓ softmax")


def test_stop_while_the_worker_itself_is_loaded_starts_none(visit, chapter):
    page = visit(chapter).page
    held = []
    page.context.route("**/live/page.py", lambda route: held.append(route))
    cell(page, "softmax-check").locator(".live-run").click()
    wait(lambda: held, 20, page)
    cell(page, "softmax-check").locator(".live-stop").click()
    wait(lambda: state(page, "softmax-check") == "idle", 5, page)
    held[0].continue_()
    page.wait_for_timeout(500)
    assert page.workers == []


# --- what is kept --------------------------------------------------------------

OWN = "def softmax(x, axis=-1):\n    return 42"


def test_a_reload_keeps_the_text_and_reset_restores_one_cell(visit, chapter):
    seen = visit(chapter)
    page = seen.page
    write(page, "softmax-stub", OWN)
    write(page, "row-sums-stub", 'row_sums = "a"')
    page.reload()
    cell(page, "softmax-stub").locator(".cm-content").wait_for()
    assert text_of(page, "softmax-stub") == OWN
    reset(page, "softmax-stub")
    assert "raise NotImplementedError" in text_of(page, "softmax-stub")
    page.reload()
    cell(page, "row-sums-stub").locator(".cm-content").wait_for()
    assert cell(page, "softmax-stub").locator(".cm-content").count() == 0
    assert text_of(page, "row-sums-stub") == 'row_sums = "a"'
    assert not any("/pyodide/" in url for url in seen.requested)
    seen.assert_clean()


def test_a_new_version_of_the_page_keeps_the_text_beside_the_new_one(visit, chapter):
    page = visit(chapter).page
    write(page, "softmax-stub", OWN)

    def newer(route):
        answer = route.fetch()
        text = answer.text().replace(
            r"def softmax(x, axis=-1):\n    raise",
            r"def softmax(z, axis=-1):\n    raise",
        )
        route.fulfill(response=answer, body=text)

    page.context.route(f"**/live/en/{CHAPTER}.json", newer)
    page.reload()
    other = cell(page, "softmax-stub").locator(".live-other")
    other.wait_for()
    assert "because the book has changed" in other.inner_text()
    assert other.locator("pre").inner_text() == OWN
    assert cell(page, "softmax-stub").locator(".cell_input").is_visible()
    # Nothing is lost by another reload, nor by exchanging the two.
    page.reload()
    other.wait_for()
    other.get_by_role("button", name="Exchange the two").click()
    cell(page, "softmax-stub").locator(".cm-content").wait_for()
    assert text_of(page, "softmax-stub") == OWN
    assert not other.is_visible()
    page.reload()
    cell(page, "softmax-stub").locator(".cm-content").wait_for()
    assert text_of(page, "softmax-stub") == OWN


def test_work_goes_into_a_file_and_comes_back(visit, chapter, tmp_path):
    page = visit(chapter).page
    write(page, "softmax-stub", OWN)
    page.get_by_role("button", name="My work").click()
    panel = page.locator(".live-work-panel")
    assert "cells with your own text: 1" in panel.inner_text()
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save to a file").click()
    file = tmp_path / "work.json"
    download.value.save_as(file)
    record = json.loads(file.read_text("utf-8"))
    assert record["version"] == 1
    assert record["exercises"] == {}
    # A file that a notebook wrote is as welcome, and the checks can read this one.
    record["exercises"]["softmax"] = {"source": "def softmax(): ...", "status": "right"}
    file.write_text(json.dumps(record), "utf-8")

    other = visit(chapter).page
    write(other, "softmax-stub", "mine = 1")
    other.get_by_role("button", name="My work").click()
    other.locator("input[type=file]").set_input_files(file)
    said = other.locator(".live-work-panel [role=status]")
    wait(lambda: said.inner_text() == "work.json was loaded.", 5, other)
    panel = other.locator(".live-work-panel").inner_text()
    assert "exercises answered rightly: 1" in panel
    # Neither text is lost.
    assert text_of(other, "softmax-stub") == "mine = 1"
    assert cell(other, "softmax-stub").locator(".live-other pre").inner_text() == OWN

    for content, words in (
        ("no JSON", "does not hold work on this book"),
        ('{"version": 2, "exercises": {}}', "another version of the book"),
        ('{"version": 1, "exercises": {"softmax": 3}}', "does not hold work"),
    ):
        file.write_text(content, "utf-8")
        before = stored(other)
        other.locator("input[type=file]").set_input_files(file)
        wait(lambda words=words: words in said.inner_text(), 5, other)
        assert stored(other) == before


def test_a_damaged_record_is_put_aside(visit, chapter):
    page = visit(chapter).page
    page.evaluate(
        "localStorage.setItem('attnbook.work:/', '{\"en/01_qkv#softmax-stub\": …')"
    )
    page.reload()
    write(page, "softmax-stub", OWN)
    assert json.loads(page.evaluate("localStorage.getItem('attnbook.work:/')"))
    aside = page.evaluate("localStorage.getItem('attnbook.work:/.broken')")
    assert aside.endswith("…")


def test_two_tabs_overwrite_nothing_of_each_other(visit, chapter):
    one = visit(chapter).page
    write(one, "softmax-stub", OWN)
    two = one.context.new_page()
    two.set_default_timeout(15_000)
    two.goto(chapter)
    cell(two, "softmax-stub").locator(".cm-content").wait_for()
    assert text_of(two, "softmax-stub") == OWN
    # What is written in one tab stands in the other, also in a cell not opened there.
    write(one, "softmax-stub", OWN + "  # more")
    write(one, "row-sums-stub", "row_sums = 'a'")
    cell(two, "row-sums-stub").locator(".cm-content").wait_for()
    assert text_of(two, "row-sums-stub") == "row_sums = 'a'"
    assert text_of(two, "softmax-stub") == OWN + "  # more"
    write(two, "softmax-check", "check = 1")
    wait(lambda: cell(one, "softmax-check").locator(".cm-content").count(), 5, one)
    assert text_of(one, "softmax-check") == "check = 1"
    reset(two, "softmax-stub")
    wait(lambda: "raise Not" in text_of(one, "softmax-stub"), 5, one)
    # The last word is the browser's: all of it is there after closing both.
    two.close()
    one.reload()
    cell(one, "softmax-check").locator(".cm-content").wait_for()
    assert text_of(one, "softmax-check") == "check = 1"
    assert text_of(one, "row-sums-stub") == "row_sums = 'a'"
    assert cell(one, "softmax-stub").locator(".cm-content").count() == 0


FULL = (
    "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceeded') }"
)
FORBIDDEN = (
    "Object.defineProperty(window, 'localStorage', "
    "{ get() { throw new DOMException('', 'SecurityError') } })"
)


@pytest.mark.parametrize("how", [FULL, FORBIDDEN], ids=["full", "forbidden"])
def test_work_that_the_browser_does_not_keep_can_be_saved(visit, chapter, how):
    page = visit(chapter).page
    page.add_init_script(how)
    page.reload()
    case = CASES["a right softmax"]
    write(page, case.stub, case.source)
    assert "This browser keeps no more text" in status(page, case.stub)
    assert run(page, case.check).startswith("✓ softmax")
    page.get_by_role("button", name="My work").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").click()
    record = json.loads(download.value.path().read_text("utf-8"))
    assert record["cells"][f"en/{CHAPTER}#{case.stub}"]["text"] == case.source
    assert record["exercises"]["softmax"]["status"] == "right"


def test_a_damaged_record_in_a_full_storage_stops_nobody(visit, chapter):
    page = visit(chapter).page
    page.evaluate(
        "localStorage.setItem('attnbook.work:/', '{'.repeat(1e5));"
        "for (let size = 2 ** 22; size >= 1; size = Math.floor(size / 2))"
        " try { for (;;) localStorage.setItem(Math.random(), 'x'.repeat(size)) }"
        " catch {}"
    )
    page.reload()
    write(page, "softmax-stub", OWN)
    assert text_of(page, "softmax-stub") == OWN


def test_no_text_takes_the_place_of_another_that_is_kept_beside(
    visit, chapter, tmp_path
):
    page = visit(chapter).page
    name = f"en/{CHAPTER}#softmax-stub"
    file = tmp_path / "work.json"
    page.get_by_role("button", name="My work").click()
    write(page, "softmax-stub", "first = 1")
    said = page.locator(".live-work-panel [role=status]")
    for text in ("second = 2", "third = 3", "second = 2"):
        entry = {"text": text, "base": "what the book had", "beside": "fourth = 4"}
        record = {"version": 1, "exercises": {}, "cells": {name: entry}}
        file.write_text(json.dumps(record), "utf-8")
        page.locator("input[type=file]").set_input_files(file)
        wait(lambda: said.inner_text() == "work.json was loaded.", 5, page)
        page.evaluate(
            "document.querySelector('.live-work-panel [role=status]').innerText = ''"
        )
    beside = cell(page, "softmax-stub").locator(".live-other pre").inner_text()
    assert text_of(page, "softmax-stub") == "first = 1"
    assert [beside.count(f"{word} =") for word in ("second", "third", "fourth")] == [
        1
    ] * 3
    # The book changes twice: both of the reader's texts are still there.
    entry = {"text": "newer = 5", "base": "what the book had", "beside": "older = 6"}
    record["cells"][name] = entry
    page.evaluate(
        "(text) => localStorage.setItem('attnbook.work:/', text)", json.dumps(record)
    )
    page.reload()
    other = cell(page, "softmax-stub").locator(".live-other pre")
    other.wait_for()
    assert "newer = 5" in other.inner_text()
    assert "older = 6" in other.inner_text()


def test_the_panel_counts_what_is_written_meanwhile(visit, chapter):
    page = visit(chapter).page
    page.get_by_role("button", name="My work").click()
    panel = page.locator(".live-work-panel")
    assert "cells with your own text: 0" in panel.inner_text()
    write(page, "softmax-stub", OWN)
    assert "cells with your own text: 1" in panel.inner_text()


# --- for everybody -------------------------------------------------------------


def test_all_of_it_works_from_the_keyboard(page):
    cell(page, "softmax-stub").locator(".live-run").focus()
    if cell(page, "softmax-stub").locator(".live-edit").is_visible():
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        wait(
            lambda: cell(page, "softmax-stub").locator(".cm-content").count(), page=page
        )
    else:
        page.keyboard.press("Shift+Tab")
    focused = page.locator(":focus")
    wait(lambda: "cm-content" in (focused.get_attribute("class") or ""), 5, page)
    assert focused.get_attribute("aria-label") == "Code of cell softmax-stub"
    page.keyboard.press("Control+a")
    page.keyboard.type("if True:")
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    page.keyboard.type("print(6 * 7)")
    lines = text_of(page, "softmax-stub").splitlines()
    assert lines[-1].strip() == "print(6 * 7)"
    assert lines[-1].startswith("    ")
    page.keyboard.press("Shift+Enter")
    assert finish(page, "softmax-stub") == "42"
    page.keyboard.press("Escape")
    assert focused.inner_text() == "Run"
    page.keyboard.press("Tab")
    assert focused.inner_text() == "Reset"
    page.keyboard.press("Enter")
    assert status(page, "softmax-stub") == "The book’s text is back."
    assert focused.inner_text() == "Run"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_read_in_both_themes_and_fits_a_phone(page, theme):
    page.emulate_media(color_scheme=theme)
    page.wait_for_timeout(100)
    write(page, "softmax-stub", CASES["one that overflows"].source)
    run(page, "softmax-check")
    write(page, "words", HOSTILE)
    run(page, "words")
    write(page, "dot", "print('text')\nnp.inner('a' * 99, 'b')")
    run(page, "dot")
    if not page.locator(".live-work-panel").is_visible():
        page.get_by_role("button", name="My work").click()
    assert page.locator("html").get_attribute("data-theme") == theme
    inside = cell(page, "words").frame_locator(".live-frame").locator("body")
    output = cell(page, "words").locator(".live-output")
    colour = "element => getComputedStyle(element).color"
    assert inside.evaluate(colour) == output.evaluate(colour)
    # Buttons that came later look like those that were there.
    look = "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    button = cell(page, "setup").locator(".live-run").evaluate(look)
    assert page.locator(".live-work-panel button").evaluate(look) == button
    assert page.locator(".live-drop").first.evaluate(look) == button
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        "axe.run('article', {resultTypes: ['violations'], iframes: false})"
    )
    assert [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ] == []
    page.set_viewport_size({"width": 320, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size({"width": 1400, "height": 900})


def test_a_cell_that_cannot_run_here_says_why(visit, site_url):
    page = visit(f"{site_url}/en/02_scaling.html").page
    page.get_by_role("button", name="Edit and run all code here").click()
    bar = cell(page, "your-scale-interact").locator(".live-bar")
    bar.wait_for()
    assert bar.inner_text() == "The controls of this cell need a notebook behind them."
    assert bar.locator("button").count() == 0
    # And the cells around it can be run all the same.
    assert (
        "Every code cell has its buttons now." in page.locator(".book-run").inner_text()
    )
    every = page.locator("[data-cell]:has(.live-run)").count()
    assert page.locator("[data-cell]:has(.live-stop)").count() == every > 0
