"""The whole book as one archive that opens offline through one command."""

import os
import re
import subprocess
import sys
import urllib.request
import zipfile

import pack
import pytest


@pytest.fixture
def small_site(tmp_path):
    site = tmp_path / "site"
    (site / "en").mkdir(parents=True)
    (site / "index.html").write_text("the entrance")
    (site / "404.html").write_text("not here")
    (site / "en" / "index.html").write_text("the book " * 500)
    return site


@pytest.fixture
def archive(small_site, tmp_path):
    pack.pack(small_site, tmp_path / "book.zip")
    return tmp_path / "book.zip"


def test_the_same_site_gives_the_same_bytes(small_site, archive, tmp_path):
    os.utime(small_site / "index.html", (0, 0))
    pack.pack(small_site, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_an_archive_that_was_published_is_not_packed_again(small_site, tmp_path):
    (small_site / pack.PUBLISHED).write_bytes(b"an older archive")
    pack.pack(small_site, tmp_path / "book.zip")
    with zipfile.ZipFile(tmp_path / "book.zip") as packed:
        assert not [name for name in packed.namelist() if name.endswith(".zip")]


def test_a_site_that_is_not_built_is_said_to_be_missing(tmp_path):
    with pytest.raises(SystemExit, match="run make book first"):
        pack.pack(tmp_path, tmp_path / "book.zip")


def test_what_is_unpacked_opens_through_one_command(archive, tmp_path):
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "elsewhere")
    process = subprocess.Popen(
        [sys.executable, "-I", "elsewhere/who-looks-at-whom/serve.py"],
        cwd=tmp_path,
        # It opens a browser; here that is a program that does nothing.
        env={"PATH": os.environ["PATH"], "BROWSER": "true"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = re.search(r"http://[\d.:]+/", process.stdout.readline())[0]
        with urllib.request.urlopen(address + "en/index.html") as answer:
            assert answer.read().decode().startswith("the book")
    finally:
        process.kill()
        process.communicate()
