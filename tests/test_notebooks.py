"""What nbval cannot see in a notebook, and that nbval sees what it should."""

import ast
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import run_notebooks  # noqa: E402 (after the path of tools)

PATHS = run_notebooks.notebooks()
PLOT_TYPES = ("image/png", "image/jpeg")
MACHINE_PATHS = re.compile(r"/(home|root|Users|tmp|work)/|site-packages|[A-Z]:\\")

SETUP = """\
try:
    import attnbook
except ModuleNotFoundError:
    raise SystemExit(
        "attnbook is missing. In a copy of the book: %pip install ../.."
    ) from None
"""

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def ends_in_an_expression(cell) -> bool:
    """Whether the last statement shows a value (one ended by ; does not)."""
    body = ast.parse(cell.source).body
    return (
        bool(body)
        and isinstance(body[-1], ast.Expr)
        and not cell.source.rstrip().endswith(";")
    )


def test_there_are_notebooks():
    assert [path.stem for path in PATHS if path.parent.name == "en"]


@each_notebook
def test_it_is_a_valid_notebook(path):
    nbformat.validate(read(path))


@each_notebook
def test_every_code_cell_was_executed_in_order(path):
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_outputs_are_stored_where_a_cell_shows_something(path):
    for cell in code_cells(read(path)):
        shows = ends_in_an_expression(cell) or "print(" in cell.source
        if shows and not cell.source.rstrip().endswith("plt.show()"):
            value = ast.parse(cell.source).body[-1]
            called = isinstance(value, ast.Expr) and isinstance(value.value, ast.Call)
            assert cell.outputs or called, f"{cell.id} shows nothing"
        if "plt.show()" in cell.source:
            assert any(
                "image/png" in output.get("data", {}) for output in cell.outputs
            ), f"{cell.id} stored no plot"


@each_notebook
def test_no_error_no_stderr_no_machine_path_is_stored(path):
    for cell in code_cells(read(path)):
        for output in cell.outputs:
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", cell.id
            texts = [output.get("text", "")]
            texts += [
                str(data)
                for mime, data in output.get("data", {}).items()
                if mime not in PLOT_TYPES
            ]
            for text in texts:
                assert not MACHINE_PATHS.search(text), cell.id
                assert not re.search(r"\bat 0x[0-9a-f]+", text), cell.id


@each_notebook
def test_no_widget_state_is_stored(path):
    text = path.read_text("utf-8")
    assert "widget-view+json" not in text
    assert "widget-state+json" not in text


@each_notebook
def test_every_cell_id_is_a_unique_slug(path):
    ids = [cell.id for cell in read(path).cells]
    assert len(set(ids)) == len(ids)
    for cell_id in ids:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cell_id), cell_id
        assert not re.fullmatch(r"[0-9a-f]{8}", cell_id), f"{cell_id} is not hand-given"


@each_notebook
def test_cells_are_small(path):
    lengths = []
    for cell in code_cells(read(path)):
        if {"remove-input", "hide-input", "hide-cell"} & set(tags(cell)):
            continue
        lines = [line for line in cell.source.splitlines() if line.strip()]
        lengths.append(len(lines))
        assert len(lines) <= 20, f"{cell.id} has {len(lines)} lines"
        assert max(map(len, cell.source.splitlines()), default=0) <= 79, cell.id
    assert statistics.median(lengths) <= 6


@each_notebook
def test_every_plot_has_a_caption_and_a_text_alternative(path):
    for cell in code_cells(read(path)):
        if any(set(PLOT_TYPES) & set(o.get("data", {})) for o in cell.outputs):
            described = cell.metadata.get("mystnb", {})
            assert len(described.get("image", {}).get("alt", "")) > 40, cell.id
            assert described.get("figure", {}).get("caption"), cell.id


