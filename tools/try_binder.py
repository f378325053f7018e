"""Try the Binder image's environment: install it, open every notebook in JupyterLab.

Usage: python tools/try_binder.py [notebooks/en/01_qkv.ipynb …]

A fresh virtual environment in a temporary folder gets what binder/ names and nothing
else, from a clone of the last commit. JupyterLab runs there, and a browser opens every
notebook, runs all its cells, and moves a widget's control. An error, or an output that
is missing, ends it with exit code 1.
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from serving import browser_options  # noqa: E402 (after the path)

RUN_ALL = """async () => {
  const pause = () => new Promise((done) => setTimeout(done, 100));
  const panel = () => globalThis.jupyterapp?.shell.currentWidget;
  while (panel()?.sessionContext?.session?.kernel?.status !== "idle") await pause();
  await panel().context.ready;
  const cells = panel().content.widgets.filter((cell) => cell.model.type === "code");
  for (const cell of cells) cell.model.outputs.clear();
  await jupyterapp.commands.execute("notebook:run-all-cells");
  return cells.map((cell) => ({
    id: cell.model.sharedModel.getId(),
    count: cell.model.executionCount,
    outputs: cell.model.outputs.toJSON(),
  }));
}"""
SHOW = """async (id) => {
  const { content } = jupyterapp.shell.currentWidget;
  const place = content.widgets.findIndex((c) => c.model.sharedModel.getId() === id);
  content.activeCellIndex = place;
  await content.scrollToItem(place, "center");
}"""


def environment(folder: Path) -> Path:
    """Do what Binder does with binder/; return the clone's folder."""
    clone = folder / "book"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    pip = [folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check"]
    locked = [
        "--require-hashes",
        "--requirement",
        clone / "binder" / "requirements.txt",
    ]
    subprocess.run([*pip, *locked], check=True)
    # What building a package from source needs; repo2docker's base has it.
    subprocess.run([*pip, "setuptools==80.9.0"], check=True)
    path = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["bash", "binder/postBuild"],
        cwd=clone,
        env={**os.environ, "PATH": path},
        check=True,
    )
    return clone


def start_lab(folder: Path, clone: Path) -> tuple[subprocess.Popen, str]:
    """Start JupyterLab of the new environment; return it and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [folder / "env" / "bin" / "jupyter", "lab", "--no-browser"]
    command += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"]
    command += ["--ServerApp.ip=127.0.0.1", "--LabApp.expose_app_in_browser=True"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    settings = {"ATTNBOOK_WORK": "off", "JUPYTER_CONFIG_DIR": str(folder / "config")}
    server = subprocess.Popen(
        command,
        cwd=clone,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=2).close()
            return server, f"{address}/lab/tree/{{path}}?token={token}&reset"
        except OSError:
            time.sleep(0.2)
    server.terminate()
    raise SystemExit("JupyterLab did not start.")


def faults(cells: list[dict]) -> list[str]:
    """Say what is wrong with the cells of a notebook that was run."""
    found = []
    for place, cell in enumerate(cells, start=1):
        if cell["count"] != place:
            found.append(f"{cell['id']} has count {cell['count']}, needed {place}")
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found.append(f"{cell['id']}: {output['ename']}: {output['evalue']}")
    return found


def move_widget(page: Page, cells: list[dict]) -> str:
    """Move the first control of the notebook's first widget; say what came of it."""
    view = "application/vnd.jupyter.widget-view+json"
    widgets = [
        cell["id"]
        for cell in cells
        if any(view in output.get("data", {}) for output in cell["outputs"])
        and any("attn-widget" in str(output) for output in cell["outputs"])
    ]
    if not widgets:
        return "no widget"
    page.evaluate(SHOW, widgets[0])
    root = page.locator(".attn-root").first
    root.wait_for(timeout=30_000)
    before = root.inner_text()
    for control in root.locator("input[type=range], input[type=radio], select").all():
        control.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(500)
        if root.inner_text() != before:
            return f"the widget of {widgets[0]} moves"
    raise SystemExit(f"The widget of {widgets[0]} does not move.")


def main() -> int:
    paths = sys.argv[1:] or [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("notebooks/*/[0-9]*.ipynb"))
    ]
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        clone = environment(folder)
        print(f"the environment took {time.perf_counter() - start:.0f} s", flush=True)
        server, address = start_lab(folder, clone)
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(**browser_options())
                for path in paths:
                    page = browser.new_page(viewport={"width": 1300, "height": 900})
                    page.goto(address.format(path=path))
                    cells = page.evaluate(RUN_ALL)
                    found = faults(cells)
                    wrong += len(found)
                    said = "; ".join(found) or move_widget(page, cells)
                    print(f"{path}: {len(cells)} cells, {said}", flush=True)
                    page.close()
                browser.close()
        finally:
            server.terminate()
            server.wait()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
