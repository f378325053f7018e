"""The project's own files agree with each other."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import matplotlib as mpl
import matplotlib.colors
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from attnbook import palette

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pinned(path: str) -> dict[str, Version]:
    """Return the versions that a compiled requirements file pins here."""
    text = (ROOT / path).read_text("utf-8")
    lines = re.findall(r"(?m)^([A-Za-z0-9].*?) *\\?$", text)
    return {
        canonicalize_name(found.name): Version(str(found.specifier).removeprefix("=="))
        for found in map(Requirement, lines)
        if not found.marker or found.marker.evaluate()
    }


def direct(*extras: str) -> list[Requirement]:
    listed = [*PROJECT["dependencies"], *chain.from_iterable(map(EXTRAS.get, extras))]
    return [Requirement(requirement) for requirement in listed]


def needed(requirements: list[Requirement]) -> set[str]:
    """Return the names that ``requirements`` pull in, by what is installed."""
    todo, seen = list(requirements), set()
    while todo:
        requirement = todo.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            listed = metadata.requires(requirement.name) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform than this one
        environments = [{"extra": extra} for extra in {"", *requirement.extras}]
        todo += [
            child
            for child in map(Requirement, listed)
            if not child.marker or any(map(child.marker.evaluate, environments))
        ]
    return {name for name, _ in seen}


def test_the_full_set_is_compiled_from_pyproject():
    versions = pinned("requirements.txt")
    for requirement in direct(*EXTRAS):
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name}: run make requirements"
        assert requirement.specifier.contains(versions[name]), name


def test_nothing_is_pinned_that_nothing_needs():
    wanted = needed(direct(*EXTRAS))
    installed = {
        canonicalize_name(d.metadata["Name"]) for d in metadata.distributions()
    }
    left_over = (set(pinned("requirements.txt")) & installed) - wanted
    assert not left_over


def test_binder_has_the_slim_part_of_the_same_set():
    full, slim = pinned("requirements.txt"), pinned("binder/requirements.txt")
    for requirement in direct("lab"):
        assert canonicalize_name(requirement.name) in slim
    assert slim.items() <= full.items()
    for name in ("sphinx", "jupyter-book", "playwright", "onnx", "pytest"):
        assert name not in slim


def test_what_is_installed_is_what_is_pinned():
    for name, version in pinned("requirements.txt").items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # for another platform than this one
        assert Version(found) == version, name


def test_every_requirement_has_hashes():
    for path in ("requirements.txt", "binder/requirements.txt"):
        text = (ROOT / path).read_text("utf-8")
        for block in re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]:
            assert "--hash=sha256:" in block, block.splitlines()[0]


def test_every_direct_dependency_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for requirement in direct(*EXTRAS):
        start = f'    "{requirement.name}'
        line = next(line for line in text.splitlines() if line.startswith(start))
        assert re.search(r"# \w.{10,}", line), requirement


def test_the_weekly_trial_lets_go_of_every_pin_but_those_of_the_pages():
    command = [sys.executable, "tools/newest.py"]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    tried = {r.name: r.specifier for r in map(Requirement, printed.split())}
    assert tried.keys() == {r.name for r in direct(*EXTRAS)}
    kept = {"jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme", "onnx"}
    for requirement in direct(*EXTRAS):
        operators = {specifier.operator for specifier in tried[requirement.name]}
        assert operators == ({"=="} if requirement.name in kept else {">="})
        # What is pinned is the oldest that is tried.
        versions = {specifier.version for specifier in requirement.specifier}
        assert versions == {s.version for s in tried[requirement.name]}


@pytest.mark.parametrize("module", ["ops", "exercises", "widgets"])
def test_importing_the_library_says_nothing(module):
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", f"import attnbook.{module}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_npm_packages_are_held_by_integrity_and_name_no_host():
    text = (ROOT / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in text
    assert text.count('"integrity": "sha512-') == text.count('"node_modules/')


def test_the_project_speaks_of_itself_only():
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    forbidden = re.compile(
        "|".join(
            ("/wo" + "rk/", "/ro" + "ot/", "regis" + "try.npmjs", "pypi" + r"\.org")
        )
    )
    for name in filter(None, files.split("\0")):
        path = ROOT / name
        if path.suffix in (".png", ".woff2", ".ico", ".npz") or not path.exists():
            continue
        if path == Path(__file__).resolve():
            continue
        for line in path.read_text("utf-8").splitlines():
            found = forbidden.search(line) if len(line) < 2000 else None
            assert not found, f"{name}: {line.strip()[:120]}"


# The book's colours.


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_read_on_page_and_surface():
    for theme in (palette.LIGHT, palette.DARK):
        for name in ("query", "key", "value", "weight", "output", "ink", "muted"):
            for ground in ("page", "surface"):
                assert contrast(theme[name], theme[ground]) >= 4.5, (name, ground)


def test_both_themes_name_the_same_colours():
    assert list(palette.LIGHT) == list(palette.DARK)
    for name, colour in (*palette.LIGHT.items(), *palette.DARK.items()):
        assert re.fullmatch("#[0-9a-f]{6}", colour)
        assert f"--attn-{name}: {colour};" in palette.css()


def test_plots_use_the_book_s_colours():
    style = mpl.rc_params_from_file(
        ROOT / "attnbook" / "book.mplstyle", use_default_template=False
    )
    cycle = [colour for colour in style["axes.prop_cycle"].by_key()["color"]]
    roles = ("query", "key", "value", "weight", "output")
    assert cycle == [palette.LIGHT[role] for role in roles]
    hues = [style[name] for name in ("text.color", "axes.edgecolor", "grid.color")]
    known = [palette.LIGHT[name] for name in ("ink", "muted", "line")]
    assert [mpl.colors.to_hex(hue) for hue in hues] == known
