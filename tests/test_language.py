"""The catalogues: nothing is missing, nothing is left over."""

import importlib.util
import re
from pathlib import Path

import pytest

from attnbook.exercises import EXERCISES, Predict
from attnbook.language import catalogue, languages, set_language, translate

ROOT = Path(__file__).parents[1]
LOCALE = ROOT / "attnbook" / "locale"
ENGLISH = set(catalogue("en"))
ROOMS = ("page", "widget", "figure", "language", "live")

# A name in the source: "page.search", f"widget.scaling.{thing}", `widget.${w}.and`.
QUOTED = re.compile(
    rf"""(["'`])((?:{"|".join(ROOMS)})\.(?:[\w.]|\$?\{{[^{{}}]*\}})+)\1"""
)
PLACEHOLDER = re.compile(r"\$?\{[^{}]*\}")


def _sources() -> list[Path]:
    """Every file that may use a string, but for the exercises, which declare theirs."""
    patterns = (
        "attnbook/*.py",
        "attnbook/widgets/*.py",
        "attnbook/widgets/*.js",
        "book/_ext/*.py",
        "book/_templates/**/*.html",
        "book/assets/*.js",
        "figures/*.py",
        "live/*.py",
        "live/*.js",
        "tools/*.py",
    )
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def _needed_by(path: Path) -> tuple[set[str], set[str]]:
    """Return the ids that a file names, and those that it may build from parts.

    A helper such as ``say = lambda thing: translate(f"widget.scaling.{thing}")``
    names what it is called with: ``say("title")``, or may build
    ``say(f"step_{n}")``.
    """
    text = path.read_text("utf-8")
    named: set[str] = set()
    built: set[str] = set()
    if path.parent.name == "live":
        # The room has one helper, which its scripts hand to each other.
        for word in re.findall(r"""\bsay\(\s*["'`]([^"'`]+)["'`]""", text, re.I):
            if PLACEHOLDER.search(word):
                built |= _fits(f"live.{word}")
            else:
                named.add(f"live.{word}")
        words = re.findall(r"""["'`](\w+)["'`]""", text)
        built |= {f"live.{word}" for word in words} & ENGLISH
    for match in QUOTED.finditer(text):
        string = match[2]
        if string.endswith((".", ".html", ".js", ".css", ".py")):
            continue  # a prefix or a file
        if not PLACEHOLDER.search(string):
            named.add(string)
            continue
        prefix, *rest = PLACEHOLDER.split(string)
        if rest != [""]:
            built |= _fits(string)
            continue
        helper = re.findall(r"(?:def|const|function) (\w+)", text[: match.start()])[-1]
        call = rf"""\b{helper}\(\s*f?(["'`])((?:[\w.]|\$?\{{[^{{}}]*\}})+)\1"""
        for _, word in re.findall(call, text):
            if PLACEHOLDER.search(word):
                built |= _fits(prefix + word)
            else:
                named.add(prefix + word)
        # What is chosen before it is said stands in quotes elsewhere in the file.
        words = re.findall(r"""["'`]([\w.]+)["'`]""", text)
        built |= {prefix + word for word in words} & ENGLISH
    return named, built


def _fits(string: str) -> set[str]:
    """Return the ids that a string with placeholders can become."""
    pattern = re.compile(r"\w+".join(map(re.escape, PLACEHOLDER.split(string))))
    return {i for i in ENGLISH if pattern.fullmatch(i)}


def _needed_by_exercises() -> set[str]:
    ids: set[str] = set()
    for name, exercise in EXERCISES.items():
        ids |= {f"exercise.{name}.{mistake}" for mistake in exercise.mistakes}
        if isinstance(exercise, Predict):
            ids.add(f"exercise.{name}.right")
        ids.add(f"exercise.chapter.{exercise.chapter}")
        sections = {exercise.reread, *exercise.sections.values()}
        ids |= {f"exercise.section.{section}" for section in sections}
    for path in sorted((ROOT / "attnbook" / "exercises").glob("_*.py")):
        text = path.read_text("utf-8")
        ids |= set(re.findall(r"""["'](exercise\.[\w.]+)["']""", text))
        for word in re.findall(r"""(?<!\.)\bsay\(\s*f?"([^"]+)\"""", text):
            if "{" not in word:
                ids.add(f"exercise.check.{word}")
        # What is chosen before it is said.
        for word in re.findall(r'"((?:needs|too)_\w+)"', text):
            ids.add(f"exercise.check.{word}")
        for reason in re.findall(r'NoSource\("(\w+)"', text):
            ids.add(f"exercise.check.not_kept.{reason}")
    for reason in ("exception", "recursion", "exit", "input", "output", "time"):
        ids.add(f"exercise.check.stopped.{reason}")
    return ids


def test_no_string_of_the_source_is_missing():
    missing = {
        f"{path.relative_to(ROOT)}: {string}"
        for path in _sources()
        for string in _needed_by(path)[0] - ENGLISH
    }
    assert not missing


def test_no_string_of_the_exercises_is_missing_or_unused():
    own = {i for i in ENGLISH if i.startswith("exercise.")}
    needed = _needed_by_exercises()
    assert not needed - own
    assert not own - needed


def test_no_string_is_unused():
    used = {i for path in _sources() for part in _needed_by(path) for i in part}
    unused = {i for i in ENGLISH if i.split(".")[0] in ROOMS} - used
    assert not unused


def test_every_string_belongs_to_a_room():
    assert {i.split(".")[0] for i in ENGLISH} <= {*ROOMS, "exercise"}


@pytest.fixture(scope="module")
def tool():
    place = ROOT / "tools" / "catalogues.py"
    spec = importlib.util.spec_from_file_location("catalogues", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("po", sorted(LOCALE.glob("*.po")), ids=lambda path: path.stem)
def test_the_json_is_what_the_tool_writes(tool, po):
    assert po.with_suffix(".json").read_text("utf-8") == tool.as_json(po)


@pytest.mark.parametrize("code", languages())
def test_a_translation_has_the_ids_and_the_placeholders_of_the_english(code):
    for string, text in catalogue(code).items():
        assert string in ENGLISH
        fields = set(re.findall(r"\{(\w+)\}", text))
        assert fields == set(re.findall(r"\{(\w+)\}", catalogue("en")[string])), string


def test_an_unknown_language_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="known languages: en"):
        set_language("tlh")


def test_an_unknown_string_is_refused():
    with pytest.raises(KeyError):
        translate("page.nonsense")
