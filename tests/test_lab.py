"""The lab in the browser: every notebook, widgets alive, and the same verdicts.

One lab with a warm kernel serves all tests; every other host is refused throughout.
"""

import json
import re
import time
from collections.abc import Iterator

import lab
import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, Visit, open_visit
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page
from verdict_cases import CASES, CHAPTER, judge, plain, told

START = 180  # seconds that the lab may take until its first cell has run

pytestmark = pytest.mark.usefixtures("live")

# The lab's own objects: what a reader's mouse and keyboard reach, but by name.
FIND = """(id) => {
  const notebook = globalThis.jupyterapp?.shell.currentWidget?.content;
  const cells = notebook?.widgets ?? [];
  return [notebook, cells.find((cell) => cell.model.sharedModel.getId() === id)];
}"""


def expose(route) -> None:
    """Serve the lab's settings with the one that lets a test see its objects."""
    answer = route.fetch()
    settings = answer.json()
    settings["jupyter-config-data"]["exposeAppInBrowser"] = True
    route.fulfill(response=answer, json=settings)


def wait(page: Page, expression: str, *arguments: object, seconds: float = START):
    end = time.monotonic() + seconds
    while not (found := page.evaluate(expression, list(arguments))):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(100)
    return found


def run(page: Page, name: str, source: str | None = None) -> list[dict]:
    """Run a cell, with another text if one is given; return its outputs."""
    page.evaluate(
        f"""async ([id, source]) => {{
          const [notebook, cell] = ({FIND})(id);
          if (source !== null) cell.model.sharedModel.setSource(source);
          notebook.activeCellIndex = notebook.widgets.indexOf(cell);
          await jupyterapp.commands.execute("notebook:run-cell");
        }}""",
        [name, source],
    )
    return page.evaluate(f"([id]) => ({FIND})(id)[1].model.outputs.toJSON()", [name])


def text(outputs: list[dict], mime: str = "text/plain") -> str:
    (shown,) = [output["data"][mime] for output in outputs if "data" in output]
    return shown if isinstance(shown, str) else "".join(shown)


@pytest.fixture(scope="module")
def opened(browser: Browser, site_url: str) -> Iterator[Visit]:
    """The lab, opened by the button on the chapter's page, and its first cell run."""
    seen = open_visit(browser, f"{site_url}/en/{CHAPTER}.html")
    page = seen.page
    assert not any("/lab/" in url for url in seen.requested)
    page.route("**/lab/jupyter-lite.json*", expose)
    page.get_by_role("link", name="Lab in the browser").click()
    wait(page, f"([id]) => Boolean(({FIND})(id)[1])", "setup")
    wait(
        page,
        "() => jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"
        " === 'idle'",
    )
    # matplotlib may say that it looks for fonts.
    assert [o for o in run(page, "setup") if o.get("name") != "stderr"] == []
    yield seen
    page.context.close()


@pytest.fixture
def page(opened: Visit) -> Page:
    return opened.page


def test_the_button_opens_the_chapter_and_says_what_it_costs(site, opened):
    page = BeautifulSoup(
        (site / f"en/{CHAPTER}.html").read_text("utf-8"), "html.parser"
    )
    (link,) = [a for a in page.find_all("a") if "/lab/" in a.get("href", "")]
    assert link["href"] == f"../lab/lab/index.html?path=en/{CHAPTER}.ipynb"
    assert "MB" in link.get_text()
    assert "half a minute" in link.get_text()
    path = opened.page.evaluate("() => jupyterapp.shell.currentWidget.context.path")
    assert path == f"en/{CHAPTER}.ipynb"


def test_every_notebook_is_there(site):
    index = json.loads((site / "lab/api/contents/en/all.json").read_text("utf-8"))
    names = {entry["name"] for entry in index["content"]}
    notebooks = {path.name for path in ROOT.glob("notebooks/en/[0-9]*.ipynb")}
    assert names == notebooks | {"figures"}


def test_it_takes_python_from_beside_itself(site, opened):
    lab.check_python(site / "lab")
    wheels = [url for url in opened.requested if "/pyodide/" in url]
    assert any("/pyodide/numpy-" in url for url in wheels)
    assert opened.refused == []


OTHER = ["", "https://cdn.example/pyodide.js", "../pyodide/pyodide.js"]


@pytest.mark.parametrize("address", OTHER)
def test_a_lab_with_another_python_is_refused(tmp_path, address):
    settings = {lab.KERNEL: {"pyodideUrl": address, "disablePyPIFallback": True}}
    config = {"jupyter-config-data": {"litePluginSettings": settings}}
    (tmp_path / "jupyter-lite.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="take its Python from"):
        lab.check_python(tmp_path)


def test_its_pages_have_a_policy_that_names_no_other_host(site):
    for path in sorted((site / "lab").rglob("*.html")):
        soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        head = [tag for tag in soup.head.children if getattr(tag, "name", None)]
        policy = head[1]
        assert policy["http-equiv"] == "Content-Security-Policy", path
        assert policy["content"].startswith(
            "default-src 'none'; script-src 'self' blob:"
        )
        assert "http" not in policy["content"]


@pytest.mark.parametrize("name", CASES)
def test_the_lab_judges_like_the_library(page, name, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    case = CASES[name]
    run(page, case.stub, case.source)
    said, expected = plain(text(run(page, case.check))), told(judge(case))
    if case.status == "error":
        said = said.replace("In line 2: return x.sofmax()", "In line 2:")
    assert said.startswith(expected)


def test_a_plot_is_drawn(page):
    outputs = run(page, "words", "plt.plot([1, 2])\nplt.show()")
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_a_widget_is_alive(opened, page):
    outputs = run(page, "three-steps")
    assert "application/vnd.jupyter.widget-view+json" in outputs[0]["data"]
    root = page.locator(".attn-root").last
    root.wait_for(timeout=30_000)
    radio = root.get_by_text("Softmax", exact=False).first
    radio.wait_for()
    assert root.locator("svg").count() > 0
    assert opened.refused == []


def test_interact_moves_what_it_shows(page):
    outputs = run(
        page,
        "dot",
        "from ipywidgets import interact\n\n@interact(n=(0, 9))\ndef show(n=3):\n"
        "    print('n squared is', n * n)",
    )
    assert outputs
    page.get_by_text("n squared is 9").wait_for()
    track = page.locator(".noUi-target").last
    box = track.bounding_box()
    track.click(position={"x": 0.9 * box["width"], "y": box["height"] / 2})
    page.get_by_text(re.compile(r"n squared is (49|64|81)")).wait_for(timeout=10_000)


def test_a_kernel_as_behind_jupyterlab_judges_like_the_library(monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    path = ROOT / "notebooks" / "en" / f"{CHAPTER}.ipynb"
    chapter = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    cells = [chapter["setup"]]
    for case in CASES.values():
        check = chapter[case.check].source
        cells += [nbformat.v4.new_code_cell(text) for text in (case.source, check)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for case, cell in zip(CASES.values(), notebook.cells[2::2], strict=True):
        said, verdict = plain(text(cell.outputs)), judge(case)
        if case.status == "error":
            said = said.replace("In line 2: return x.sofmax()", "In line 2:")
        assert said == plain(verdict.message)
