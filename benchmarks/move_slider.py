"""Slider to painted frame: the book's page against ipywidgets on a local kernel.

Both show the same thing for the same slider, d_k from 1 to 1024: the histogram
of thousands of dot products with the curve of theory over it, and sixteen
weights. The page does it in the browser; the other side is ``interact`` with
matplotlib in JupyterLab, in the style of the book's plots, on a kernel on this
machine, with the same prefix sums computed beforehand, so that only showing is
timed.

The time is taken in the browser, from the key event that moves the slider to
the frame that shows the new picture. The page's work is what the main thread
did in that time, without waiting for the frame.
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import nbformat
import numpy as np
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page, sync_playwright
from serving import browser_options, serve

ROOT = Path(__file__).parents[1]
STEPS = 60
WARM_UP = 5

PAINTED = """
window.painted = () => new Promise((done) => requestAnimationFrame(() => {
  // A message is handled after the frame that was just prepared is painted.
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.now());
  channel.port2.postMessage(0);
}));
"""

NOTEBOOK = """
import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import interact
from attnbook import ops
from attnbook.widgets.scaling import BINS, KEYS, LARGEST, PAIRS

plt.style.use("attnbook.book")
rng = np.random.default_rng(0)
sums = np.cumsum(rng.standard_normal((PAIRS, LARGEST))
                 * rng.standard_normal((PAIRS, LARGEST)), axis=1)
q, keys = rng.standard_normal(LARGEST), rng.standard_normal((KEYS, LARGEST))
scores = np.cumsum(q * keys, axis=1)

def show(d=64):
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    weights = ops.softmax(scores[:, d - 1])
    left.bar(range(KEYS), weights)
    left.set(title=f"largest weight {weights.max():.2f}, "
             f"entropy {ops.entropy(weights):.2f} bits", xlabel="key", ylabel="weight")
    products = sums[:, d - 1]
    right.hist(products, BINS, density=True)
    x = np.linspace(products.min(), products.max(), 121)
    right.plot(x, np.exp(-x**2 / (2 * d)) / np.sqrt(2 * np.pi * d))
    right.set(title=f"variance {products.var():.1f}", xlabel="dot product")
    plt.show()

interact(show, d=(1, LARGEST));
"""


def percentiles(times: list[float]) -> dict[str, float]:
    return {
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
    }


def on_the_page(browser) -> tuple[list[float], list[float]]:
    """Return times to the painted frame and main-thread work, in milliseconds."""
    with serve(ROOT / "_build" / "site") as address:
        tab = browser.new_page(viewport={"width": 1200, "height": 900}, bypass_csp=True)
        tab.goto(f"{address}/en/02_scaling.html")
        widget = tab.locator("[data-widget=scaling]")
        widget.scroll_into_view_if_needed()
        tab.wait_for_selector("[data-widget=scaling][data-hydrated='1']")
        slider = widget.locator("input[type=range]").first
        slider.wait_for()
        tab.wait_for_timeout(1500)  # the samples are drawn in idle time
        tab.evaluate(PAINTED)
        slider.focus()
        tab.evaluate(
            """() => addEventListener("keydown", (event) => {
              window.pressed = performance.now();
              window.shown = painted();
            }, true)"""
        )
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Performance.enable")

        def work() -> float:
            metrics = devtools.send("Performance.getMetrics")["metrics"]
            found = {metric["name"]: metric["value"] for metric in metrics}
            return 1000 * found["TaskDuration"]

        times, works = [], []
        for _ in range(STEPS + WARM_UP):
            before = work()
            tab.keyboard.press("ArrowRight")
            times.append(tab.evaluate("() => shown.then((at) => at - pressed)"))
            works.append(work() - before)
        tab.close()
    return times[WARM_UP:], works[WARM_UP:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(address: str, token: str, seconds: int = 60) -> None:
    for _ in range(10 * seconds):
        try:
            urlopen(f"{address}/api/status?token={token}").close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"JupyterLab did not answer in {seconds} s")


def _interact_times(tab: Page) -> list[float]:
    tab.locator(".jp-CodeCell .cm-content").first.click()
    tab.keyboard.press("Shift+Enter")
    image = tab.locator(".jp-OutputArea img").first
    image.wait_for(timeout=60_000)
    tab.locator(".noUi-handle").first.focus()
    tab.evaluate(PAINTED)
    tab.evaluate(
        """() => addEventListener("keydown", () => {
          window.pressed = performance.now();
          window.shown = new Promise((done) => {
            const watch = new MutationObserver((changes) => {
              for (const change of changes) for (const node of change.addedNodes) {
                const image = node.matches?.("img")
                  ? node : node.querySelector?.("img");
                if (!image) continue;
                watch.disconnect();
                image.decode().then(painted).then(done);
                return;
              }
            });
            watch.observe(document.body, { childList: true, subtree: true });
          });
        }, true)"""
    )
    times = []
    for _ in range(STEPS // 2 + WARM_UP):
        tab.keyboard.press("ArrowRight")
        times.append(tab.evaluate("() => shown.then((at) => at - pressed)"))
        tab.wait_for_timeout(50)
    return times[WARM_UP:]


def on_a_kernel(browser) -> list[float]:
    """Return times to the painted frame with interact, in milliseconds."""
    port, token = _free_port(), secrets.token_hex(8)
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        notebook = new_notebook(cells=[new_code_cell(NOTEBOOK)])
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
        }
        nbformat.write(notebook, Path(folder) / "slider.ipynb")
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
            + [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"]
            + [f"--ServerApp.root_dir={folder}", "--ServerApp.ip=127.0.0.1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "JUPYTER_CONFIG_DIR": folder},
        )
        try:
            _wait_for(address, token)
            tab = browser.new_page(viewport={"width": 1200, "height": 900})
            tab.goto(f"{address}/lab/tree/slider.ipynb?token={token}")
            tab.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
            tab.wait_for_timeout(3000)  # the kernel starts
            times = _interact_times(tab)
            tab.close()
        finally:
            server.terminate()
            server.wait()
    return times


def measure() -> dict[str, dict[str, float]]:
    """Return medians and 95th percentiles in milliseconds."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_options())
        times, works = on_the_page(browser)
        kernel = on_a_kernel(browser)
        browser.close()
    return {
        "page": percentiles(times),
        "page work": percentiles(works),
        "kernel": percentiles(kernel),
    }


if __name__ == "__main__":
    print(measure())
