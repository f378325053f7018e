"""The exercises: right answers pass, and a mistake is told which one it is."""

import ast
import inspect
import json
import math
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from mutants import mutants
from solutions import PROBES, SOLUTIONS

from attnbook import exercises, ops
from attnbook.exercises import EXERCISES, Implement, Predict, check, load_answer
from attnbook.exercises import _run as running
from attnbook.exercises._exercise import same
from attnbook.language import catalogue

NOTEBOOKS = Path(__file__).parents[1] / "notebooks" / "en"
IMPLEMENT = [n for n, e in EXERCISES.items() if isinstance(e, Implement)]
PREDICT = [n for n, e in EXERCISES.items() if isinstance(e, Predict)]
MISTAKES = [(n, m) for n in EXERCISES for m in EXERCISES[n].mistakes]


@pytest.fixture(autouse=True)
def _no_work(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def work(monkeypatch, tmp_path):
    """Let answers be kept, in a directory of their own."""
    monkeypatch.delenv("ATTNBOOK_WORK")
    return tmp_path / "work.json"


# --- what is declared -------------------------------------------------------


def test_every_exercise_says_where_it_belongs_and_how_long_it_takes():
    for name, exercise in EXERCISES.items():
        assert name == exercise.name
        assert exercise.chapter[:2].isdigit()
        assert exercise.kind in ("predict", "implement", "break it")
        assert exercise.difficulty in (1, 2, 3)
        assert exercise.minutes > 0
        unknown = set(exercise.sections) - set(exercise.mistakes)
        assert not unknown, f"{name}: sections for unknown mistakes {unknown}"


def test_every_section_to_reread_is_a_heading_of_its_chapter():
    sections = {
        section
        for exercise in EXERCISES.values()
        for section in (exercise.reread, *exercise.sections.values())
    }
    for section in sections:
        chapter = section.split(".")[0]
        notebook = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8"))
        text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
        title = catalogue("en")[f"exercise.section.{section}"]
        assert re.search(rf"^##+ {re.escape(title)}$", text, re.M), section


@pytest.mark.parametrize("name", IMPLEMENT)
def test_a_function_has_at_least_six_known_mistakes(name):
    assert len(EXERCISES[name].mistakes) >= 6


@pytest.mark.parametrize("name", PREDICT)
def test_a_prediction_has_at_least_three_tempting_answers(name):
    assert len(EXERCISES[name].mistakes) >= 3


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"softmaks.*known exercises:.*softmax"):
        check("softmaks", np.exp)


@pytest.mark.parametrize("name", IMPLEMENT)
def test_cases_go_from_the_smallest_to_the_largest(name):
    def numbers(arguments):
        return sum(np.size(a) for a in arguments.values() if a is not None)

    for cases in (EXERCISES[name].cases, EXERCISES[name].extremes):
        sizes = [numbers(arguments) for arguments in cases]
        assert sizes == sorted(sizes)


# --- right, not started, and every mistake ----------------------------------


@pytest.mark.parametrize("name", IMPLEMENT)
def test_the_library_and_the_solution_are_right(name):
    assert check(name, EXERCISES[name].reference).status == "right"
    verdict = check(name, SOLUTIONS[name])
    assert verdict.status == "right", verdict
    assert verdict.mistake is None


@pytest.mark.parametrize("name", PREDICT)
def test_the_right_prediction_is_right(name):
    assert check(name, EXERCISES[name].answer).status == "right"


def stub(*arguments, **options):
    raise NotImplementedError


def stub_with_a_docstring(*arguments, **options):
    """Say what to do."""
    raise NotImplementedError("write this function")


@pytest.mark.parametrize("name", IMPLEMENT)
@pytest.mark.parametrize("untouched", [stub, stub_with_a_docstring, None, ...])
def test_an_untouched_stub_is_not_started_and_says_so_in_one_line(name, untouched):
    verdict = check(name, untouched)
    assert (verdict.status, verdict.mistake) == ("not started", None)
    assert "\n" not in str(verdict)


