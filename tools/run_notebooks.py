"""Execute every notebook from a fresh kernel and store its outputs, cleaned.

Cleaned means: no timings, no widget state and no widget views (their ids are
random), so that a second run writes the same bytes.

    python tools/run_notebooks.py [notebooks/en/01_qkv.ipynb …]
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebooks() -> list[Path]:
    """Return every notebook of the book, in order."""
    return sorted(ROOT.glob("notebooks/*/[0-9]*.ipynb"))


def clean(notebook: nbformat.NotebookNode) -> None:
    """Take out, in place, whatever differs from one run to the next."""
    notebook.metadata.clear()
    notebook.metadata.update(kernelspec=KERNEL, language_info={"name": "python"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)


def run(path: Path) -> str:
    """Return the text of the notebook, executed in its own folder and cleaned."""
    notebook = nbformat.read(path, as_version=4)
    # A reader's kept answers must not change what is published.
    os.environ["ATTNBOOK_WORK"] = "off"
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        # A busy machine sends what is printed in more pieces than an idle one.
        coalesce_streams=True,
        # Kept during the run, where interact() needs it, and cleaned out after.
        store_widget_state=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    clean(notebook)
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    for path in [Path(argument).resolve() for argument in sys.argv[1:]] or notebooks():
        start = time.perf_counter()
        text = run(path)
        path.write_text(text, "utf-8")
        print(f"{path.relative_to(ROOT)}  {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
