"""What the templates say about a page: its description, addresses and buttons."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from docutils import nodes
from sphinx.application import Sphinx

from attnbook.language import catalogue

ROOT = Path(__file__).resolve().parents[2]
# The packed book on the site; tools/pack.py writes it.
PUBLISHED = "who-looks-at-whom.zip"
# Named on the page about the book; the rest of the pinned set is in the repository.
SHOWN_VERSIONS = (
    "numpy",
    "matplotlib",
    "ipywidgets",
    "anywidget",
    "jupyterlab",
    "jupyter-book",
    "sphinx",
    "myst-nb",
    "sphinx-book-theme",
)


def address(variable: str) -> str:
    """Return the web address in an environment variable, without a last slash.

    Raises ``ValueError`` if it is set to something else.
    """
    value = os.environ.get(variable, "").strip().rstrip("/")
    if value and not re.fullmatch(r"https?://[^\s\"'<>]+", value):
        raise ValueError(f"{variable} is {value!r}: an http(s) address is needed")
    return value


def launch_links(path: str) -> list[tuple[str, str]]:
    """Return ``(name, address)`` of the services that can run a notebook.

    ``path`` is the notebook's path in the repository. The list is empty until
    BOOK_REPO_URL is set; Colab reads from GitHub only, and from the branch
    BOOK_COLAB_BRANCH if that is set; BOOK_HUB_URL adds a JupyterHub.
    """
    repository = address("BOOK_REPO_URL").removesuffix(".git")
    if not repository:
        return []
    branch = quote(os.environ.get("BOOK_REPO_BRANCH") or "main", safe="/")
    where = urlsplit(repository)
    project = where.path.strip("/")
    binder = address("BOOK_BINDER_URL") or "https://mybinder.org"
    on_github = where.netloc == "github.com"
    if on_github:
        source = f"gh/{project}/{quote(branch, safe='')}"
    elif where.netloc == "gitlab.com":
        source = f"gl/{quote(project, safe='')}/{quote(branch, safe='')}"
    else:
        source = f"git/{quote(repository, safe='')}/{quote(branch, safe='')}"
    links = [("Binder", f"{binder}/v2/{source}?urlpath=lab/tree/{path}")]
    if on_github:
        colab = "https://colab.research.google.com/github"
        # The copies that install the package by themselves, where they are made.
        copies = quote(os.environ.get("BOOK_COLAB_BRANCH") or branch, safe="/")
        links.append(("Colab", f"{colab}/{project}/blob/{copies}/{path}"))
    hub = address("BOOK_HUB_URL")
    if hub:
        query = urlencode(
            {
                "repo": repository,
                "branch": os.environ.get("BOOK_REPO_BRANCH") or "main",
                "urlpath": f"lab/tree/{project.rpartition('/')[2]}/{path}",
            },
            safe="/",
        )
        links.append(("JupyterHub", f"{hub}/hub/user-redirect/git-pull?{query}"))
    return links


def description(doctree: nodes.document, limit: int = 200) -> str:
    """Return a page's first paragraph, at most ``limit`` characters of it."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40:
            if len(text) <= limit:
                return text
            return text[: limit - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
    return ""


def editions() -> list[str]:
    """Return the languages of the book, English first."""
    codes = sorted(path.parent.name for path in (ROOT / "book").glob("*/_toc.yml"))
    return sorted(codes, key=lambda code: code != "en")


def _alternates(app: Sphinx, pagename: str) -> list[tuple[str, str, str]]:
    """Return ``(code, name, relative address)`` of this page in other languages."""
    up = "../" * (pagename.count("/") + 1)
    found = []
    for code in editions():
        if code == app.config.book_language:
            continue
        exists = any(
            (folder / f"{pagename}{suffix}").exists()
            for folder, suffix in (
                (ROOT / "book" / code, ".md"),
                (ROOT / "notebooks" / code, ".ipynb"),
            )
        )
        target = pagename if exists else "index"
        name = catalogue(code)["language.name"]
        found.append((code, name, f"{up}{code}/{target}.html"))
    return found


def _page(app, pagename, templatename, context, doctree) -> None:
    language = app.config.book_language
    strings = catalogue(language)
    context["t"] = lambda string_id, **values: strings[string_id].format(**values)
    # Without a script the page is light; the script in the head knows better.
    context["default_mode"] = "light"
    meta = context.get("meta") or {}
    text = meta.get("description") or (description(doctree) if doctree else "")
    context["description"] = text or strings["page.description"]
    context["is_landing"] = pagename == app.config.root_doc
    site = address("BOOK_SITE_URL")
    context["canonical"] = f"{site}/{language}/{pagename}.html" if site else ""
    context["card"] = (
        f"{site}/{language}/_static/card.png"
        if site
        else context["pathto"]("_static/card.png", 1)
    )
    context["alternates"] = _alternates(app, pagename)
    context["pageurl"] = None
    source = f"{pagename}.ipynb"
    is_notebook = (Path(app.srcdir) / source).exists()
    context["notebook"] = source if is_notebook else ""
    context["launch_links"] = (
        launch_links(f"notebooks/{language}/{source}") if is_notebook else []
    )


def _configure(app, config) -> None:
    """Give the theme its words, and pages what only the build knows."""
    versions = {
        f"version_{name.replace('-', '_')}": version(name) for name in SHOWN_VERSIONS
    }
    strings = catalogue(config.book_language)
    config.html_theme_options["search_bar_text"] = strings["page.search_this"]
    repository = address("BOOK_REPO_URL").removesuffix(".git")
    report = strings["page.report_here"].format(address=f"{repository}/issues")
    site = address("BOOK_SITE_URL")
    offline = strings["page.offline_here"].format(address=f"{site}/{PUBLISHED}")
    config.myst_substitutions = {
        **config.myst_substitutions,
        **versions,
        "version_python": ".".join(platform.python_version_tuple()[:2]),
        "report": report if repository else strings["page.report_clone"],
        "offline": offline if site else strings["page.offline_clone"],
    }


def setup(app):
    app.add_config_value("book_language", "en", "env")
    # Jupyter Book sets it although its extension is not in use here.
    app.add_config_value("comments_config", {}, "")
    app.connect("config-inited", _configure)
    # Before the theme, which renders some templates while it prepares a page.
    app.connect("html-page-context", _page, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
