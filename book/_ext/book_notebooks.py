"""What a notebook must be to be published, and how its cells are marked.

A cell that was never run, was run out of order, or ended in an error fails the
build. Every code cell's container carries ``data-cell="<cell id>"``, and what
``book_live`` has to say about it.
"""

import json
from html import escape
from pathlib import Path

from book_live import marks
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.util import logging

from attnbook.language import catalogue

logger = logging.getLogger(__name__)


class code_cell(nodes.container):
    """The container of a notebook's code cell, written with its cell id."""


def faults(notebook: dict) -> list[str]:
    """Say what is wrong with the stored execution of a notebook's code cells."""
    found = []
    last = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code" or not "".join(cell["source"]).strip():
            continue
        name = f"code cell {cell.get('id')!r}"
        count = cell.get("execution_count")
        if count is None:
            found.append(f"{name} is not executed")
        elif count != last + 1:
            found.append(
                f"{name} was executed out of order: "
                f"its count is {count}, needed {last + 1}"
            )
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            found.append(f"{name} holds a stored error")
        last = count or last + 1
    return found


def _check(app, env, docnames: list[str]) -> None:
    for name in sorted(env.found_docs):
        path = Path(env.doc2path(name))
        if path.suffix == ".ipynb":
            for fault in faults(json.loads(path.read_text("utf-8"))):
                logger.warning(fault, location=name, type="book", subtype="notebook")


def _mark_cells(app, doctree: nodes.document) -> None:
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text("utf-8"))["cells"]
    containers = [
        node
        for node in doctree.findall(nodes.container)
        if node.get("nb_element") == "cell_code"
    ]
    for node in containers:
        marked = code_cell("", *node.children, **node.attributes)
        cell = cells[node["cell_index"]]
        marked["data"] = {"data-cell": cell["id"]}
        if app.config.book_live:
            marked["data"] |= marks(cell)
        node.replace_self(marked)


def _prompts(app, config) -> None:
    strings = catalogue(config.book_language)
    config.nb_code_prompt_show = strings["page.show_source"]
    config.nb_code_prompt_hide = strings["page.hide_source"]


def _visit_cell(translator, node: code_cell) -> None:
    translator.body.append(translator.starttag(node, "div", **node["data"]))


def _depart_cell(translator, node: code_cell) -> None:
    translator.body.append("</div>\n")


def _visit_hidden(translator, node: HideCodeCellNode) -> None:
    # MyST-NB's own version gives the summary an English label for screen
    # readers that is not the text others see.
    translator.body.append(
        '<details class="book-folded">\n<summary>'
        f'<span class="collapsed">{escape(node["prompt_show"])}</span>'
        f'<span class="expanded">{escape(node["prompt_hide"])}</span>'
        "</summary>\n"
    )


def _depart_hidden(translator, node: HideCodeCellNode) -> None:
    translator.body.append("</details>\n")


def setup(app):
    app.add_node(code_cell, html=(_visit_cell, _depart_cell))
    app.add_node(HideCodeCellNode, override=True, html=(_visit_hidden, _depart_hidden))
    # Before MyST-NB reads its configuration.
    app.connect("config-inited", _prompts, priority=100)
    app.connect("env-before-read-docs", _check)
    app.connect("doctree-read", _mark_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
