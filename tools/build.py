"""Build the book's site into _build/site, strictly, from stored outputs.

Usage: python tools/build.py [--language en]… [--output _build/site]

Every edition (a folder book/<language> with a _toc.yml) is gathered from
notebooks/<language>, book/<language> and figures into _build/src/<language> and
built with Jupyter Book; any warning fails. Where Pyodide has been fetched
(live/fetch.py), Python for the pages and the lab is added. The old site is replaced
only when everything has been built. Two builds of one commit give the same bytes.

Environment: BOOK_SITE_URL (where the site will be published), BOOK_REPO_URL,
BOOK_REPO_BRANCH, BOOK_BINDER_URL, BOOK_HUB_URL (see book/_ext/book_pages.py).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "live")]

import lab  # noqa: E402
import publish  # noqa: E402
from book_pages import address, editions  # noqa: E402
from book_policy import protect  # noqa: E402

from attnbook.language import catalogue  # noqa: E402 (after the path of _ext)
from attnbook.language import languages as catalogues  # noqa: E402


def commit_time() -> str:
    """Return the time of the commit being built, in seconds, as SOURCE_DATE_EPOCH."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    git = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True
    )
    # Outside a repository any fixed time keeps the build reproducible.
    return git.stdout.strip() if git.returncode == 0 else "315532800"


def merged(base: dict, override: dict) -> dict:
    """Return ``base`` with ``override`` laid over it, nested mappings included."""
    result = dict(base)
    for key, value in override.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def gather(language: str, source: Path) -> None:
    """Lay everything that an edition is built from into the folder ``source``."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for path in sorted((ROOT / "book" / language).iterdir()):
        if path.is_file():
            shutil.copy(path, source)
    for path in sorted((ROOT / "notebooks" / language).glob("*.ipynb")):
        (source / path.name).write_text(gathered(path, language), "utf-8")
    figures = source / "figures"
    figures.mkdir()
    # 01_pipeline.zh.svg is the Chinese edition's 01_pipeline.svg.
    plain = [p for p in sorted((ROOT / "figures").glob("*.svg")) if not localised(p)]
    own = sorted((ROOT / "figures").glob(f"*.{language}.*svg"))
    for path in plain + own:
        shutil.copy(path, figures / path.name.replace(f".{language}.", ".", 1))


def gathered(notebook: Path, language: str) -> str:
    """Return a notebook's text, as it lies beside its pages and figures."""
    text = notebook.read_text("utf-8").replace("../../figures/", "figures/")
    text = text.replace(f"../../book/{language}/", "")
    # A chapter that is downloaded by itself has no repository around it.
    if repository := address("BOOK_REPO_URL"):
        text = text.replace("%pip install ../..", f"%pip install git+{repository}")
    return text


def localised(figure: Path) -> bool:
    """Say whether a figure's file name names a language."""
    return any(f".{code}." in figure.name for code in editions())


def write_config(language: str, source: Path, live: bool) -> Path:
    """Write the edition's configuration, with absolute paths, and return its place.

    ``live`` says whether its pages can run Python.
    """
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    override = ROOT / "book" / language / "_config.yml"
    if override.exists():
        config = merged(config, yaml.safe_load(override.read_text("utf-8")) or {})
    extensions = config["sphinx"]["local_extensions"]
    config["sphinx"]["local_extensions"] = {
        name: str(ROOT / folder) for name, folder in extensions.items()
    }
    sphinx = config["sphinx"]["config"]
    sphinx["book_language"] = language
    sphinx["book_live"] = live
    sphinx["html_static_path"] = [str(ROOT / "book" / "assets")]
    sphinx["templates_path"] = [str(ROOT / "book" / "_templates")]
    sphinx["html_favicon"] = str(ROOT / "book" / "assets" / sphinx["html_favicon"])
    path = source / "_config.yml"
    path.write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
    return path


def build_edition(language: str, live: bool) -> Path:
    """Build one edition and return the folder with its pages.

    ``live`` says whether the pages can run Python.

    Raises ``SystemExit`` if Jupyter Book reports anything.
    """
    source = BUILD / "src" / language
    output = BUILD / "book" / language
    gather(language, source)
    config = write_config(language, source, live)
    shutil.rmtree(output, ignore_errors=True)
    command = [
        sys.executable,
        *("-c", "from jupyter_book.cli.main import main; main()"),
        *("build", str(source), "--config", str(config)),
        *("--toc", str(source / "_toc.yml"), "--path-output", str(output)),
        "-W",  # a warning is an error
        "-n",  # so is every reference that leads nowhere
        "--keep-going",  # but all of them are shown
    ]
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": commit_time(),
        "PYTHONHASHSEED": "0",
    }
    result = subprocess.run(command, env=environment)
    if result.returncode:
        raise SystemExit(f"The {language} edition was not built: see the lines above.")
    return output / "_build" / "html"


