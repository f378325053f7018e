"""Lay Python for the pages into the built site: ``pyodide/`` and ``live/``.

``live/`` holds the scripts of the pages, one file of cells for each chapter
(``live/en/01_qkv.json``), and one ``start.<language>.js`` for each edition, the only
one of them that a page loads before a button is pressed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import fetch
from book_math import node_binary

from attnbook.language import catalogue

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "live"
MODULES = ROOT / "node_modules"
# What the pages' Python loads first, and what it loads for the first plot.
FIRST = ("numpy", "traitlets", "attnbook")
PLOTS = ("matplotlib",)
# Tags of cells that a page cannot run: what the page says instead.
NOT_HERE = {"page-too-long": "too_long", "page-needs-kernel": "needs_kernel"}


def available() -> bool:
    """Say whether every file is there that Python in the pages needs."""
    try:
        return fetch.complete() and (MODULES / "esbuild").is_dir()
    except fetch.Unavailable:
        return False


def write(site: Path, languages: list[str], time: str) -> None:
    """Lay ``pyodide/`` and ``live/`` into the site; ``time`` stamps our own wheel."""
    with tempfile.TemporaryDirectory() as folder:
        fetch.assemble(site / "pyodide", build_wheel(Path(folder), time))
    live = site / "live"
    live.mkdir()
    for name in ("worker.js", "page.py", "live.css"):
        shutil.copy(HERE / name, live)
    bundle(live)
    sizes = megabytes(site / "pyodide")
    for language in languages:
        (live / f"start.{language}.js").write_text(start(language), "utf-8")
        (live / language).mkdir()
        for path in sorted((ROOT / "notebooks" / language).glob("*.ipynb")):
            notebook = json.loads(path.read_text("utf-8"))
            about = {"cells": cells(notebook), "sizes": sizes}
            text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
            (live / language / f"{path.stem}.json").write_text(text, "utf-8")


def build_wheel(folder: Path, time: str) -> Path:
    """Build attnbook as a wheel, the same bytes for the same source."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    shutil.copytree(ROOT / "attnbook", source / "attnbook", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for path in source.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command += ["--wheel-dir", str(folder), str(source)]
    subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": time}, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def bundle(out: Path) -> None:
    """Make one file of each script, and one of the licences of what is in them."""
    esbuild = [node_binary(), str(MODULES / "esbuild" / "bin" / "esbuild")]
    about = out / "about.json"
    command = [*esbuild, "runner.js", "editor.js", "--bundle", "--format=esm"]
    command += ["--minify", "--target=es2022", "--log-level=warning"]
    command += [f"--outdir={out}", f"--metafile={about}"]
    subprocess.run(command, cwd=HERE, check=True)
    inputs = json.loads(about.read_text("utf-8"))["inputs"]
    about.unlink()
    packages = {
        (HERE / name).resolve().relative_to(MODULES.resolve()).parts
        for name in inputs
        if "node_modules/" in name
    }
    folders = {"/".join(p[: 2 if p[0].startswith("@") else 1]) for p in packages}
    texts = [
        f"{name}\n\n{(MODULES / name / 'LICENSE').read_text('utf-8').strip()}\n"
        for name in sorted(folders)
    ]
    (out / "licences.txt").write_text("\n\n".join(texts), "utf-8")


def start(language: str) -> str:
    """Return the script that the pages of an edition load."""
    strings = {
        name: text
        for name, text in sorted(catalogue(language).items())
        if name.startswith("live.")
    }
    written = json.dumps(strings, ensure_ascii=False, separators=(",", ":"))
    return f"const STRINGS = {written};\n{(HERE / 'start.js').read_text('utf-8')}"


def megabytes(pyodide: Path) -> dict[str, str]:
    """Return what is loaded for the first run, for the first plot, and for the lab."""
    lock = pyodide / fetch.PAGE_LOCK
    packages = json.loads(lock.read_text("utf-8"))["packages"]

    def size(files) -> int:
        return sum((pyodide / file).stat().st_size for file in files)

    first = set(fetch.closure(packages, FIRST))
    plots = set(fetch.closure(packages, PLOTS)) - first
    runtime = size([*fetch.RUNTIME, lock.name])
    python = runtime + size(packages[name]["file_name"] for name in first)
    more = size(packages[name]["file_name"] for name in plots)
    return {"python": f"{python / 1e6:.0f}", "plots": f"{more / 1e6:.0f}"}


# What JupyterLab itself loads, besides Python: measured with benchmarks/run_python.py.
LAB_SCRIPTS = 10_000_000


def lab_megabytes() -> str:
    """Return about how much the lab loads until the first cell has run."""
    python = sum((fetch.NPM / file).stat().st_size for file in fetch.RUNTIME)
    wheels = sum((fetch.CACHE / file).stat().st_size for file in fetch.wanted())
    return f"{(python + wheels + LAB_SCRIPTS) / 1e6:.0f}"


def cells(notebook: dict) -> list[dict]:
    """Return what the pages' Python must know of a notebook's code cells.

    An exercise's cell needs what its metadata name, and has names of its own
    (``space``); any other needs all others above it that a page can run.
    """
    found, above = [], []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        marked = cell["metadata"].get("attnbook", {})
        about = {"id": cell["id"], "source": "".join(cell["source"])}
        if "exercise" in marked:
            about |= {"space": marked["exercise"], "needs": marked["needs"]}
        else:
            about |= {"space": "", "needs": list(above)}
            if not_here(cell) is None:
                above.append(cell["id"])
        found.append(about)
    return found


def not_here(cell: dict) -> str | None:
    """Return why a page cannot run a cell, by the name of the sentence; else None."""
    tags = cell["metadata"].get("tags", [])
    return next((why for tag, why in NOT_HERE.items() if tag in tags), None)
