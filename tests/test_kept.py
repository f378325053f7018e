"""Functions that earlier exercises kept run the real model, once checked again."""

import json
from pathlib import Path

import numpy as np
import pytest
from solutions import SOLUTIONS

from attnbook import exercises, model, ops, pretrained, train
from attnbook.exercises import _run, _work, check, kept
from attnbook.pretrained import Recorded, load_smollm2


@pytest.fixture
def work(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNBOOK_WORK", "on")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work.json"


def write(file, **sources):
    entries = {n: {"source": s, "status": "right"} for n, s in sources.items()}
    file.write_text(json.dumps({"version": 1, "exercises": entries}), "utf-8")


def test_nothing_is_kept_at_first(work):
    assert dict(kept()) == {}
    assert "No function of yours" in str(kept())


def test_kept_functions_run_the_published_model(work):
    names = set(model.REPLACEABLE) & set(SOLUTIONS)
    assert {"rms_norm", "repeat_kv", "causal_mask", "pre_norm_block"} <= names
    for name in names:
        check(name, SOLUTIONS[name])
    check("row_sums", "b")  # a prediction is no function
    mine = kept(model.REPLACEABLE, run="yes")
    assert set(mine) == names
    assert not mine.left_out
    assert all(name in str(mine) for name in names)
    assert not any(function is getattr(ops, name) for name, function in mine.items())
    with train.one_thread():
        theirs = load_smollm2(**mine).logits(np.array([504, 3575, 282, 4649, 314]))
    assert theirs[-1].argmax() == 7042


def test_an_altered_source_is_left_out_with_its_reason(work):
    write(
        work,
        softmax="import numpy as np\n\ndef softmax(x, axis=-1):\n    return x\n",
        rms_norm="def rms_norm(x, gain, eps=1e-5):\n    return x * gian\n",
        causal_mask="def causal_mask(T, S=None:\n",
        repeat_kv="import numpy as np\n\n"
        "def repeat_kv(x, n):\n    return np.repeat(x, n, axis=-3)\n",
        unheard_of="def unheard_of():\n    return 1\n",
    )
    mine = kept(run="yes")
    assert list(mine) == ["repeat_kv"]
    assert set(mine.left_out) == {"softmax", "rms_norm", "causal_mask"}
    assert "no longer passes" in mine.left_out["softmax"]
    assert "SyntaxError" in mine.left_out["causal_mask"]
    assert "Not used: rms_norm" in str(mine)


def test_only_what_can_be_used_is_returned(work):
    check("softmax", SOLUTIONS["softmax"])
    assert list(kept(model.REPLACEABLE, run="yes")) == []
    assert list(kept(["softmax"], run="yes")) == ["softmax"]


def test_nothing_is_returned_when_switched_off(monkeypatch, work):
    check("softmax", SOLUTIONS["softmax"])
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    assert len(exercises.kept(run="yes")) == 0


@pytest.mark.parametrize(
    ("text", "says"), [("{", "damaged"), ('{"version": 9}', "another version")]
)
def test_a_record_that_cannot_be_read_is_said(work, text, says):
    work.write_text(text, "utf-8")
    for answer in ("yes", "no"):
        assert len(kept(run=answer)) == 0
        assert says in str(kept(run=answer))


# --- what is run, and when ------------------------------------------------------

RIGHT = (
    "import numpy as np\n\ndef repeat_kv(x, n):\n    return np.repeat(x, n, axis=-3)\n"
)
BODY = "\n    return np.repeat(x, n, axis=-3)\n"


def test_nothing_is_run_unless_the_reader_says_so(work, monkeypatch):
    write(work, repeat_kv=RIGHT)
    monkeypatch.setattr(_work, "rebuild", lambda *_: pytest.fail("run"))
    found = kept()
    assert len(found) == 0
    assert found.waiting == ("repeat_kv",)
    assert "In work.json: repeat_kv. They were not run" in str(found)
    with pytest.raises(ValueError, match="run is True; it must be"):
        kept(run=True)


ATTACKS = {
    "a call": "open('owned.txt', 'w').write('x')\n" + RIGHT,
    "an exit": "raise SystemExit\n" + RIGHT,
    "a loop": "while True:\n    pass\n" + RIGHT,
    "a constant that calls": "x = open('owned.txt', 'w')\n" + RIGHT,
    "a constant that is long to compute": "x = 9**9**9\n" + RIGHT,
    "another module": "import os\n" + RIGHT,
    "a module's part": "from subprocess import run\n" + RIGHT,
    "a neighbour": "from . import softmax\n" + RIGHT,
    "a class": "class A:\n    open('owned.txt', 'w')\n" + RIGHT,
    "a decorator": "import numpy as np\n@print\ndef repeat_kv(x, n):" + BODY,
    "a default": "import numpy as np\ndef repeat_kv(x, n=open('owned.txt', 'w')):"
    + BODY,
    "a keyword's default": "import numpy as np\n"
    "def repeat_kv(x, n, *, y=open('owned.txt', 'w')):" + BODY,
    "an annotation": "import numpy as np\n"
    "def repeat_kv(x: open('owned.txt', 'w'), n):" + BODY,
    "what it returns": "import numpy as np\n"
    "def repeat_kv(x, n) -> open('owned.txt', 'w'):" + BODY,
    "an assertion": "assert False, open('owned.txt', 'w')\n" + RIGHT,
    "a function that leaves": "def repeat_kv(x, n):\n    raise SystemExit\n",
    "a function that never ends": "def repeat_kv(x, n):\n    while True: pass\n",
    "no function": "import math\n",
}


@pytest.mark.parametrize("source", ATTACKS.values(), ids=ATTACKS)
def test_a_source_that_does_more_than_define_is_left_out(work, monkeypatch, source):
    monkeypatch.setattr(_run, "SECONDS", 0.5)
    write(work, repeat_kv=source, causal_mask=MASK)
    mine = kept(run="yes")
    assert list(mine) == ["causal_mask"]
    assert list(mine.left_out) == ["repeat_kv"]
    assert not (work.parent / "owned.txt").exists()


MASK = """from attnbook import ops
import numpy as np

NAMES = ("T", -1, [2.5, None])


def helper(T: int, S: "int | None" = None, sign=-np.inf, *more, **others) -> np.ndarray:
    return np.tril(np.ones((T, S), bool), S - T)


def causal_mask(T, S=None):
    return helper(T, T if S is None else S)
"""


# --- answers that are measured or read ------------------------------------------


def test_a_live_answer_has_the_form_of_a_recorded_one():
    ask = Recorded("real", live=True)
    measured = {"a": np.float32(1 / 3), "b": (np.arange(2), True), "c": float("nan")}
    answer = ask("all", lambda: measured)
    assert answer == {"a": 0.33333, "b": [[0, 1], True], "c": None}
    assert json.loads(json.dumps(answer)) == answer == ask.answers["all"]


def test_without_a_model_nothing_is_measured():
    ask = Recorded("real", live=False)
    with pytest.raises(KeyError, match="nothing was recorded under 'new'"):
        ask("new", lambda: pytest.fail("measured"))


def test_what_is_measured_is_compared_with_the_record():
    ask = Recorded("real", live=True)
    ask._record = {"a": 1.0, "b": [[0.5, None], "x"], "c": {"d": True}, "e": [1, 2]}
    ask("a", lambda: 1.005)
    ask("b", lambda: [[0.501, float("nan")], "x"])
    ask("c", lambda: {"d": True})
    assert ask.differences() == []
    ask("a", lambda: 1.02)
    ask("b", lambda: [[0.5, 0.0], "x"])
    ask("c", lambda: {"d": True, "f": 1})
    ask("e", lambda: [1])
    ask("new", lambda: 1)
    assert ask.differences() == ["a", "b", "c", "e", "new"]
    with pytest.raises(KeyError):
        Recorded("real", live=False)("new", lambda: 1)


def chapter(stop):
    """Run the chapter's cells up to one, and return its names."""
    path = Path(ops.__file__).parents[1] / "notebooks" / "en" / "09_real.ipynb"
    names = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["id"] == stop:
            return names
        if cell["cell_type"] == "code" and "plot" not in cell["id"]:
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    raise AssertionError(stop)


def unavailable(**functions):
    raise pretrained.ModelUnavailable("not here")


def test_the_chapter_measures_what_is_recorded():
    names = chapter("break-run")  # test_break_it.py measures what follows
    assert names["ask"].live
    assert len(names["ask"].answers) > 25
    assert names["ask"].differences() == []


def test_without_the_model_the_chapter_says_that_nothing_was_measured(monkeypatch):
    monkeypatch.setattr(pretrained, "load_smollm2", unavailable)
    names = chapter("further-breaks")
    assert not names["ask"].live
    assert len(names["ask"].answers) > 40
    assert names["ask"].differences() == []


def test_in_either_mode_the_readers_functions_run_a_model(monkeypatch, work):
    monkeypatch.setattr(pretrained, "load_smollm2", unavailable)
    names = chapter("own-same")
    names["mine"]["rms_norm"] = lambda x, gain, eps: x  # wrong, and nobody measures
    path = Path(ops.__file__).parents[1] / "notebooks" / "en" / "09_real.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    (source,) = ("".join(c["source"]) for c in cells if c["id"] == "own-same")
    with pytest.raises(AssertionError):
        exec(source, names)
