"""The checks, against what a newcomer did to them."""

import json
import multiprocessing
import os
import sys
import time
from functools import partial

import numpy as np
import pytest
from solutions import SOLUTIONS

from attnbook import exercises, ops
from attnbook.exercises import EXERCISES, check, load_answer
from attnbook.exercises import _run as running
from attnbook.exercises import _work as work_file


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


# --- a mistake made while an optional argument is ignored -------------------


def _products(q, k):
    return q @ k.swapaxes(-1, -2)


def _root(q):
    return q.shape[-1] ** -0.5


def unscaled(q, k, allow=None, scale=None):
    return ops.softmax(_products(q, k))


def scaled_late(q, k, allow=None, scale=None):
    return ops.softmax(_products(q, k)) / np.sqrt(q.shape[-1])


def raw_scores(q, k, allow=None, scale=None):
    return _products(q, k) * _root(q)


def raw_products(q, k, allow=None, scale=None):
    return _products(q, k)


def columns(q, k, allow=None, scale=None):
    return ops.softmax(_products(q, k) / np.sqrt(q.shape[-1]), axis=-2)


def no_scale_given_masked_late(q, k, allow=None, scale=None):
    weights = ops.softmax(_products(q, k) * _root(q))
    return weights if allow is None else weights * allow


def chapter(q, k, allow=None, scale=None):
    return ops.softmax(_products(q, k) / np.sqrt(q.shape[-1]))


def unscaled_with_t(q, k, allow=None, scale=None):
    return ops.softmax(q @ k.T)


def wrong_root_with_t(q, k, allow=None, scale=None):
    return ops.softmax(q @ k.T / np.sqrt(k.shape[0]))


def masked_late_with_t(q, k, allow=None, scale=None):
    weights = ops.softmax(q @ k.T * (_root(q) if scale is None else scale))
    return weights if allow is None else weights * allow


WITH_IGNORANCE = [
    (unscaled_with_t, "no_scale"),
    (wrong_root_with_t, "wrong_width"),
    (masked_late_with_t, "mask_after_softmax"),
    (unscaled, "no_scale"),
    (scaled_late, "scales_weights"),
    (raw_scores, "no_softmax"),
    (raw_products, "no_softmax"),
    (columns, "wrong_axis"),
    (no_scale_given_masked_late, "ignores_scale"),
    (chapter, "ignores_arguments"),
]


@pytest.mark.parametrize(("answer", "mistake"), WITH_IGNORANCE)
def test_a_mistake_is_named_though_arguments_are_ignored_too(answer, mistake):
    assert check("attention_weights", answer).mistake == mistake


@pytest.mark.parametrize(("answer", "mistake"), WITH_IGNORANCE)
def test_and_so_it_is_in_the_whole_of_attention(answer, mistake):
    def attention(q, k, v, allow=None, scale=None):
        return answer(q, k, allow, scale) @ v

    verdict = check("scaled_dot_product_attention", attention)
    assert verdict.mistake == mistake


def test_no_mistake_is_named_that_the_answer_does_not_make():
    def halves_what_is_masked(q, k, allow=None, scale=None):
        weights = ops.attention_weights(q, k, allow, scale)
        return weights if allow is None else weights / 2

    verdict = check("attention_weights", halves_what_is_masked)
    assert (verdict.status, verdict.mistake) == ("wrong", None)
    assert "“In practice”, in Q, K and V" in verdict.message

    def halves(q, k, allow=None, scale=None):
        return ops.attention_weights(q, k, allow, scale) / 2

    verdict = check("attention_weights", halves)
    assert (verdict.status, verdict.mistake) == ("wrong", None)
    assert "Would another divisor do?" in verdict.message


def test_a_dtype_without_a_name_sends_back_to_number_types():
    def softmax(x, axis=-1):
        return ops.softmax(x, axis).astype(np.float64)

    verdict = check("softmax", softmax)
    assert verdict.mistake is None
    assert "“In practice”, in Q, K and V" in verdict.message


def test_every_section_of_a_failure_without_a_name_is_one_of_the_mistakes():
    # Those are held against the headings of the notebooks.
    for exercise in EXERCISES.values():
        known = {exercise.reread, *exercise.sections.values()}
        assert set(getattr(exercise, "unnamed", {}).values()) <= known


def masks_by_index(q, k, allow=None, scale=None):
    scores = _products(q, k) * (_root(q) if scale is None else scale)
    if allow is not None:
        scores[~allow] = -np.inf
    return SOLUTIONS["softmax"](scores)


def masks_by_product(q, k, allow=None, scale=None):
    scores = _products(q, k) * (_root(q) if scale is None else scale)
    if allow is not None:
        scores = scores + (1 - allow) * -np.inf
    return SOLUTIONS["softmax"](scores)


def masks_by_sum(q, k, allow=None, scale=None):
    scores = _products(q, k) * (_root(q) if scale is None else scale)
    return SOLUTIONS["softmax"](scores if allow is None else scores + allow)


def masks_late(q, k, allow=None, scale=None):
    weights = SOLUTIONS["softmax"](
        _products(q, k) * (_root(q) if scale is None else scale)
    )
    if allow is not None:
        weights = np.where(allow, weights, 0)
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return weights


