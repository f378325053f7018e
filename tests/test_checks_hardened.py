"""The checks, against what a newcomer did to them."""

import json
import multiprocessing
import os
import sys
import time
from functools import partial

import numpy as np
import pytest

from attnbook import exercises, ops
from attnbook.exercises import _run as running
from attnbook.exercises import _work as work_file
from attnbook.exercises import check, load_answer


@pytest.fixture(autouse=True)
def _no_work(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def work(monkeypatch, tmp_path):
    """Let answers be kept, in a directory of their own."""
    monkeypatch.delenv("ATTNBOOK_WORK")
    return tmp_path / "work.json"


# --- loops ------------------------------------------------------------------

LOOPS = [
    "while True: pass",
    "while True: continue",
    "while True: 1",
    "while 1: y = 1",
    "while x is not None: pass",
    "if x is not None:\n        while True: pass",
    "while 1:\n        while 1: pass",
    "for _ in iter(int, 1): pass",
    "for _ in iter(int, 1): continue",
    "sum(0 for _ in iter(int, 1))",
    "any(y for y in iter(int, 1))",
    "[0 for _ in iter(int, 1)]",
    "{0 for _ in iter(int, 1)}",
    "try:\n        while True: pass\n    except Exception: pass",
    "while True:\n        try:\n            while True: pass\n        except: pass",
    "(lambda: [0 for _ in iter(int, 1)])()",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_an_endless_loop_is_ended_however_few_lines_it_has(loop, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.2)
    space = {}
    exec(f"def softmax(x, axis=-1):\n    {loop}\n    return x\n", space)
    trace = sys.gettrace()
    start = time.monotonic()
    verdict = check("softmax", space["softmax"])
    assert time.monotonic() - start < 5
    assert sys.gettrace() is trace
    assert verdict.status == "error"
    assert "took too long" in verdict.message


def test_instructions_are_traced_only_where_lines_do_not_tell():
    def ordinary(x):
        while x:
            for _ in x:
                x = [y for y in x if y]
        return x

    def spinning():
        while True: pass  # fmt: skip  # noqa: E701

    assert not running._spins(ordinary.__code__)
    assert running._spins(spinning.__code__) == (sys.version_info < (3, 12))


# --- several notebooks at once ----------------------------------------------


def _keep_some(file, names):
    for name in names:
        work_file.keep(file, name, f"# {name}\n")


def test_no_answer_is_lost_when_six_notebooks_answer_at_once(tmp_path):
    file = tmp_path / "work.json"
    shares = [[f"{letter}{i}" for i in range(20)] for letter in "abcdef"]
    context = multiprocessing.get_context("spawn")
    notebooks = [context.Process(target=_keep_some, args=(file, s)) for s in shares]
    for notebook in notebooks:
        notebook.start()
    for notebook in notebooks:
        notebook.join(60)
    assert [notebook.exitcode for notebook in notebooks] == [0] * 6
    kept = work_file.read(file)["exercises"]
    assert set(kept) == {name for share in shares for name in share}
    left = {path.name for path in tmp_path.iterdir()} - {"work.json.lock"}
    assert left == {"work.json"}


@pytest.mark.skipif(work_file.fcntl is None, reason="Windows locks otherwise")
def test_a_record_that_others_hold_is_not_waited_for_without_end(work, monkeypatch):
    monkeypatch.setattr(work_file, "PATIENCE", 0.1)
    with work_file._alone(work):
        verdict = check("row_sums", "b")
    assert verdict.status == "right"
    assert "Run the check again" in verdict.message
    assert "Kept" in check("row_sums", "b").message


def test_a_read_only_record_is_left_as_it_is(work):
    check("row_sums", "b")
    before = work.read_bytes()
    work.chmod(0o444)
    verdict = check("value_of_tart", "c")
    assert verdict.status == "right"
    assert "Not kept: work.json could not be written" in verdict.message
    assert "Permission denied" in verdict.message
    assert work.read_bytes() == before
    work.chmod(0o644)
    assert "Kept in work.json" in check("value_of_tart", "c").message


def test_a_read_only_folder_does_not_cost_the_verdict(work, monkeypatch):
    if os.geteuid() == 0:  # whom no folder refuses

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(work), "open", refuse)
    work.parent.chmod(0o555)
    try:
        verdict = check("row_sums", "b")
    finally:
        work.parent.chmod(0o755)
    assert verdict.status == "right"
    assert "Not kept: work.json could not be written" in verdict.message
    assert not work.exists()


def test_a_draft_that_cannot_take_its_place_is_cleared_away(work, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as m:
        m.setattr(type(work), "replace", refuse)
        assert "No space left" in check("row_sums", "b").message
    assert [p for p in work.parent.iterdir() if p.suffix == ".new"] == []


# --- why an answer is not kept ----------------------------------------------

SHIFT = np.zeros(1)


def softmax_with_an_array(x, axis=-1):
    return ops.softmax(x + SHIFT[0].astype(x.dtype), axis)


def softmax_in_a_closure():
    width = np.zeros(())

    def softmax(x, axis=-1):
        return ops.softmax(x + width.astype(x.dtype), axis)

    return softmax


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ops.softmax, "the book's own function; write yours"),
        (lambda x, axis=-1: ops.softmax(x, axis), "a lambda cannot be kept"),
        (softmax_with_an_array, "it uses `SHIFT` from outside"),
        (softmax_in_a_closure(), "it uses `width` from outside"),
        (partial(ops.softmax), "this is a partial"),
    ],
)
def test_an_answer_that_is_not_kept_says_why(work, answer, says):
    verdict = check("softmax", answer)
    assert verdict.status == "right"
    assert "Not kept" in verdict.message
    assert says in verdict.message
    assert not work.exists()


