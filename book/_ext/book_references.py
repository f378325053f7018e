"""The list of references: labelled by citation key, and reached by it.

A notebook cites with an ordinary Markdown link, ``[Vaswani et al. 2017](
../../book/en/references.md#vaswani2017)``, because a role would stand there raw
for whoever opens the notebook. In the pages the link leads to the entry, whose
address is ``references.html#vaswani2017``; an unknown key fails the build.
"""

import pybtex.plugin
from docutils import nodes
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle

PAGE = "references"


class KeyLabels(BaseLabelStyle):
    """Labels that are the citation keys."""

    def format_labels(self, sorted_entries):
        return (entry.key for entry in sorted_entries)


class KeyStyle(Style):
    """The plain style, with citation keys for labels."""

    default_label_style = KeyLabels


def _name_entries(app, doctree: nodes.document) -> None:
    if app.env.docname != PAGE:
        return
    slugs = app.env.metadata[PAGE].setdefault("myst_slugs", {})
    for bibliography in app.env.get_domain("cite").bibliographies.values():
        for key, entry in bibliography.citation_nodes.items():
            entry["ids"].insert(0, key)
            slugs[key] = (0, key, key)


def _visit_citation(translator, node: nodes.citation) -> None:
    # docutils gives the role doc-biblioentry, which ARIA has withdrawn.
    translator.body.append(translator.starttag(node, "div", CLASS="citation"))


def _depart_citation(translator, node: nodes.citation) -> None:
    translator.body.append("</div>\n")


def setup(app):
    app.add_node(
        nodes.citation, override=True, html=(_visit_citation, _depart_citation)
    )
    pybtex.plugin.register_plugin("pybtex.style.formatting", "key", KeyStyle)
    # After MyST's own handler, which starts the page's slugs afresh.
    app.connect("doctree-read", _name_entries, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