def divides_by_a_little_more(q, k, allow=None, scale=None):
    scores = _products(q, k) * (_root(q) if scale is None else scale)
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    return softmax_with_a_tiny_number(scores)


def softmax_with_a_tiny_number(x, axis=-1):
    highest = x.max(axis=axis, keepdims=True)
    exps = np.exp(x - np.where(np.isneginf(highest), 0, highest))
    return exps / (exps.sum(axis=axis, keepdims=True) + 1e-300)


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (masks_by_index, "mask_by_index"),
        (masks_by_product, "mask_times_infinity"),
        (masks_by_sum, "adds_mask"),
        (masks_late, "renormalises"),
        (divides_by_a_little_more, "empty_row"),
    ],
)
def test_further_ways_to_mask_are_named(answer, mistake):
    def attention(q, k, v, allow=None, scale=None):
        return answer(q, k, allow, scale) @ v

    assert check("attention_weights", answer).mistake == mistake
    assert check("scaled_dot_product_attention", attention).mistake == mistake


def test_a_tiny_number_in_the_sum_is_not_enough_in_float32():
    verdict = check("softmax", softmax_with_a_tiny_number)
    assert verdict.mistake == "empty_row"
    assert "float32" in verdict.message


def test_a_spread_in_proportion_to_the_width_is_named():
    assert check("spread_of_scores", 32).mistake == "in_proportion"


def test_a_softmax_that_ignores_its_axis_and_keepdims_is_told_of_one():
    def softmax(x, axis=-1):
        return np.exp(x) / np.exp(x).sum(axis=-1)

    assert check("softmax", softmax).mistake == "no_keepdims"


# --- two mistakes in one line -----------------------------------------------


def _norm_parts(x, axis, **spread):
    mean = x.mean(axis=axis, keepdims=True)
    return x - mean, x.std(axis=axis, keepdims=True, **spread)


def sample_deviation_and_eps(x, gain, bias, eps=1e-5):
    centred, deviation = _norm_parts(x, -1, ddof=1)
    return centred / (deviation + eps) * gain + bias


def deviation_of_everything_and_eps(x, gain, bias, eps=1e-5):
    centred, deviation = _norm_parts(x, None)
    return centred / (deviation + eps) * gain + bias


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (sample_deviation_and_eps, "sample_variance"),
        (deviation_of_everything_and_eps, "over_everything"),
    ],
)
def test_a_norm_with_eps_outside_is_told_of_its_other_mistake_first(answer, mistake):
    assert check("layer_norm", answer).mistake == mistake


def test_a_root_mean_square_with_eps_outside_is_told_of_its_axis_first():
    def rms_norm(x, gain, eps=1e-5):
        return x / (np.sqrt(np.mean(x * x, axis=-1)) + eps) * gain

    assert check("rms_norm", rms_norm).mistake == "no_keepdims"


def _float64_root(q, scale):
    return 1 / np.sqrt(q.shape[-1]) if scale is None else scale


def overflows_in_float64(q, k, allow=None, scale=None):
    scores = _products(q, k) * _float64_root(q, scale)
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    exps = np.exp(scores)
    return exps / exps.sum(axis=-1, keepdims=True)


def empty_row_in_float64(q, k, allow=None, scale=None):
    scores = _products(q, k) * _float64_root(q, scale)
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [(overflows_in_float64, "overflows"), (empty_row_in_float64, "empty_row")],
)
def test_numbers_that_are_wrong_are_never_called_right_but_for_their_dtype(
    answer, mistake
):
    def attention(q, k, v, allow=None, scale=None):
        return answer(q, k, allow, scale) @ v

    for name, function in (
        ("attention_weights", answer),
        ("scaled_dot_product_attention", attention),
    ):
        verdict = check(name, function)
        assert verdict.mistake == mistake
        assert "numbers are right" not in verdict.message


def test_where_the_dtype_alone_is_wrong_the_numbers_are_shown_to_agree():
    for exercise in EXERCISES.values():
        if "promotes_float32" not in exercise.mistakes or exercise.chapter > "08":
            continue
        for wrong in exercise.wrong_versions("promotes_float32"):
            verdict = exercise.check(wrong)
            assert verdict.mistake == "promotes_float32"
            lines = dict(verdict.example)
            expected, received = lines["expected"], lines["received"]
            assert expected.removesuffix("  (float32)") == (
                received.removesuffix("  (float64)").removesuffix("  (float32)")
            )


# --- what hints lead to -----------------------------------------------------


def test_the_tile_that_the_hint_tries_on_a_row_is_named():
    def repeat_kv(x, n):
        return np.tile(x, n)

    assert check("repeat_kv", repeat_kv).mistake == "repeats_numbers"


def test_the_lowest_number_is_not_infinity():
    def softmax(x, axis=-1):
        return SOLUTIONS["softmax"](np.maximum(x, np.finfo(x.dtype).min), axis)

    assert check("softmax", softmax).mistake == "finite_infinity"


