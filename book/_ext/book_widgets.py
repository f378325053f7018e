"""Live widgets in pages: the ``{widget}`` directive and the files they load.

A widget in a page is the HTML that the notebook's output holds, too: a static
picture, its text, and the state from which the loader brings it to life.
"""

from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import attnbook.widgets
from attnbook.language import set_language
from attnbook.widgets import WIDGETS

FOLDER = "widgets"


class WidgetDirective(SphinxDirective):
    """``{widget} name``: a live widget; the body, if any, is YAML: trait: value."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in WIDGETS:
            raise self.error(
                f"widget: there is no {name!r}; known: {', '.join(WIDGETS)}"
            )
        state = yaml.safe_load("\n".join(self.content)) or {}
        try:
            html = WIDGETS[name](**state).to_html()
        except Exception as error:
            # Traits report a bad value in several ways; each is the page's fault.
            raise self.error(f"widget {name}: {error}") from error
        return [nodes.raw("", html, format="html")]


def _speak(app) -> None:
    set_language(app.config.book_language)


def _write_files(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        files = attnbook.widgets.static_files(app.config.book_language)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")


def _needs_loader(app, pagename, templatename, context, doctree) -> None:
    context["has_widgets"] = 'data-widget="' in context.get("body", "")


def setup(app):
    app.add_directive("widget", WidgetDirective)
    app.connect("builder-inited", _speak)
    app.connect("html-page-context", _needs_loader)
    # Before book_slim, which gathers the style sheets.
    app.connect("build-finished", _write_files, priority=700)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
