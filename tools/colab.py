"""Write copies of the notebooks for Colab, whose setup cell installs the package.

Usage: python tools/colab.py _build/colab

Colab opens a notebook by itself, without the repository around it. BOOK_REPO_URL and
BOOK_REPO_BRANCH say where the package is, BOOK_SITE_URL where the pages are.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from book_download import portable  # noqa: E402 (after the path of _ext)
from book_pages import address, editions  # noqa: E402
from build import gathered  # noqa: E402


def filled(notebook: dict, repository: str, revision: str) -> dict:
    """Return the notebook with the install command in its setup cell, in place.

    Raises ``ValueError`` if it has no setup cell.
    """
    for cell in notebook["cells"]:
        if cell.get("id") == "setup":
            command = f"%pip install --quiet git+{repository}@{revision}\n\n"
            cell["source"] = command + "".join(cell["source"])
            cell["outputs"], cell["execution_count"] = [], None
            return notebook
    raise ValueError("the notebook has no setup cell")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/colab.py FOLDER")
    repository = address("BOOK_REPO_URL").removesuffix(".git")
    if not repository:
        raise SystemExit("BOOK_REPO_URL is not set: nobody could install the package.")
    revision = os.environ.get("BOOK_REPO_BRANCH") or "main"
    site = address("BOOK_SITE_URL")
    for language in editions():
        folder = Path(sys.argv[1]) / "notebooks" / language
        folder.mkdir(parents=True)
        for path in sorted((ROOT / "notebooks" / language).glob("*.ipynb")):
            notebook = portable(
                json.loads(gathered(path, language)),
                ROOT / "figures",
                f"{site}/{language}" if site else "",
            )
            text = json.dumps(
                filled(notebook, repository, revision), ensure_ascii=False, indent=1
            )
            (folder / path.name).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