def test_one_row_is_one_row_whichever_way_it_is_multiplied():
    def softmax_jacobian(weights):
        return np.diag(weights) - weights.T @ weights

    assert check("softmax_jacobian", softmax_jacobian).mistake == "one_row_only"


def test_plain_sums_over_tiles_lack_a_maximum():
    def tiled_attention(q, k, v, allow=None, scale=None, tile=128):
        scale = _root(q) if scale is None else scale
        S = k.shape[-2]
        allow = np.broadcast_to(True if allow is None else allow, (*q.shape[:-1], S))
        mixture = total = 0
        for s in range(0, S, tile):
            part = slice(s, s + tile)
            exps = np.exp(_products(q, k[..., part, :]) * scale) * allow[..., part]
            mixture = mixture + exps @ v[..., part, :]
            total = total + exps.sum(axis=-1, keepdims=True)
        return mixture / total

    assert check("tiled_attention", tiled_attention).mistake == "no_maximum"


# --- NumPy and the streams, changed while the check runs --------------------


@pytest.mark.parametrize(
    "change",
    [
        "np.exp = None",
        "np.isclose = lambda one, two, **_: np.ones(np.shape(one), bool)",
        "del np.array2string",
        "ops.softmax = None; np.where = None",
    ],
)
@pytest.mark.parametrize("end", ["return x * 2", "raise ValueError"])
def test_what_a_function_changes_in_numpy_is_put_back(change, end):
    before = dict(vars(np)), dict(vars(ops))
    space = {"np": np, "ops": ops}
    exec(f"def softmax(x, axis=-1):\n    {change}\n    {end}\n", space)
    verdict = check("softmax", space["softmax"])
    assert verdict.status == ("wrong" if end.startswith("return") else "error")
    for module, names in zip((np, ops), before, strict=True):
        assert all(vars(module)[name] is value for name, value in names.items())


def test_a_stream_that_is_closed_does_not_cost_the_verdict(capsys):
    def softmax(x, axis=-1):
        print("here")
        sys.stdout.close()
        return SOLUTIONS["softmax"](x, axis)

    assert check("softmax", softmax).status == "right"
    print("there")
    assert capsys.readouterr().out == "there\n"


def test_a_zero_has_no_sign():
    def softmax(x, axis=-1):
        return -np.zeros_like(x)

    assert dict(check("softmax", softmax).example)["received"] == "[0.]"


def test_whoever_looks_at_neither_groups_nor_mask_is_told_of_one():
    def several(x, memory, w_q, w_k, w_v, w_o, heads):
        q = ops.split_heads(x @ w_q, heads)
        k, v = (ops.split_heads(memory @ w, heads) for w in (w_k, w_v))
        return ops.merge_heads(ops.scaled_dot_product_attention(q, k, v)) @ w_o

    def multi_head_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads=None, allow=None):
        return several(x, x, w_q, w_k, w_v, w_o, heads)

    def cross_attention(
        x, memory, w_q, w_k, w_v, w_o, heads, kv_heads=None, allow=None
    ):
        return several(x, memory, w_q, w_k, w_v, w_o, heads)

    assert check("multi_head_attention", multi_head_attention).mistake == "ignores_mask"
    assert check("cross_attention", cross_attention).mistake == "ignores_mask"


# --- what an answer needs to stand alone ------------------------------------

_FROM_OUTSIDE = """\
import numpy as np

LOWEST = -np.inf
LAST = -1


def highest_or_zero(x, axis, lowest=LOWEST):
    highest = x.max(axis=axis, keepdims=True)
    return np.where(highest == lowest, 0, highest)


def softmax(x: np.ndarray, axis: int = LAST) -> np.ndarray:
    exps = np.exp(x - highest_or_zero(x, axis))
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)
"""


def _written_as_a_file(text, path):
    path.write_text(text, "utf-8")
    space = {"__name__": "a_notebook"}
    exec(compile(text, str(path), "exec"), space)
    return space["softmax"]


def test_constants_in_a_header_and_infinity_are_kept_with_a_function(work, tmp_path):
    softmax = _written_as_a_file(_FROM_OUTSIDE, tmp_path / "cell.py")
    assert "Kept in work.json." in check("softmax", softmax).message
    again = load_answer("softmax")
    assert again(np.array([-np.inf, 0.0])).tolist() == [0.0, 1.0]


def test_a_constant_that_cannot_be_written_is_named(work, tmp_path):
    text = _FROM_OUTSIDE.replace("LAST = -1", "LAST = np.int64(-1)")
    softmax = _written_as_a_file(text, tmp_path / "cell.py")
    assert "`LAST` from outside" in check("softmax", softmax).message


def test_a_mark_at_the_beginning_of_the_record_is_no_damage(work):
    check("row_sums", "b")
    work.write_text(work.read_text("utf-8"), "utf-8-sig")
    assert load_answer("row_sums") == "b"
    assert "moved" not in check("value_of_tart", "c").message
    assert load_answer("row_sums") == "b"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_record_that_is_a_link_stays_one(work, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "work.json"
    work.symlink_to(real)
    check("row_sums", "b")
    assert work.is_symlink()
    assert json.loads(real.read_text("utf-8"))["exercises"]["row_sums"]
