"""The built site: what its files say, and what makes a build fail."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from book_policy import script_hashes
from bs4 import BeautifulSoup
from conftest import ROOT, pages

EDITION_PAGES = pages()


def _soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


@pytest.fixture(scope="module")
def soups(site) -> dict[str, BeautifulSoup]:
    """Every page of the site, parsed."""
    addresses = [*EDITION_PAGES, "index.html", "404.html"]
    return {address: _soup(site / address) for address in addresses}


# --- what stands in the pages ------------------------------------------------


def test_nothing_is_loaded_from_another_host(site, soups):
    loading = {"img": "src", "script": "src", "iframe": "src", "source": "src"}
    for address, soup in soups.items():
        for name, attribute in loading.items():
            for tag in soup.find_all(name, attrs={attribute: True}):
                assert not urlsplit(tag[attribute]).netloc, (address, tag)
        for link in soup.find_all("link", href=True):
            if not {"canonical", "alternate"} & set(link["rel"]):
                assert not urlsplit(link["href"]).netloc, (address, link)
    for sheet in [s for s in site.rglob("*.css") if "lab" not in s.parts]:
        for target in re.findall(r"url\(([^)]*)\)", sheet.read_text("utf-8")):
            assert target.strip("'\"").startswith("data:") or "//" not in target, sheet
        assert "@import" not in sheet.read_text("utf-8")


def _anchors(soup: BeautifulSoup) -> set[str]:
    return {tag["id"] for tag in soup.find_all(id=True)} | {
        tag["name"] for tag in soup.find_all("a", attrs={"name": True})
    }


def test_internal_links_and_anchors_resolve(site, soups):
    checked = 0
    for address, soup in soups.items():
        for tag in soup.find_all(["a", "link", "img", "script", "form"]):
            target = tag.get("href") or tag.get("src") or tag.get("action") or ""
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            start = site if parts.path.startswith("/") else (site / address).parent
            path = (start / unquote(parts.path).lstrip("/")).resolve()
            if not parts.path:
                path = (site / address).resolve()
            assert path.is_file(), f"{address} links to {target}"
            if parts.fragment and path.suffix == ".html":
                other = soups[path.relative_to(site.resolve()).as_posix()]
                assert unquote(parts.fragment) in _anchors(other), (address, target)
            checked += 1
    assert checked > 100


def test_style_sheets_refer_to_files_that_exist(site):
    for sheet in [s for s in site.rglob("*.css") if "lab" not in s.parts]:
        for target in re.findall(r"url\(([^)]*)\)", sheet.read_text("utf-8")):
            target = target.strip("'\"")
            if not target.startswith(("data:", "#")):
                assert (sheet.parent / target.split("?")[0]).is_file(), target


def test_ids_are_unique(soups):
    for address, soup in soups.items():
        ids = [tag["id"] for tag in soup.find_all(id=True)]
        assert sorted(ids) == sorted(set(ids)), address


def test_every_picture_has_a_text_alternative(soups):
    for address, soup in soups.items():
        for image in soup.find_all("img"):
            alt = image.get("alt", "").strip()
            assert len(alt) > 3, (address, str(image)[:200])
            assert "<Figure size" not in alt
            assert not re.search(r"\.(png|svg)$", alt), (address, alt)
        for picture in soup.find_all("svg"):
            # KaTeX draws root signs with svg, inside what readers are spared.
            if not picture.find_parent(attrs={"aria-hidden": "true"}):
                assert picture.get("aria-label"), (address, str(picture)[:200])


def test_titles_descriptions_and_cards(site, soups):
    titles = set()
    for address in EDITION_PAGES:
        soup = soups[address]
        titles.add(soup.title.get_text())
        assert "Who Looks at Whom" in soup.title.get_text()
        content = {
            tag.get("name") or tag.get("property"): tag["content"]
            for tag in soup.find_all("meta", content=True)
        }
        assert 30 < len(content["description"]) <= 220, address
        assert content["og:title"]
        assert soup.find("link", rel="icon")
        card = content["og:image"]
        if not urlsplit(card).netloc:
            assert ((site / address).parent / card).is_file()
    assert len(titles) == len(EDITION_PAGES)


def test_the_card_has_the_size_that_previews_want(site):
    header = (site / "en" / "_static" / "card.png").read_bytes()[:24]
    assert int.from_bytes(header[16:20], "big") == 1200
    assert int.from_bytes(header[20:24], "big") == 630


def test_every_page_has_its_policy_first_and_its_hashes_right(site, soups):
    for address, soup in soups.items():
        head = [tag for tag in soup.head.children if getattr(tag, "name", None)]
        meta = head[1]
        assert meta.get("http-equiv") == "Content-Security-Policy", address
        hashes = {
            "'sha256-"
            + base64.b64encode(hashlib.sha256(tag.string.encode()).digest()).decode()
            + "'"
            for tag in soup.find_all("script", src=False)
        }
        scripts, workers = ["'self'", *sorted(hashes)], ""
        if soup.find("script", src=re.compile(r"/live/start\.")):
            scripts.append("'wasm-unsafe-eval'")
            workers = "worker-src blob:; "
        # The whole of it: a rule that is missing or laxer than this is a hole.
        assert meta["content"] == (
            f"default-src 'none'; script-src {' '.join(scripts)}; {workers}"
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
            "font-src 'self'; connect-src 'self'; form-action 'self'; "
            "base-uri 'none'"
        ), address


def test_inline_script_hash_is_the_browsers():
    # The example of the CSP specification, section 8.
    hashes = script_hashes("<script>alert('Hello, world.');</script>")
    assert hashes == ["'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"]


def test_every_code_cell_carries_its_id(soups):
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        soup = soups[f"{path.parent.name}/{path.stem}.html"]
        shown = [tag["data-cell"] for tag in soup.find_all(attrs={"data-cell": True})]
        tags = {"remove-input", "remove-output"}
        expected = [
            cell["id"]
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
            and not tags <= set(cell["metadata"].get("tags", []))
            and "remove-cell" not in cell["metadata"].get("tags", [])
        ]
        assert shown == expected, path.name


def test_formulas_are_rendered(site, soups):
    formulas = 0
    for address, soup in soups.items():
        formulas += len(soup.find_all(class_="katex"))
        article = soup.find("article")
        if article is None:
            continue
        for skipped in article.find_all(["pre", "code", "script", "annotation"]):
            skipped.decompose()
        text = article.get_text(" ")
        assert not re.search(r"\$[^\s$][^$]*\$|\\\(|\\frac|\\sqrt", text), address
    assert formulas > 20
    cut, whole = (
        sum(path.stat().st_size for path in fonts.glob("*.woff2"))
        for fonts in (
            site / "en" / "_static" / "katex" / "fonts",
            ROOT / "node_modules" / "katex" / "dist" / "fonts",
        )
    )
    assert cut < 0.75 * whole


def test_pages_are_light(site, soups):
    """No page refers to a script or style sheet that it can do without."""
    for address in EDITION_PAGES:
        scripts = [tag["src"] for tag in soups[address].find_all("script", src=True)]
        names = {Path(source).name for source in scripts}
        expected = {
            "documentation_options.js",
            "pydata-sphinx-theme.js",
            "sphinx-book-theme.js",
            "book.js",
        }
        if soups[address].find(attrs={"data-widget": True}):
            expected.add("loader.js")
        if soups[address].find(attrs={"data-question": True}):
            expected.add("questions.js")
        if soups[address].find(attrs={"data-cell": True}):
            # Where Python is in the pages at all.
            expected |= {"start.en.js"} & {path.name for path in site.glob("live/*")}
        if address.endswith("search.html"):
            expected |= {
                "doctools.js",
                "sphinx_highlight.js",
                "searchtools.js",
                "language_data.js",
                "searchindex.js",
            }
        assert names == expected, address
        sheets = soups[address].find_all("link", rel="stylesheet")
        assert len(sheets) == 1, address


# --- what makes a build fail, and what a build does ---------------------------


def _notebook(**cells: dict) -> nbformat.NotebookNode:
    """A chapter with a title and code cells, id to replaced fields."""
    title = nbformat.v4.new_markdown_cell("# Chapter\n\nOne sentence, long enough.")
    title["id"] = "title"
    notebook = nbformat.v4.new_notebook(cells=[title])
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
    }
    for count, (name, changes) in enumerate(cells.items(), start=1):
        cell = nbformat.v4.new_code_cell("x = 1", execution_count=count)
        cell.update({"id": name, **changes})
        notebook.cells.append(cell)
    return notebook


def _tree(folder: Path, page: str = "", notebook=None) -> Path:
    """Lay a small book with the real tools into ``folder``."""
    names = ("_config.yml", "book/_ext", "book/_templates", "book/assets", "tools")
    for name in (*names, "live"):
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(
                source, target, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    english = folder / "book" / "en"
    english.mkdir()
    (english / "_toc.yml").write_text(
        "format: jb-book\nroot: index\n"
        "chapters:\n- file: about\n- file: references\n- file: 01_chapter\n"
    )
    (english / "index.md").write_text(f"# Book\n\nThe first page of it.\n\n{page}\n")
    (english / "about.md").write_text("# About\n\nA page that the footer names.\n")
    (english / "references.md").write_text("# References\n\n```{bibliography}\n```\n")
    (english / "404.md").write_text("---\norphan: true\n---\n# Not found\n\nNothing.\n")
    (english / "references.bib").write_text("")
    chapters = folder / "notebooks" / "en"
    chapters.mkdir(parents=True)
    nbformat.write(notebook or _notebook(first={}), chapters / "01_chapter.ipynb")
    return folder


def _build(folder: Path, **environment: str) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")}
    return subprocess.run(
        [sys.executable, "tools/build.py"],
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


_ERROR = nbformat.v4.new_output("error", ename="E", evalue="e", traceback=[])
FAULTS = {
    "unexecuted": (
        {"notebook": _notebook(first={}, second={"execution_count": None})},
        "'second' is not executed",
    ),
    "out of order": (
        {"notebook": _notebook(first={"execution_count": 2})},
        "'first' was executed out of order: its count is 2, needed 1",
    ),
    "stored error": (
        {"notebook": _notebook(first={"outputs": [_ERROR]})},
        "'first' holds a stored error",
    ),
    "broken reference": ({"page": "See [this](nowhere.md)."}, "nowhere"),
    "broken anchor": ({"page": "See [this](#nowhere)."}, "nowhere"),
    "unknown citation": ({"page": "See {cite}`nobody1900`."}, "nobody1900"),
    "bad formula": ({"page": r"The formula $\frac{1$ is not one."}, "formula"),
    "unknown widget": ({"page": "```{widget} nothing\n```"}, "there is no 'nothing'"),
    "inline handler": ({"page": "<b onclick=x()>b</b>"}, "inline event handler"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_build_and_keeps_the_old_site(tmp_path, name):
    fault, message = FAULTS[name]
    folder = _tree(tmp_path / "book", **fault)
    old = folder / "_build" / "site" / "index.html"
    old.parent.mkdir(parents=True)
    old.write_text("the old site")
    result = _build(folder)
    assert result.returncode != 0, result.stdout[-2000:]
    assert message in result.stdout + result.stderr
    assert old.read_text() == "the old site"


def test_a_build_without_addresses_names_no_other_place(tmp_path):
    folder = _tree(tmp_path / "book")
    result = _build(folder)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    site = folder / "_build" / "site"
    soup = _soup(site / "en/01_chapter.html")
    run = soup.find(class_="book-run")
    assert [link["href"] for link in run.find_all("a")] == ["_sources/01_chapter.ipynb"]
    assert (site / "en" / "_sources" / "01_chapter.ipynb").is_file()
    assert not (site / "sitemap.xml").exists()
    assert not (site / "robots.txt").exists()
    assert not soup.find("link", rel="canonical")


def test_a_build_without_pyodide_says_so_and_has_no_dead_button(tmp_path):
    folder = _tree(tmp_path / "book")
    result = _build(folder)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    said = [line for line in result.stdout.splitlines() if "no Python" in line]
    assert len(said) == 1
    site = folder / "_build" / "site"
    assert {path.name for path in site.iterdir()} == {"en", "index.html", "404.html"}
    page = (site / "en/01_chapter.html").read_text("utf-8")
    assert "data-cell" in page
    for trace in ("live/", "pyodide", "lab/", "data-role", "wasm-unsafe-eval"):
        assert trace not in page
    for sheet in site.rglob("book-*.css"):
        assert "live-" not in sheet.read_text("utf-8")


def test_addresses_in_the_environment_appear(tmp_path):
    folder = _tree(tmp_path / "book")
    chapter = folder / "notebooks" / "en" / "01_chapter.ipynb"
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells.append(nbformat.v4.new_markdown_cell("%pip install ../..", id="p"))
    nbformat.write(notebook, chapter)
    result = _build(
        folder,
        BOOK_REPO_URL="https://github.com/someone/who-looks",
        BOOK_REPO_BRANCH="stable",
        BOOK_HUB_URL="https://hub.example.edu",
        BOOK_SITE_URL="https://someone.example/who-looks/",
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    site = folder / "_build" / "site"
    soup = _soup(site / "en/01_chapter.html")
    links = {
        a.get_text(): a["href"] for a in soup.find(class_="book-run").find_all("a")
    }
    published = (site / "en" / "_sources" / "01_chapter.ipynb").read_text("utf-8")
    assert "%pip install git+https://github.com/someone/who-looks" in published
    path = "notebooks/en/01_chapter.ipynb"
    assert links["Binder"] == (
        "https://mybinder.org/v2/gh/someone/who-looks/stable?urlpath=lab/tree/" + path
    )
    assert links["Colab"] == (
        "https://colab.research.google.com/github/someone/who-looks/blob/stable/" + path
    )
    assert links["JupyterHub"].startswith(
        "https://hub.example.edu/hub/user-redirect/git-pull?repo="
    )
    assert links["JupyterHub"].endswith("urlpath=lab/tree/who-looks/" + path)
    canonical = "https://someone.example/who-looks/en/01_chapter.html"
    assert soup.find("link", rel="canonical")["href"] == canonical
    assert canonical in (site / "sitemap.xml").read_text()
    assert "404.html" not in (site / "sitemap.xml").read_text()
    assert "sitemap.xml" in (site / "robots.txt").read_text()
    lost = _soup(site / "404.html")
    for link in lost.find_all("link", rel="stylesheet"):
        assert link["href"].startswith("/who-looks/en/_static/")


def test_a_second_edition_is_text_and_configuration(tmp_path):
    folder = _tree(tmp_path / "book")
    shutil.copytree(ROOT / "attnbook", folder / "attnbook")
    strings = {
        "language.name": "简体中文",
        "page.search": "搜索",
        "page.next": "下一页",
    }
    catalogue = folder / "attnbook" / "locale" / "zh.json"
    catalogue.write_text(json.dumps(strings), "utf-8")
    chinese = folder / "book" / "zh"
    shutil.copytree(folder / "book" / "en", chinese)
    (chinese / "index.md").write_text("# 谁看谁\n\n第一页。\n", "utf-8")
    (chinese / "_config.yml").write_text(
        "title: 谁看谁\nsphinx: {config: {language: zh_CN}}\n", "utf-8"
    )
    shutil.copytree(folder / "notebooks" / "en", folder / "notebooks" / "zh")
    result = _build(folder, PYTHONPATH=str(folder))
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    site = folder / "_build" / "site"
    page = _soup(site / "zh/01_chapter.html")
    assert page.html["lang"] == "zh-CN"
    assert page.find(class_="search-button__default-text").get_text() == "搜索"
    assert page.find("link", hreflang="en")["href"] == "../en/01_chapter.html"
    assert page.find(class_="book-edition").get_text() == "English"
    index = _soup(site / "zh/index.html")
    assert index.find(class_="prev-next-subtitle").get_text() == "下一页"
    english = _soup(site / "en/index.html")
    assert english.find(class_="book-edition")["href"] == "../zh/index.html"
    entrance = (site / "index.html").read_text("utf-8")
    assert 'href="zh/index.html"' in entrance
    assert '["en", "zh"]' in entrance


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digests(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def test_two_builds_of_one_commit_are_byte_identical(tmp_path):
    results = []
    source = ROOT
    for name in ("a", "elsewhere/a-longer-name"):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "--quiet", source, clone], check=True)
        # The second is cloned from the first: ROOT may have moved on.
        source = clone
        (clone / "node_modules").symlink_to(ROOT / "node_modules")
        if (ROOT / "_build" / "pyodide").is_dir():
            (clone / "_build").mkdir()
            (clone / "_build" / "pyodide").symlink_to(ROOT / "_build" / "pyodide")
        # The clone's own attnbook, not the one that is installed for development.
        built = _build(clone, PYTHONPATH=str(clone))
        assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
        results.append(_digests(clone / "_build" / "site"))
    assert len(results[0]) > 30
    assert results[0] == results[1]