@pytest.mark.parametrize("name", PREDICT)
@pytest.mark.parametrize("untouched", [None, ...])
def test_a_prediction_not_made_is_not_started(name, untouched):
    verdict = check(name, untouched)
    assert verdict.status == "not started"
    assert "\n" not in str(verdict)


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_mistake_is_named_as_itself_and_as_nothing_else(name, mistake):
    exercise = EXERCISES[name]
    if isinstance(exercise, Predict):
        wrong_versions = [exercise.mistakes[mistake]]
    else:
        wrong_versions = exercise.wrong_versions(mistake)
    for wrong in wrong_versions:
        verdict = check(name, wrong)
        assert (verdict.status, verdict.mistake) == ("mistake", mistake), verdict
        assert exercise.say(mistake) in verdict.message


@pytest.mark.parametrize("name", IMPLEMENT)
def test_the_example_of_a_mistake_shows_that_it_is_wrong(name):
    exercise = EXERCISES[name]
    for mistake in exercise.mistakes:
        text = str(check(name, exercise.wrong_versions(mistake)[0]))
        assert "expected" in text
        assert "received" in text
        assert "To reread" in text


def test_two_mistakes_at_once_are_told_one_after_the_other():
    def softmax(x, axis=-1):
        return np.exp(x) / np.exp(x).sum()

    def softmax_corrected_once(x, axis=-1):
        return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)

    assert check("softmax", softmax).mistake == "over_everything"
    assert check("softmax", softmax_corrected_once).mistake == "no_maximum"


def test_the_chapters_own_lines_are_named_as_what_they_are():
    def chapter_softmax(scores):
        highest = scores.max(axis=-1, keepdims=True)
        exps = np.exp(scores - highest)
        return exps / exps.sum(axis=-1, keepdims=True)

    def attention(q, k, v, allow=None, scale=None):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        weights = chapter_softmax(scores)
        return weights @ v

    def attention_with_t(q, k, v, allow=None, scale=None):
        return chapter_softmax(q @ k.T * q.shape[-1] ** -0.5) @ v

    def weights(q, k, allow=None, scale=None):
        return ops.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5)

    def weights_with_scale(q, k, allow=None, scale=None):
        return ops.softmax(q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5))

    for answer in (attention, attention_with_t):
        verdict = check("scaled_dot_product_attention", answer)
        assert verdict.mistake == "ignores_arguments"
        assert "neither `scale` nor `allow`" in verdict.message
    assert check("attention_weights", weights).mistake == "ignores_arguments"
    assert check("attention_weights", weights_with_scale).mistake == "ignores_mask"


def test_a_wrong_answer_without_a_name_gets_the_smallest_counterexample():
    def softmax(x, axis=-1):
        return ops.softmax(x * 1.5, axis)

    verdict = check("softmax", softmax)
    assert (verdict.status, verdict.mistake) == ("wrong", None)
    assert "x = [0. 1.]" in str(verdict)
    assert "expected [0.269 0.731]" in str(verdict)
    assert "received [0.182 0.818]" in str(verdict)


def test_a_difference_that_rounding_hides_is_shown():
    def softmax(x, axis=-1):
        return ops.softmax(x, axis) * x.dtype.type(1 + 1e-5)

    assert "largest difference 1e-05" in str(check("softmax", softmax))


# --- mutants ----------------------------------------------------------------


def _same_everywhere(name, function, probe):
    for arguments in probe:
        own = {
            n: a.copy() if isinstance(a, np.ndarray) else a
            for n, a in arguments.items()
        }
        try:
            result = function(**own)
        except Exception:
            return False
        if not same(result, EXERCISES[name].reference(**arguments)):
            return False
    return True