def _tamper(work, name, source):
    check("row_sums", "b")
    record = json.loads(work.read_text("utf-8"))
    record["exercises"][name] = {"source": source, "status": "right"}
    work.write_text(json.dumps(record), "utf-8")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("row_sums", "'z'"),
        ("row_sums", "1 +"),
        ("row_sums", "open('work.json')"),
        ("row_sums", "3"),
        ("spread_of_scores", "'a'"),
        ("spread_of_scores", "[" * 500),
        ("softmax", "def softmax(x:"),
        ("softmax", "x = 1"),
        ("softmax", "1 / 0"),
    ],
)
def test_a_kept_answer_that_was_tampered_with_is_refused_clearly(work, name, source):
    _tamper(work, name, source)
    with pytest.raises(ValueError, match=rf"work\.json: what is kept for '{name}'"):
        load_answer(name)


def test_a_record_of_another_version_is_named_as_that_and_put_aside(work):
    later = '{"version": 2, "exercises": {}}'
    work.write_text(later, "utf-8")
    with pytest.raises(ValueError, match="version 2, and this book reads 1"):
        load_answer("softmax")
    shown = str(exercises.progress())
    assert "another version of the book (2)" in shown
    message = check("row_sums", "b").message
    assert "another version of the book (2)" in message
    assert "damaged" not in shown + message
    assert work.with_name("work.json.broken-1").read_text("utf-8") == later


# --- what a message shows ---------------------------------------------------


@pytest.mark.parametrize("array", [np.array([object()]), np.array(object())])
def test_an_array_of_objects_shows_no_address(array):
    def softmax(x, axis=-1):
        return array

    message = check("softmax", softmax).message
    assert "(object)" in message
    assert " at 0x" not in message


def test_what_is_printed_shows_no_address():
    def softmax(x, axis=-1):
        print(object())
        return x

    message = check("softmax", softmax).message
    assert "<object object at 0x…>" in message


def test_a_wrong_dtype_is_shown_beside_the_numbers():
    def softmax(x, axis=-1):
        return ops.softmax(x, axis).astype(np.float64)

    message = check("softmax", softmax).message
    assert "expected [0.182 0.818]  (float32)" in message
    assert "received [0.182 0.818]  (float64)" in message


@pytest.mark.parametrize(
    "number", [np.array(16.0), np.array(16), np.float32(16), np.int64(16)]
)
def test_a_number_of_numpy_is_a_number(number):
    assert check("spread_of_scores", number).status == "right"


def test_a_letter_of_numpy_is_a_letter_and_a_row_of_numbers_is_no_number():
    assert check("row_sums", np.array("b")).status == "right"
    assert check("spread_of_scores", np.array([16.0])).status == "error"
    assert check("spread_of_scores", np.array(True)).status == "error"
    assert check("spread_of_scores", np.array(None)).status == "error"
