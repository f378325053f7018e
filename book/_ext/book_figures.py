"""Figures: one image in the source, a light and a dark one on the page.

In a notebook a figure is an ordinary Markdown image from ``figures/`` and, in
the paragraph after it, its caption in italics; so it shows wherever a notebook
shows. On the page the pair becomes a figure, and its dark twin
(``NN_name.dark.svg``) is shown in the dark theme. A missing twin fails the build.
"""

from pathlib import Path

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)
FOLDER = "figures/"


def _only_child(node: nodes.Node, kind: type) -> nodes.Element | None:
    children = [c for c in node.children if c.astext().strip() or isinstance(c, kind)]
    return children[0] if len(children) == 1 and isinstance(children[0], kind) else None


def _pair(app, doctree: nodes.document) -> None:
    for paragraph in list(doctree.findall(nodes.paragraph)):
        image = _only_child(paragraph, nodes.image)
        if image is None or not image["uri"].startswith(FOLDER):
            continue
        if not image.get("alt"):
            logger.warning("a figure needs a text alternative", location=image)
        dark = image.deepcopy()
        dark["uri"] = str(Path(image["uri"]).with_suffix(".dark.svg"))
        if not (Path(app.srcdir) / dark["uri"]).exists():
            logger.warning("%s has no dark twin", image["uri"], location=image)
            continue
        image["classes"].append("only-light")
        dark["classes"].append("only-dark")
        # Both are hidden from each other's theme, so the text is read once.
        name = Path(image["uri"]).stem.partition("_")[2]
        figure = nodes.figure("", image, dark, align="default")
        figure["ids"].append(f"figure-{nodes.make_id(name)}")
        after = paragraph.next_node(descend=False, siblings=True)
        words = _only_child(after, nodes.emphasis) if after is not None else None
        if isinstance(after, nodes.paragraph) and words is not None:
            figure += nodes.caption("", "", *words.children)
            after.parent.remove(after)
        else:
            logger.warning("%s has no caption", image["uri"], location=image)
        paragraph.replace_self(figure)


def setup(app):
    # Before the images are collected, so that the dark twins are, too.
    app.connect("doctree-read", _pair, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