@pytest.mark.parametrize("name", IMPLEMENT)
def test_every_mutant_of_the_solution_that_changes_it_is_refused(name, record_property):
    rng = np.random.default_rng(7)
    probe = [PROBES[name](rng) for _ in range(400)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert _same_everywhere(name, SOLUTIONS[name], probe)
        changed = [
            (what, mutant)
            for what, mutant in mutants(SOLUTIONS[name])
            if not _same_everywhere(name, mutant, probe)
        ]
    accepted = [what for what, m in changed if check(name, m).status == "right"]
    record_property("mutants", len(changed))
    record_property("accepted", len(accepted))
    # Else the mutator has lost its teeth; a body of one line has fewer places.
    one_line = len(inspect.getsource(SOLUTIONS[name]).splitlines()) == 2
    assert len(changed) >= (6 if one_line else 20)
    assert not accepted


# --- nothing a reader types can end or hang the check -----------------------


def softmax_that(action):
    """Return a softmax that does something first."""

    def softmax(x, axis=-1):
        action(x)
        return ops.softmax(x, axis)

    return softmax


def _raises_system_exit(x):
    sys.exit("enough")


def _recurses(x):
    _recurses(x)


def _asks(x):
    input("how much? ")


def _prints_on_and_on(x):
    while True:
        print("again and again")


def _divides_by_zero(x):
    return 1 / 0


class _BadText(Exception):
    def __str__(self):
        raise ValueError("no text")


def _raises_bad_text(x):
    raise _BadText


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (_raises_system_exit, "tried to end Python"),
        (_recurses, "called itself without end"),
        (_asks, "asked for input"),
        (_prints_on_and_on, "printed without end"),
        (_divides_by_zero, "ZeroDivisionError: division by zero"),
        (_raises_bad_text, "_BadText"),
    ],
)
def test_a_function_that_does_not_return_is_an_error_with_its_line(action, says):
    verdict = check("softmax", softmax_that(action))
    assert verdict.status == "error"
    assert says in verdict.message
    assert "In line" in verdict.message


def test_an_error_shows_the_readers_own_line():
    def softmax(x, axis=-1):
        return np.linalg.inv(x)

    assert "return np.linalg.inv(x)" in str(check("softmax", softmax))


def _loops(x):
    while True:
        pass


def _loops_through_exceptions(x):
    while True:
        try:
            x = x + 1
        except Exception:
            continue


def _loops_through_everything(x):
    while True:
        try:
            x = x + 1
        except:  # noqa: E722
            continue


def _loops_in_text(x):
    class Endless(Exception):
        def __str__(self):
            while True:
                pass

    raise Endless


@pytest.mark.parametrize(
    "action",
    [_loops, _loops_through_exceptions, _loops_through_everything, _loops_in_text],
)
def test_an_endless_loop_is_ended_and_the_message_says_what_cannot_be(
    action, monkeypatch
):
    monkeypatch.setattr(running, "SECONDS", 0.3)
    trace = sys.gettrace()
    start = time.monotonic()
    verdict = check("softmax", softmax_that(action))
    assert time.monotonic() - start < 10
    assert sys.gettrace() is trace
    assert verdict.status == "error"
    assert "took too long" in verdict.message
    assert "from outside" in verdict.message


def test_the_deadline_is_for_all_cases_together(monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.5)

    def pause(x):
        for _ in range(20):
            time.sleep(0.005)

    verdict = check("softmax", softmax_that(pause))
    assert verdict.status == "error"
    assert "took too long" in verdict.message


