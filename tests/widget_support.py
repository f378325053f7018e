"""A small served page with living widgets, for the tests of the widgets."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page

from attnbook.widgets import BookWidget, static_files

# As strict as the book's pages: no inline script, no inline style, no eval.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: a test's output is its failures."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free loopback port; gives the address, with a slash."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def write_page(folder: Path, *widgets: BookWidget) -> None:
    """Write index.html with these widgets, and the files that bring them to life."""
    static = folder / "_static" / "widgets"
    static.mkdir(parents=True, exist_ok=True)
    for name, text in static_files("en").items():
        (static / name).write_text(text, "utf-8")
    body = "\n".join(widget.to_html() for widget in widgets)
    (folder / "page.css").write_text(
        "body { margin: 0 8px; font-family: sans-serif } .gap { height: 3000px }"
    )
    (folder / "index.html").write_text(
        f"""<!doctype html>
<html lang="en" data-theme="light">
<head><meta charset="utf-8"><title>Widgets</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<link rel="stylesheet" href="page.css">
<link rel="stylesheet" href="_static/widgets/widgets.css">
<script type="module" src="_static/widgets/loader.js"></script></head>
<body><h1>Widgets</h1>{body}<p class="gap"></p><h2 class="end">End</h2></body>
</html>""",
        "utf-8",
    )


# --- in the browser ------------------------------------------------------------


def host(page: Page, place: int = 0) -> Locator:
    """Return where a widget lives, counted from 0 in the order of the page."""
    return page.locator("[data-widget]").nth(place)


def alive(page: Page, place: int = 0) -> Locator:
    """Bring a widget near; return its root once it lives."""
    host(page, place).scroll_into_view_if_needed()
    root = host(page, place).locator(".attn-root")
    root.wait_for()
    return root


def state(page: Page, place: int = 0) -> dict:
    """Return the state that a living widget's model has."""
    return host(page, place).evaluate(
        """async (host) => {
            const { modelOf } = await import("/_static/widgets/loader.js");
            const model = modelOf(host);
            const names = Object.keys(model.get("_start"));
            return Object.fromEntries(names.map((name) => [name, model.get(name)]));
        }"""
    )


def settle(page: Page) -> None:
    """Wait for the next frame, in which widgets show what has changed."""
    page.evaluate("new Promise((d) => requestAnimationFrame(() => d()))")
