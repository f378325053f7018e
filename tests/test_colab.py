"""The copies for Colab: the setup cell installs, and nothing points at a folder."""

import os
import re
import subprocess
import sys

import colab
import nbformat
import pytest
from conftest import ROOT

REPOSITORY = "https://github.com/someone/who-looks"


def write(folder, **environment) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")}
    return subprocess.run(
        [sys.executable, "tools/colab.py", str(folder)],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        encoding="utf-8",
    )


def without_links(source: str) -> str:
    """Return a cell's text with the targets of its Markdown links left out."""
    return re.sub(r"\]\([^)\s]*\)", "]()", source)


def test_every_copy_installs_the_package_first_and_needs_no_folder(tmp_path):
    site = "https://someone.example/who-looks"
    addresses = {"BOOK_REPO_URL": REPOSITORY, "BOOK_SITE_URL": site}
    done = write(tmp_path / "out", BOOK_REPO_BRANCH="stable", **addresses)
    assert done.returncode == 0, done.stderr
    copies = sorted((tmp_path / "out" / "notebooks" / "en").glob("*.ipynb"))
    chapters = sorted((ROOT / "notebooks" / "en").glob("[0-9]*.ipynb"))
    assert [path.name for path in copies] == [path.name for path in chapters]
    for copy, chapter in zip(copies, chapters, strict=True):
        new, old = (nbformat.read(path, as_version=4) for path in (copy, chapter))
        nbformat.validate(new)
        for mine, theirs in zip(new.cells, old.cells, strict=True):
            assert mine.id == theirs.id
            assert "](figures/" not in mine.source
            assert "](../" not in mine.source
            assert ".md#" not in mine.source
            if mine.id == "setup":
                first, rest = mine.source.split("\n\n", 1)
                assert first == f"%pip install --quiet git+{REPOSITORY}@stable"
                assert rest.splitlines()[-1] == theirs.source.splitlines()[-1]
            elif mine.cell_type == "code":
                assert without_links(mine.source) == without_links(theirs.source)


def test_without_the_repository_s_address_it_says_what_is_missing(tmp_path):
    done = write(tmp_path / "out")
    assert done.returncode == 1
    assert "BOOK_REPO_URL is not set" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_notebook_without_a_setup_cell_is_refused():
    with pytest.raises(ValueError, match="no setup cell"):
        colab.filled({"cells": []}, REPOSITORY, "main")
