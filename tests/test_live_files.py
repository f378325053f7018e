"""What the pages' Python is made of: whose files, by which hashes, and what it runs."""

import json
import symtable
import zipfile
from pathlib import Path

import fetch
import publish
import pytest
from conftest import ROOT


@pytest.fixture
def cache(live, tmp_path) -> Path:
    """A cache like the real one, whose files a test may replace."""
    for path in fetch.CACHE.glob("*"):
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def test_every_file_is_the_one_that_a_lock_names(live):
    folder = live / "pyodide"
    official = fetch.wanted()
    lock = json.loads((folder / fetch.LOCK).read_text("utf-8"))["packages"]
    found = {path.name for path in folder.iterdir()}
    named = {entry["file_name"] for entry in lock.values()}
    assert found == {*fetch.RUNTIME, fetch.LOCK, fetch.PAGE_LOCK, *named}
    for entry in lock.values():
        digest = fetch.sha256((folder / entry["file_name"]).read_bytes())
        assert digest == entry["sha256"], entry["name"]
    for file, digest in official.items():
        assert fetch.intact(folder / file, digest)
    own = {entry["sha256"] for entry in lock.values()} - set(official.values())
    attnbook = lock["attnbook"]["sha256"]
    assert own == {*fetch.own_wheels().values(), attnbook}
    for file in fetch.RUNTIME:
        assert (folder / file).read_bytes() == (fetch.NPM / file).read_bytes()


def test_the_pages_know_no_more_than_they_use(live):
    lock = json.loads((live / "pyodide" / fetch.PAGE_LOCK).read_text("utf-8"))
    names = set(lock["packages"])
    assert {"numpy", "traitlets", "matplotlib", "attnbook"} <= names
    assert not {"ipython", "ipywidgets", "micropip"} & names
    assert lock["packages"]["attnbook"]["depends"] == []


def test_our_wheel_brings_all_its_data(live):
    (wheel,) = (live / "pyodide").glob("attnbook-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    needed = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.mplstyle", "data/*", "locale/*.json", "widgets/*.js")
        for path in (ROOT / "attnbook").glob(pattern)
    }
    assert needed <= names
    assert not any(name.endswith(".so") for name in names)


def test_an_altered_file_in_the_cache_is_refused(cache, tmp_path):
    assert fetch.faults(cache) == []
    (numpy,) = cache.glob("numpy-*.whl")
    data = bytearray(numpy.read_bytes())
    numpy.unlink()
    data[1000] ^= 1
    numpy.write_bytes(data)
    assert fetch.faults(cache) == [numpy.name]
    with pytest.raises(fetch.Unavailable, match="numpy"):
        fetch.assemble(tmp_path / "out", cache=cache)
    assert not (tmp_path / "out").exists()


def test_a_source_with_other_bytes_is_not_believed(cache, monkeypatch):
    (numpy,) = cache.glob("numpy-*.whl")
    numpy.unlink()

    def liar():
        yield lambda file: b"something else"

    monkeypatch.setattr(fetch, "_sources", lambda: [liar])
    with pytest.raises(fetch.Unavailable, match="has other bytes than the lock says"):
        fetch.fetch(cache)
    assert not numpy.exists()

    def honest():
        yield lambda file: (fetch.CACHE / file).read_bytes()

    monkeypatch.setattr(fetch, "_sources", lambda: [liar, honest])
    fetch.fetch(cache)
    assert fetch.complete(cache)


def test_another_pyodide_is_refused(monkeypatch, tmp_path):
    (tmp_path / "package.json").write_text('{"version": "0.28.0"}')
    monkeypatch.setattr(fetch, "NPM", tmp_path)
    fetch.official.cache_clear()
    try:
        with pytest.raises(fetch.Unavailable, match=r"0\.28\.0, 0\.27\.7 is needed"):
            fetch.official()
    finally:
        fetch.official.cache_clear()


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("notebooks/*/[0-9]*.ipynb")), ids=lambda path: path.stem
)
def test_no_cell_that_runs_in_the_page_needs_one_that_does_not(path):
    notebook = json.loads(path.read_text("utf-8"))
    origin: dict[str, str | None] = {}  # of each name, why its cell cannot run here
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code" or "attnbook" in cell["metadata"]:
            continue
        why = publish.not_here(cell)
        module = symtable.symtable("".join(cell["source"]), cell["id"], "exec")
        given = {s.get_name() for s in module.get_symbols() if s.is_assigned()}
        for name in global_names(module) - given:
            assert why or origin.get(name) is None, (cell["id"], name)
        origin |= dict.fromkeys(given, why)


def global_names(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a cell, or a function in it, looks up outside itself."""
    top = table.get_type() == "module"
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (top or symbol.is_global())
    }
    return found.union(*map(global_names, table.get_children()))


def test_cells_know_what_they_need():
    path = ROOT / "notebooks" / "en" / "01_qkv.ipynb"
    cells = publish.cells(json.loads(path.read_text("utf-8")))
    about = {cell["id"]: cell for cell in cells}
    assert about["words"]["needs"] == ["setup"]
    assert about["softmax-check"]["needs"] == ["setup", "softmax-stub"]
    assert about["softmax-check"]["space"] == "softmax"
    # An exercise's names stay its own.
    assert "softmax-stub" not in {
        n for c in cells if not c["space"] for n in c["needs"]
    }