def test_a_keyboard_interrupt_goes_through_and_leaves_things_as_they_were():
    def interrupt(x):
        raise KeyboardInterrupt

    before = sys.stdout, sys.stderr, sys.gettrace(), np.geterr(), __builtins__["input"]
    with pytest.raises(KeyboardInterrupt):
        check("softmax", softmax_that(interrupt))
    after = sys.stdout, sys.stderr, sys.gettrace(), np.geterr(), __builtins__["input"]
    assert after == before


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (None, "returns None"),
        ([0.5, 0.5], "returns list"),
        (1.0, "returns float"),
        (np.float64(1.0), "returns float64"),
        (np.array(["a"]), "dtype"),
        (np.array([1]), "int64"),
        (np.array([True]), "bool"),
        (np.array([1 + 0j]), "complex128"),
        (np.array([None]), "object"),
        (np.ones((2, 3)), "shape (2, 3)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_wrong_type_shape_or_dtype_is_named(result, says):
    def softmax(x, axis=-1):
        return result

    verdict = check("softmax", softmax)
    assert verdict.status == "wrong"
    assert says in verdict.message


def test_the_shape_that_is_needed_is_written_in_axis_letters():
    def attention(q, k, v, allow=None, scale=None):
        return ops.scaled_dot_product_attention(q, k, v, allow, scale)[..., :1]

    verdict = check("scaled_dot_product_attention", attention)
    assert "(..., T, d_v)" in verdict.message


def test_float64_out_of_float32_is_named_as_a_dtype():
    def softmax(x, axis=-1):
        return ops.softmax(x, axis).astype(np.float64)

    verdict = check("softmax", softmax)
    assert verdict.status == "wrong"
    assert "float64; it needs float32" in verdict.message


def test_the_square_root_of_numpy_is_told_about_float32():
    def attention_weights(q, k, allow=None, scale=None):
        scores = q @ k.swapaxes(-1, -2)
        scores = scores / np.sqrt(q.shape[-1]) if scale is None else scores * scale
        if allow is not None:
            scores = np.where(allow, scores, -np.inf)
        return ops.softmax(scores)

    verdict = check("attention_weights", attention_weights)
    assert verdict.mistake == "promotes_float32"
    assert "np.sqrt" in verdict.message


def test_changing_the_inputs_is_named():
    def softmax(x, axis=-1):
        result = ops.softmax(x, axis)
        x -= 1
        return result

    verdict = check("softmax", softmax)
    assert verdict.status == "wrong"
    assert "changes what it is given: `x`" in verdict.message


@pytest.mark.parametrize("answer", [3, "softmax", [1], {}])
def test_what_is_not_a_function_is_an_error(answer):
    verdict = check("softmax", answer)
    assert verdict.status == "error"
    assert "needs a function" in verdict.message


def test_other_arguments_than_the_librarys_are_named():
    verdict = check("softmax", lambda scores: scores)
    assert verdict.status == "error"
    assert "`softmax(scores)`" in verdict.message
    assert "`softmax(x, axis=-1)`" in verdict.message


def test_a_coroutine_is_a_wrong_type_and_nothing_spills(capsys):
    async def softmax(x, axis=-1):
        return x

    verdict = check("softmax", softmax)
    assert "returns coroutine" in verdict.message
    assert capsys.readouterr() == ("", "")


def test_warnings_and_prints_do_not_spill_but_are_told(capsys):
    def softmax(x, axis=-1):
        print("x has shape", x.shape)
        print("to stderr", file=sys.stderr)
        return np.exp(x * 1e4) / np.exp(x * 1e4).sum()

    text = str(check("softmax", softmax))
    assert capsys.readouterr() == ("", "")
    assert "overflow encountered in exp" in text
    assert "x has shape (1,)" in text


def test_a_right_answer_may_warn():
    def softmax(x, axis=-1):
        warnings.warn("careful", stacklevel=1)
        np.log(np.zeros(1))
        return ops.softmax(x, axis)

    assert check("softmax", softmax).status == "right"


@pytest.mark.parametrize("name", IMPLEMENT)
def test_the_verdict_is_the_same_twice_and_shows_no_address(name):
    def leaks_an_address(*arguments, **options):
        raise ValueError(object())

    wrong = EXERCISES[name].wrong_versions(next(iter(EXERCISES[name].mistakes)))[0]
    for answer in (leaks_an_address, wrong, SOLUTIONS[name], stub):
        one, two = check(name, answer), check(name, answer)
        assert str(one) == repr(one) == str(two)
        assert one._repr_html_() == two._repr_html_()
        assert " at 0x7" not in str(one)


def test_what_the_reader_wrote_is_escaped():
    nasty = "<img src=x onerror=alert(1)>"

    def softmax(x, axis=-1):
        print(nasty)
        raise ValueError(nasty)

    softmax_type = type(nasty, (), {})

    def typed(x, axis=-1):
        return softmax_type()

    for answer in (softmax, typed, softmax_type()):
        verdict = check("softmax", answer)
        assert nasty in verdict.message
        assert "<img" not in verdict._repr_html_()
    assert "<img" not in check("row_sums", nasty)._repr_html_()


# --- predictions ------------------------------------------------------------


@pytest.mark.parametrize("name", PREDICT)
@pytest.mark.parametrize(
    "answer", ["z", 1j, [1], b"a", math.nan, "", 10**400, object()]
)
def test_a_prediction_of_the_wrong_type_is_an_error_with_one_clear_line(name, answer):
    verdict = check(name, answer)
    assert verdict.status == "error"
    assert "this exercise needs" in verdict.message
    assert "\n" not in verdict.message
    assert " at 0x" not in verdict.message


def test_a_letter_may_be_large_and_a_number_need_not_be_exact():
    for letter in (" B", "b)", "(b)", "B."):
        assert check("row_sums", letter).status == "right"
    assert check("spread_of_scores", 16).status == "right"
    assert check("spread_of_scores", np.float32(15.9)).status == "right"
    assert check("spread_of_scores", True).status == "error"


@pytest.mark.parametrize(("answer", "says"), [(40, "too large"), (3, "too small")])
def test_a_number_without_a_name_is_told_its_direction(answer, says):
    verdict = check("spread_of_scores", answer)
    assert (verdict.status, verdict.mistake) == ("wrong", None)
    assert says in verdict.message


def test_the_right_predictions_are_what_one_measures():
    tart, w_v = np.array([2.0, 1.0]), np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert (tart @ w_v).tolist() == [1, -1]

    rows = [[0.3, 0.24, 0.26, 0.2], [0.02, 0.03, 0.9, 0.05], [0.1, 0.7, 0.1, 0.1]]
    assert [max(row) for row in rows] == [0.3, 0.9, 0.7]
    assert ops.entropy(np.array(rows)).round(2).tolist() == [1.98, 0.62, 1.36]

    rng = np.random.default_rng(3)
    weights = ops.attention_weights(rng.normal(size=(5, 4)), rng.normal(size=(3, 4)))
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.isclose(weights[:, 1:].sum(), 5 - weights[:, 0].sum())

    spread = ops.sample_dot_products(rng, 256, 100_000).std()
    assert spread == pytest.approx(EXERCISES["spread_of_scores"].answer, rel=0.02)

    q, k = rng.normal(size=(2, 4, 3))
    assert np.allclose(k @ q.T, (q @ k.T).T)
    swapped = ops.attention_weights(k, q)
    assert np.abs(swapped - ops.attention_weights(q, k).T).max() > 0.1
    assert np.allclose(swapped.T.sum(axis=0), 1)
    assert np.allclose(swapped.T, ops.softmax(q @ k.T / np.sqrt(3), axis=0))

    k = rng.normal(size=(1000, 16, 512))
    weights = ops.attention_weights(k[:, :1], k, scale=1 / 512)[..., 0]
    assert weights.mean() == pytest.approx(np.e / (np.e + 15), abs=0.005)
    assert ops.attention_weights(k[:, :1], k)[..., 0].min() > 0.99

    q = np.full((1, 64), 40, np.float16)
    k = np.stack([q[0], q[0] / np.float16(4)])
    with np.errstate(all="ignore"):
        too_late = ops.softmax(q @ k.T / np.float16(8))
    assert np.isnan(too_late).all()
    assert ops.softmax((q / np.float16(8)) @ k.T).tolist() == [[1, 0]]


# --- work.json --------------------------------------------------------------

OFFSET = 0.0


def _helper(x):
    return np.exp(x - OFFSET)


def softmax_with_helper(x, axis=-1):
    highest = x.max(axis=axis, keepdims=True)
    exps = _helper(x - np.where(np.isneginf(highest), 0, highest))
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)