@each_notebook
def test_headings_have_no_numbers(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for line in re.findall(r"(?m)^#{1,6} .*", cell.source):
                assert not re.match(r"#+ +(chapter )?[0-9]", line, re.I), line


@each_notebook
def test_the_parts_of_a_chapter_are_there(path):
    if not 1 <= int(path.stem[:2]) <= 8 or path.parent.name != "en":
        pytest.skip("the prologue, the real models and the limits have their own form")
    cells = read(path).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert len(re.findall(r"(?m)^# ", prose)) == 1
    for part in (
        *("You will be able to", "You need", "Time", "## In practice"),
        *("## Common misreadings", "## Summary", "In plain words", "## Exercises"),
        "## Further reading",
    ):
        assert part in prose, part
    imports = [
        cell.id
        for cell in code_cells(read(path))
        if re.search(r"(?m)^\s*(import|from) ", cell.source)
    ]
    assert imports == ["setup"]


@each_notebook
def test_the_setup_cell_begins_like_every_other(path):
    setup = next(cell for cell in code_cells(read(path)) if cell.id == "setup")
    assert setup.source.startswith(SETUP)
    last = setup.source.splitlines()[-1]
    assert last == f'attnbook.set_language("{path.parent.name}")'


@each_notebook
def test_exercises_name_what_they_need(path):
    from attnbook.exercises import EXERCISES

    cells = code_cells(read(path))
    ids = [cell.id for cell in cells]
    roles: dict[str, list[str]] = {}
    for cell in cells:
        marked = cell.metadata.get("attnbook", {})
        if marked:
            assert marked["exercise"] in EXERCISES
            roles.setdefault(marked["exercise"], []).append(marked["role"])
            for needed in marked["needs"]:
                assert ids.index(needed) < ids.index(cell.id), cell.id
    for name, found in roles.items():
        assert found == ["stub", "check", "solution"], name
    expected = {n for n, e in EXERCISES.items() if e.chapter == path.stem}
    assert set(roles) == expected
    if expected and path.stem != "00_pronoun":  # the prologue only opens the subject
        assert len(expected) >= 3


@each_notebook
def test_each_exercise_runs_from_what_it_needs_alone(path):
    cells = {cell.id: cell for cell in code_cells(read(path))}
    for cell in cells.values():
        marked = cell.metadata.get("attnbook")
        if not marked or marked["role"] == "stub":
            continue
        names = {}
        for needed in [*marked["needs"], cell.id]:
            exec(_as_module(cells[needed].source), names)
        verdict = eval(_last_expression(cell.source), names)
        expected = "not started" if marked["role"] == "check" else "right"
        assert verdict.status == expected, cell.id


def _as_module(source: str):
    tree = ast.parse(source)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body.pop()
    return compile(tree, "cell", "exec")


def _last_expression(source: str):
    last = ast.parse(source).body[-1]
    return compile(ast.Expression(last.value), "cell", "eval")


@each_notebook
def test_running_it_again_changes_no_byte(path):
    assert run_notebooks.run(path) == path.read_text("utf-8")


def test_the_output_of_one_cell_is_ignored_and_of_no_other():
    """It says whether the published model is here, or what was recorded of it."""
    for path in PATHS:
        ignoring = [
            cell.id
            for cell in code_cells(read(path))
            if "nbval-ignore-output" in tags(cell) or "NBVAL" in cell.source
        ]
        one = ["live-or-recorded"] if path.stem == "09_real" else []
        assert ignoring == one, path.stem


# nbval itself: an altered output must fail.

HARMLESS = """
{"cells": [
 {"cell_type": "code", "id": "text", "metadata": {}, "execution_count": 1,
  "source": "1 + 1", "outputs": [{"output_type": "execute_result",
  "execution_count": 1, "metadata": {}, "data": {"text/plain": "2"}}]},
 {"cell_type": "code", "id": "stream", "metadata": {}, "execution_count": 2,
  "source": "print('two')", "outputs": [{"output_type": "stream",
  "name": "stdout", "text": "two\\n"}]}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python",
  "name": "python3"}, "language_info": {"name": "python"}},
 "nbformat": 4, "nbformat_minor": 5}
"""


def nbval(folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "-o", "filterwarnings=default", "."],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_an_unaltered_notebook_passes(tmp_path):
    (tmp_path / "n.ipynb").write_text(HARMLESS)
    finished = nbval(tmp_path)
    assert finished.returncode == 0, finished.stdout


ALTERATIONS = {
    "a value": ('"text/plain": "2"', '"text/plain": "3"'),
    "a printed line": ('"two\\n"', '"three\\n"'),
    "an output taken away": ('"name": "stdout", "text": "two\\n"', None),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_altered_outputs_fail(tmp_path, what):
    before, after = ALTERATIONS[what]
    notebook = json.loads(HARMLESS)
    if after is None:
        notebook["cells"][1]["outputs"] = []
        text = json.dumps(notebook)
    else:
        text = HARMLESS.replace(before, after)
        assert text != HARMLESS
    (tmp_path / "n.ipynb").write_text(text)
    finished = nbval(tmp_path)
    assert finished.returncode == 1, finished.stdout


def _first_text(notebook):
    """The first output of a chapter whose text nbval compares."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "text/plain" in output.get("data", {}) and re.search(
                r"\d", output.data["text/plain"]
            ):
                return output.data
    raise AssertionError("no number to alter")


def test_an_altered_number_in_a_chapter_fails(tmp_path):
    notebook = read(PATHS[0])
    data = _first_text(notebook)
    changed = re.sub(
        r"\d", lambda digit: str((int(digit[0]) + 1) % 10), data["text/plain"], count=1
    )
    data["text/plain"] = changed
    nbformat.write(notebook, tmp_path / "altered.ipynb")
    finished = nbval(tmp_path)
    assert finished.returncode == 1, finished.stdout
    assert "1 failed" in finished.stdout
