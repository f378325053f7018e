"""The lab: JupyterLite with every notebook of the book, on the pages' own Pyodide.

It is laid into ``lab/`` of the built site. JupyterLab needs to make code from text, so
the lab has a policy of its own, laxer than that of the pages: still no other host.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from book_download import absolute_links
from book_pages import address
from book_policy import script_hashes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
KERNELSPEC = {"display_name": "Python", "language": "python", "name": "python"}


def write(site: Path, languages: list[str], time: str) -> None:
    """Lay ``lab/`` into the site, from what its pages were built from.

    ``time`` stamps its files.

    Raises ``ValueError`` if the lab would take its Python from anywhere else.
    """
    with tempfile.TemporaryDirectory() as folder:
        # A folder of its own each time: a stale state once dropped the local Pyodide.
        contents = Path(folder) / "contents"
        for language in languages:
            figures = contents / language / "figures"
            figures.mkdir(parents=True)
            source = ROOT / "_build" / "src" / language
            for path in sorted(source.glob("*.ipynb")):
                text = adapted(path.read_text("utf-8"), language)
                (contents / language / path.name).write_text(text, "utf-8")
            for path in sorted((source / "figures").glob("*.svg")):
                if ".dark." not in path.name:
                    shutil.copy(path, figures)
        settings = Path(folder) / "lite"
        settings.mkdir()
        text = (HERE / "jupyter-lite.json").read_text("utf-8")
        (settings / "jupyter-lite.json").write_text(text, "utf-8")
        command = "from jupyterlite_core.app import main; main()"
        subprocess.run(
            [sys.executable, "-c", command, "build", "--apps", "lab"]
            + ["--lite-dir", str(settings), "--contents", str(contents)]
            + ["--output-dir", str(site / "lab"), "--source-date-epoch", time]
            + ["--no-sourcemaps", "--no-unused-shared-packages", "--no-libarchive"],
            env={**os.environ, "SOURCE_DATE_EPOCH": time, "NO_COLOR": "1"},
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    check_python(site / "lab")
    for path in sorted((site / "lab").rglob("*.html")):
        path.write_text(protected(path.read_text("utf-8")), "utf-8")


def adapted(notebook: str, language: str) -> str:
    """Return a gathered notebook's text for the lab.

    The kernel has another name there, and the pages that it links to are elsewhere.
    """
    site = address("BOOK_SITE_URL")
    content = nbformat.reads(notebook, as_version=4)
    content.metadata.kernelspec = KERNELSPEC
    for cell in content.cells:
        cell.source = absolute_links(cell.source, site and f"{site}/{language}")
    # Not by nbformat: it would cut texts into lists of lines, on which the lab trips.
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def check_python(lab: Path) -> None:
    """Raise ``ValueError`` unless the lab takes Pyodide from beside itself."""
    config = json.loads((lab / "jupyter-lite.json").read_text("utf-8"))
    settings = config["jupyter-config-data"]["litePluginSettings"][KERNEL]
    found = settings.get("pyodideUrl", "")
    # Only an address that starts so is read as relative to the lab.
    local = found.startswith("./")
    local &= (lab / found).resolve() == (
        lab / ".." / "pyodide" / "pyodide.js"
    ).resolve()
    if not local or not settings.get("disablePyPIFallback"):
        raise ValueError(f"the lab would take its Python from {found or 'elsewhere'}")


def protected(html: str) -> str:
    """Return a page of the lab with its policy before anything that it governs."""
    scripts = ["'self'", "blob:", *script_hashes(html), "'unsafe-eval'"]
    policy = "; ".join(
        [
            "default-src 'none'",
            # JupyterLab compiles templates and schemas; widgets are modules from blobs.
            f"script-src {' '.join(scripts)}",
            "worker-src 'self' blob:",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self' data: blob:",
            "frame-src 'self' blob: data:",
            "manifest-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
        ]
    )
    charset = '<meta charset="utf-8" />'
    html = re.sub(r'[ \t]*<meta charset="utf-8" ?/?>\n?', "", html)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    return html.replace("<head>", f"<head>\n    {charset}\n    {meta}", 1)
