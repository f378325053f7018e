"""Bytes and requests of a chapter page, against a default Jupyter Book 1 page.

Both pages show the same notebook. The default book is built with no settings
but its title, from a run that kept its widget state, as such a book needs.
What it asks other hosts for is answered from the npm packages in this folder,
so that it is weighed in full and nobody is asked.

Text is counted as gzip would send it, everything else as it is.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import Route, sync_playwright
from serving import browser_options, serve

ROOT = Path(__file__).parents[1]
PACKAGES = Path(__file__).parent / "node_modules"
CHAPTER = "02_scaling"
TEXT = (".html", ".js", ".mjs", ".css", ".svg", ".json", ".ipynb", ".txt", "")


def default_book(folder: Path) -> Path:
    """Build the chapter with Jupyter Book's defaults; return the page's folder."""
    notebook = nbformat.read(ROOT / f"notebooks/en/{CHAPTER}.ipynb", as_version=4)
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(folder)}}
    ).execute()
    nbformat.write(notebook, folder / f"{CHAPTER}.ipynb")
    shutil.copytree(ROOT / "figures", folder / "figures")
    (folder / "index.md").write_text("# Book\n")
    (folder / "_config.yml").write_text(
        "title: Book\nexecute: {execute_notebooks: 'off'}\n"
    )
    (folder / "_toc.yml").write_text(
        f"format: jb-book\nroot: index\nchapters: [{{file: {CHAPTER}}}]\n"
    )
    command = "from jupyter_book.cli.main import main; main()"
    subprocess.run(
        [sys.executable, "-c", command, "build", "--quiet", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return folder / "_build" / "html"


def package_file(url: str) -> Path | None:
    """Return the file of this folder's packages that a request elsewhere wants."""
    path = urlsplit(url).path
    if "require.js" in path:
        return PACKAGES / "requirejs" / "require.js"
    _, _, wanted = path.partition("/npm/")
    scope = "@" if wanted.startswith("@") else ""
    name, _, rest = wanted.removeprefix("@").partition("@")
    _, _, file = rest.partition("/")
    found = PACKAGES / f"{scope}{name}" / file
    return next((f for f in (found, found.with_suffix(".js")) if f.is_file()), None)


def size(body: bytes, url: str) -> int:
    suffix = Path(urlsplit(url).path).suffix
    return len(gzip.compress(body, 6)) if suffix in TEXT else len(body)


def weigh(site: Path, page: str) -> dict[str, int]:
    """Open a page, scroll it to its end, and add up what it loaded."""
    loaded: dict[str, int] = {}
    elsewhere: set[str] = set()
    missing: set[str] = set()

    with serve(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_options())
        tab = browser.new_page(viewport={"width": 1200, "height": 900})

        def answer(route: Route) -> None:
            url = route.request.url
            if url.startswith(address) or not url.startswith("http"):
                route.continue_()
                return
            elsewhere.add(url)
            file = package_file(url)
            if file is None:
                missing.add(url)
                route.abort()
            else:
                route.fulfill(path=file)

        tab.route("**/*", answer)
        responses = []
        tab.on("response", lambda response: responses.append(response))
        tab.goto(f"{address}/{page}")
        tab.wait_for_timeout(2000)
        tab.evaluate(
            """async () => {
              for (let y = 0; y < document.body.scrollHeight; y += 400) {
                scrollTo(0, y);
                await new Promise((done) => setTimeout(done, 60));
              }
            }"""
        )
        tab.wait_for_timeout(3000)
        for response in responses:
            if response.url.startswith("http") and response.ok:
                loaded[response.url] = size(response.body(), response.url)
        browser.close()
    if missing:
        print(f"not weighed, in favour of the default page: {sorted(missing)}")
    return {
        "bytes": sum(loaded.values()),
        "requests": len(loaded),
        "other hosts": len(elsewhere),
    }


def measure() -> dict[str, dict[str, int]]:
    """Return what both pages load: bytes, requests, requests to other hosts."""
    if not PACKAGES.exists():
        subprocess.run(
            [sys.executable, str(ROOT / "tools" / "npm.py"), "ci", "--silent"]
            + ["--ignore-scripts", "--legacy-peer-deps"],
            cwd=Path(__file__).parent,
            check=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ATTNBOOK_WORK"] = "off"
        default = weigh(default_book(Path(folder)), f"{CHAPTER}.html")
    return {
        "book": weigh(ROOT / "_build" / "site", f"en/{CHAPTER}.html"),
        "default": default,
    }


if __name__ == "__main__":
    print(measure())
