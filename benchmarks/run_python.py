"""Bytes and seconds of Python in the page, and of the lab.

Bytes are those of the files as they lie on the server; many servers send the larger
ones compressed. Cold is with an empty cache, warm is the page opened again.
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import BrowserContext, Page, sync_playwright
from serving import browser_options, serve

SITE = Path(__file__).parents[1] / "_build" / "site"
CHAPTER = "01_qkv"
TEXT, PLOT = "softmax-check", "weights-plot"

# Press a cell's Run and say how many milliseconds pass until it has run.
RUN = """async (name) => {
  const bar = document.querySelector(`[data-cell="${name}"] .live-bar`);
  const start = performance.now();
  bar.querySelector(".live-run").click();
  await new Promise((done) => {
    const look = () => bar.dataset.state === "idle" && done();
    new MutationObserver(look).observe(bar, { attributes: true });
  });
  return performance.now() - start;
}"""
# The same for the first cell of the notebook that the lab has open.
RUN_IN_LAB = """async () => {
  const pause = () => new Promise((done) => setTimeout(done, 50));
  const kernel = () =>
    globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  while (kernel()?.status !== "idle") await pause();
  const notebook = jupyterapp.shell.currentWidget.content;
  const cell = notebook.widgets.find((one) => one.model.type === "code");
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  await jupyterapp.commands.execute("notebook:run-cell");
  return performance.now();
}"""


class Loaded:
    """The files of the site that a context has asked for, each counted once."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.paths: set[str] = set()
        self.elsewhere: set[str] = set()
        self._address = address
        context.on("request", self._note)

    def _note(self, request) -> None:
        if request.url.startswith(self._address):
            self.paths.add(unquote(urlsplit(request.url).path))
        elif request.url.startswith("http"):
            self.elsewhere.add(request.url)

    @property
    def bytes(self) -> int:
        files = [SITE / path.lstrip("/") for path in self.paths]
        return sum(file.stat().st_size for file in files if file.is_file())


def visit(page: Page, address: str, loaded: Loaded) -> dict[str, float]:
    """Open the chapter, run a first text, a first plot, and each once more."""
    page.goto(f"{address}/en/{CHAPTER}.html", wait_until="networkidle")
    before = loaded.bytes
    figures = {"before": sum("/pyodide/" in path for path in loaded.paths)}
    figures["text"] = page.evaluate(RUN, TEXT) / 1000
    figures["text bytes"] = loaded.bytes - before
    again = sorted(page.evaluate(RUN, TEXT) / 1000 for _ in range(9))
    figures["text again"] = again[len(again) // 2]
    page.get_by_role("button", name="Edit and run all code here").click()
    page.locator(f'[data-cell="{PLOT}"] .live-bar').wait_for(state="attached")
    figures["plot"] = page.evaluate(RUN, PLOT) / 1000
    figures["plot bytes"] = loaded.bytes - before
    again = sorted(page.evaluate(RUN, PLOT) / 1000 for _ in range(5))
    figures["plot again"] = again[len(again) // 2]
    return figures


def lab(page: Page, address: str) -> float:
    """Open the lab at the chapter; return the seconds until its first cell has run."""

    def expose(route) -> None:
        answer = route.fetch()
        settings = answer.json()
        settings["jupyter-config-data"]["exposeAppInBrowser"] = True
        route.fulfill(response=answer, json=settings)

    page.route("**/lab/jupyter-lite.json*", expose)
    page.goto(f"{address}/lab/lab/index.html?path=en/{CHAPTER}.ipynb")
    return page.evaluate(RUN_IN_LAB) / 1000


def measure() -> dict[str, dict[str, float]]:
    """Return the figures of the page, cold and warm, and of the lab, cold."""
    found: dict[str, dict[str, float]] = {}
    with serve(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_options())
        elsewhere = set()
        context = browser.new_context()
        loaded = Loaded(context, address)
        for when in ("cold", "warm"):
            page = context.new_page()
            found[when] = visit(page, address, loaded)
            page.close()
        elsewhere |= loaded.elsewhere
        context.close()
        context = browser.new_context()
        loaded = Loaded(context, address)
        found["lab"] = {"cold": lab(context.new_page(), address)}
        found["lab"]["bytes"] = loaded.bytes
        elsewhere |= loaded.elsewhere
        browser.close()
    found["other hosts"] = {"requests": len(elsewhere)}
    return found


if __name__ == "__main__":
    print(measure())
