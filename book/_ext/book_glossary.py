"""The glossary: each term knows the place that introduces it, and leads there.

A chapter links a term where it introduces it, with an ordinary Markdown link to
``../../book/en/glossary.md#causal-mask``. The glossary (third-level headings,
each a term) then names that place under the term, and the ``{term-list}``
directive lists all terms in alphabetical order. A term that no page links to
fails the build, so the list and the text cannot part.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from attnbook.language import catalogue

logger = logging.getLogger(__name__)
PAGE = "glossary"
LEVEL = 2  # sections between a term and the page's title


class term_list(nodes.General, nodes.Element):
    """Where the alphabetical list of terms goes."""


class TermList(SphinxDirective):
    """``{term-list}``: links to all terms of the page, in alphabetical order."""

    def run(self) -> list[nodes.Node]:
        return [term_list()]


def _terms(doctree: nodes.document) -> list[nodes.section]:
    def depth(node: nodes.Node) -> int:
        return 0 if node.parent is None else depth(node.parent) + 1

    return [s for s in doctree.findall(nodes.section) if depth(s) == LEVEL + 1]


def _collect(app, doctree: nodes.document) -> None:
    """Note which section of this page is the first to link to each term."""
    page = app.env.docname
    uses = app.env.glossary_uses[page] = {}
    if page == PAGE:
        return
    for link in doctree.findall(addnodes.pending_xref):
        term = link.get("reftargetid")
        if link.get("reftarget") != PAGE or not term or term in uses:
            continue
        section = link.parent
        while not isinstance(section, nodes.section):
            section = section.parent
        title = section.next_node(nodes.title).astext()
        uses[term] = (section["ids"][0], title)


def _reading_order(env) -> list[str]:
    """Return the pages in the order of the table of contents."""
    order = [env.config.root_doc]
    for page in order:
        order.extend(p for p in env.toctree_includes.get(page, []) if p not in order)
    return order


def _link(app, page: str, anchor: str, text: str) -> nodes.reference:
    address = app.builder.get_relative_uri(PAGE, page)
    target = f"{address}#{anchor}" if anchor else address
    return nodes.reference("", text, refuri=target, internal=True)


def _complete(app, doctree: nodes.document, page: str) -> None:
    if page != PAGE:
        return
    strings = catalogue(app.config.book_language)
    order = _reading_order(app.env)
    terms = _terms(doctree)
    for term in terms:
        name = term["ids"][0]
        found = [p for p in order if name in app.env.glossary_uses.get(p, {})]
        if not found:
            logger.warning("no page introduces the term %r", name, location=term)
            continue
        first, *_ = found
        anchor, title = app.env.glossary_uses[first][name]
        chapter = app.env.titles[first].astext()
        paragraph = nodes.paragraph(classes=["book-introduced"])
        paragraph += nodes.Text(strings["page.glossary_introduced"] + " ")
        text = chapter if title == chapter else f"{chapter} › {title}"
        paragraph += _link(app, first, anchor, text)
        term += paragraph
    for place in list(doctree.findall(term_list)):
        paragraph = nodes.paragraph(classes=["book-terms"])
        for term in sorted(terms, key=lambda t: t[0].astext().casefold()):
            if paragraph.children:
                paragraph += nodes.Text(" · ")
            paragraph += nodes.reference(
                "", term[0].astext(), refid=term["ids"][0], internal=True
            )
        place.replace_self(paragraph)


def _begin(app, env, docnames) -> None:
    if not hasattr(env, "glossary_uses"):
        env.glossary_uses = {}


def _forget(app, env, page: str) -> None:
    env.glossary_uses.pop(page, None)


def _merge(app, env, pages, other) -> None:
    env.glossary_uses.update({page: other.glossary_uses[page] for page in pages})


def setup(app):
    app.add_node(term_list)
    app.add_directive("term-list", TermList)
    app.connect("env-before-read-docs", _begin)
    app.connect("doctree-read", _collect)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-resolved", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