def test_a_right_answer_is_kept_and_comes_back(work):
    verdict = check("softmax", SOLUTIONS["softmax"])
    assert "Kept in work.json" in verdict.message
    kept = json.loads(work.read_text("utf-8"))
    assert kept["version"] == 1
    assert set(kept["exercises"]) == {"softmax"}
    assert kept["exercises"]["softmax"]["status"] == "right"
    again = load_answer("softmax")
    assert np.allclose(again(np.array([0.0, 1.0])), ops.softmax(np.array([0.0, 1.0])))


def test_what_is_kept_stands_alone_with_its_helpers_and_imports(work):
    check("softmax", softmax_with_helper)
    source = json.loads(work.read_text("utf-8"))["exercises"]["softmax"]["source"]
    assert "import numpy as np" in source
    assert "OFFSET = 0.0" in source
    assert "def _helper" in source
    assert check("softmax", load_answer("softmax"), keep=False).status == "right"


def test_the_library_itself_can_be_kept(work):
    assert check("softmax", ops.softmax).status == "right"


def test_a_prediction_is_kept(work):
    check("row_sums", "B")
    check("spread_of_scores", np.float64(16))
    assert load_answer("row_sums") == "b"
    assert load_answer("spread_of_scores") == 16.0


def test_only_right_answers_are_kept(work):
    check("softmax", np.exp)
    check("row_sums", "a")
    check("softmax", SOLUTIONS["softmax"], keep=False)
    assert not work.exists()


