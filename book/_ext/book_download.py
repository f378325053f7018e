"""The notebook that a reader downloads from a page stands by itself.

Figures become attachments, since no file lies beside a downloaded notebook.
Links to other pages become absolute where the site's address is known
(BOOK_SITE_URL), and plain words where it is not.
"""

import base64
import json
import re
from pathlib import Path

from book_pages import address

IMAGE = re.compile(r"!\[([^\]]*)\]\(figures/([\w.-]+\.svg)\)")
LINK = re.compile(
    r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#|attachment:)([\w-]+)\.(?:md|ipynb)(#[^)\s]+)?\)"
)


def portable(notebook: dict, figures: Path, edition: str) -> dict:
    """Return the notebook with its figures inside and no relative link, in place.

    Args:
        notebook: as gathered, in the format of nbformat 4.
        figures: the folder of the figures that it shows.
        edition: the address of the edition, or "" where it is not known.
    """

    for cell in notebook["cells"]:
        # Code that writes prose links to pages, too.
        text = absolute_links("".join(cell["source"]), edition)
        if cell["cell_type"] == "markdown":
            for _, name in IMAGE.findall(text):
                drawing = (figures / name).read_bytes()
                attachment = {
                    "image/svg+xml": base64.b64encode(drawing).decode("ascii")
                }
                cell.setdefault("attachments", {})[name] = attachment
            text = IMAGE.sub(r"![\1](attachment:\2)", text)
        cell["source"] = text
    return notebook


def absolute_links(text: str, edition: str) -> str:
    """Return Markdown whose links to other pages lead to the edition, or nowhere."""

    def link(match: re.Match) -> str:
        words, page, anchor = match[1], match[2], match[3] or ""
        return f"[{words}]({edition}/{page}.html{anchor})" if edition else words

    return LINK.sub(link, text)


def _write(app, exception) -> None:
    if exception or app.builder.name != "html":
        return
    site = address("BOOK_SITE_URL")
    edition = f"{site}/{app.config.book_language}" if site else ""
    for name in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(name))
        if path.suffix != ".ipynb":
            continue
        notebook = portable(
            json.loads(path.read_text("utf-8")), Path(app.srcdir) / "figures", edition
        )
        text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
        (Path(app.outdir) / "_sources" / path.name).write_text(text, "utf-8")


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
