"""Cells of a page that can be run in it: marked, and only where Python is there.

Where the build has Pyodide (``book_live``), an exercise's cell says its role
(``data-role``), a cell that a page cannot run says why (``data-not-here``), and the
page loads the small script that adds the buttons. Elsewhere there is none of it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "live"))

import publish  # noqa: E402 (after the path of live)


def marks(cell: dict) -> dict[str, str]:
    """Return the attributes of a code cell's container, by name."""
    found = {}
    if role := cell["metadata"].get("attnbook", {}).get("role"):
        found["data-role"] = role
    if why := publish.not_here(cell):
        found["data-not-here"] = why
    return found


def _page(app, pagename, templatename, context, doctree) -> None:
    context["has_python"] = app.config.book_live and bool(context["notebook"])
    language = app.config.book_language
    context["live_start"] = f"live/start.{language}.js"
    context["lab"] = f"lab/lab/index.html?path={language}/{context['notebook']}"
    context["lab_size"] = publish.lab_megabytes() if app.config.book_live else ""


def setup(app):
    app.add_config_value("book_live", False, "env")
    # After book_pages, which says what is a notebook.
    app.connect("html-page-context", _page, priority=200)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