def test_nothing_is_kept_when_switched_off(monkeypatch, work):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")
    assert "Kept" not in check("softmax", SOLUTIONS["softmax"]).message
    assert not work.exists()


def test_a_later_mistake_does_not_lose_the_right_answer(work):
    check("softmax", SOLUTIONS["softmax"])
    before = work.read_bytes()
    check("softmax", np.exp)
    assert work.read_bytes() == before


def test_the_same_answers_give_the_same_bytes(work):
    check("softmax", SOLUTIONS["softmax"])
    check("row_sums", "b")
    before = work.read_bytes()
    work.unlink()
    check("row_sums", "b")
    check("softmax", SOLUTIONS["softmax"])
    assert work.read_bytes() == before


@pytest.mark.parametrize(
    "damaged",
    [
        "{not json",
        "[]",
        '{"version": 1, "exercises": {"softmax": 3}}',
        "\udcff",
    ],
)
def test_a_damaged_record_is_moved_aside_and_never_overwritten(work, damaged):
    raw = damaged.encode("utf-8", "surrogateescape")
    for number in (1, 2):
        work.write_bytes(raw)
        with pytest.raises(ValueError, match=r"work\.json"):
            load_answer("softmax")
        assert "damaged" in str(exercises.progress())
        message = check("softmax", SOLUTIONS["softmax"]).message
        aside = work.with_name(f"work.json.broken-{number}")
        assert aside.name in message
        assert aside.read_bytes() == raw
        assert callable(load_answer("softmax"))


def test_a_record_that_cannot_be_written_does_not_cost_the_verdict(work):
    work.mkdir()
    verdict = check("softmax", SOLUTIONS["softmax"])
    assert verdict.status == "right"
    assert "Not kept" in verdict.message
    assert "work.json" in str(exercises.progress())


def test_a_function_without_a_source_is_right_all_the_same(work):
    space = {"reference": ops.softmax}
    exec("def softmax(x, axis=-1):\n    return reference(x, axis)\n", space)
    for answer in (space["softmax"], lambda x, axis=-1: ops.softmax(x, axis)):
        verdict = check("softmax", answer)
        assert verdict.status == "right"
        assert "Not kept" in verdict.message
    assert not work.exists()


def test_a_function_that_needs_an_array_of_the_notebook_says_which(work):
    verdict = check("softmax", softmax_with_an_array)
    assert verdict.status == "right"
    assert "it uses `ZERO` from outside" in verdict.message
    assert not work.exists()


ZERO = np.zeros(1)


def softmax_with_an_array(x, axis=-1):
    return ops.softmax(x + ZERO[0].astype(x.dtype), axis)


def test_an_answer_not_yet_given_cannot_be_loaded(work):
    with pytest.raises(LookupError, match="no right answer to 'softmax'"):
        load_answer("softmax")
    with pytest.raises(ValueError, match="known exercises"):
        load_answer("softmaks")


def test_progress_counts_by_chapter(work):
    assert "Q, K and V: 0 of 5 right" in str(exercises.progress())
    check("row_sums", "b")
    check("softmax", SOLUTIONS["softmax"])
    text = str(exercises.progress())
    assert "Q, K and V: 2 of 5 right" in text
    assert "Scaling: 0 of 6 right" in text
    assert f"All chapters: 2 of {len(EXERCISES)} right" in text
    assert "2 of 5 right" in exercises.progress()._repr_html_()


def test_other_parts_of_the_record_are_left_alone(work):
    work.write_text(
        '{"version": 1, "language": "en", "exercises":'
        ' {"softmax": {"source": "old", "status": "open", "date": "2025-01-01"}}}',
        "utf-8",
    )
    check("softmax", SOLUTIONS["softmax"])
    kept = json.loads(work.read_text("utf-8"))
    assert kept["language"] == "en"
    assert kept["exercises"]["softmax"]["date"] == "2025-01-01"
    ast.parse(kept["exercises"]["softmax"]["source"])
