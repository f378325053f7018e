"""Functions that earlier exercises kept run the real model, once checked again."""

import json

import numpy as np
import pytest
from solutions import SOLUTIONS

from attnbook import exercises, model, ops, train
from attnbook.exercises import check, kept
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
    mine = kept(model.REPLACEABLE)
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
    mine = kept()
    assert list(mine) == ["repeat_kv"]
    assert set(mine.left_out) == {"softmax", "rms_norm", "causal_mask"}
    assert "no longer passes" in mine.left_out["softmax"]
    assert "SyntaxError" in mine.left_out["causal_mask"]
    assert "Not used: rms_norm" in str(mine)


def test_only_what_can_be_used_is_returned(work):
    check("softmax", SOLUTIONS["softmax"])
    assert list(kept(model.REPLACEABLE)) == []
    assert list(kept(["softmax"])) == ["softmax"]


def test_nothing_is_returned_when_switched_off(monkeypatch, work):
    check("softmax", SOLUTIONS["softmax"])
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    assert len(exercises.kept()) == 0


@pytest.mark.parametrize(
    ("text", "says"), [("{", "damaged"), ('{"version": 9}', "another version")]
)
def test_a_record_that_cannot_be_read_is_said(work, text, says):
    work.write_text(text, "utf-8")
    assert len(kept()) == 0
    assert says in str(kept())


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