def entrance(languages: list[str]) -> str:
    """Return the page at the site's root, which leads to the reader's edition.

    With a script it follows the browser's languages; without one it goes to the
    first edition, and the links are there in any case.
    """
    first = languages[0]
    strings = catalogue(first)
    links = "".join(
        f'<li><a lang="{code}" hreflang="{code}" href="{code}/index.html">'
        f"{escape(catalogue(code)['language.name'])}</a></li>"
        for code in languages
    )
    site = address("BOOK_SITE_URL")
    canonical = (
        f'<link rel="canonical" href="{site}/{first}/index.html" />' if site else ""
    )
    alternates = "".join(
        f'<link rel="alternate" hreflang="{code}" href="{site}/{code}/index.html" />'
        for code in languages
        if site
    )
    html = f"""<!DOCTYPE html>
<html lang="{first}">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>{strings["page.title"]}: {strings["page.subtitle"]}</title>
    <meta name="description" content="{escape(strings["page.description"])}" />
    <link rel="icon" href="{first}/_static/favicon.svg" />
    {canonical}{alternates}
    <script>
      const editions = {json.dumps(languages)};
      const wanted = navigator.languages.map((tag) => tag.toLowerCase().split("-")[0]);
      const edition = wanted.find((code) => editions.includes(code)) ?? editions[0];
      location.replace(`${{edition}}/index.html${{location.hash}}`);
    </script>
    <noscript>
      <meta http-equiv="refresh" content="0; url={first}/index.html" />
    </noscript>
  </head>
  <body>
    <main>
      <h1>{strings["page.title"]}</h1>
      <p>{strings["page.editions_choose"]}</p>
      <ul>{links}</ul>
    </main>
  </body>
</html>
"""
    return protect(html, "index.html")


def not_found(html: str, language: str) -> str:
    """Return the 404 page for the site's root.

    A host shows it at addresses of any depth, so its links start at the root.
    """
    base = urlsplit(address("BOOK_SITE_URL")).path

    def absolute(match: re.Match) -> str:
        attribute, link = match.groups()
        if re.match(r"[a-z]+:|#|/", link):
            return match[0]
        if link.startswith("../"):
            return f'{attribute}="{base}/{link[3:]}"'
        return f'{attribute}="{base}/{language}/{link}"'

    return re.sub(r'\b(href|src|action)="([^"]*)"', absolute, html)


def write_addresses(site: Path) -> None:
    """Write robots.txt and sitemap.xml if it is known where the site will be."""
    url = address("BOOK_SITE_URL")
    if not url:
        return
    pages = [
        path.relative_to(site).as_posix()
        for path in sorted(site.glob("*/*.html"))
        if path.name not in ("404.html", "search.html") and path.parent.name != "lab"
    ]
    entries = "".join(f"<url><loc>{url}/{page}</loc></url>\n" for page in pages)
    (site / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{entries}</urlset>\n",
        "utf-8",
    )
    (site / "robots.txt").write_text(
        f"User-agent: *\nAllow: /\nSitemap: {url}/sitemap.xml\n", "utf-8"
    )


def replace(new: Path, old: Path) -> None:
    """Put the folder ``new`` where ``old`` is."""
    aside = old.with_name(old.name + ".old")
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--language", action="append", choices=editions())
    parser.add_argument("--output", type=Path, default=BUILD / "site")
    arguments = parser.parse_args()
    languages = arguments.language or editions()
    for language in languages:
        if language not in catalogues():
            raise SystemExit(f"book/{language} needs attnbook/locale/{language}.json.")
    output = arguments.output.resolve()
    staged = output.with_name(output.name + ".new")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    live = publish.available()
    for language in languages:
        shutil.copytree(build_edition(language, live), staged / language)
    if live:
        publish.write(staged, languages, commit_time())
        lab.write(staged, languages, commit_time())
    (staged / "index.html").write_text(entrance(languages), "utf-8")
    first = languages[0]
    page = (staged / first / "404.html").read_text("utf-8")
    (staged / "404.html").write_text(not_found(page, first), "utf-8")
    write_addresses(staged)
    replace(staged, output)
    print(f"The site is in {os.path.relpath(output)}.")
    if not live:
        print("It has no Python in its pages and no lab: live/fetch.py says why.")


if __name__ == "__main__":
    main()
