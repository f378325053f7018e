"""The two kinds of exercise a chapter can declare, and how each is checked."""

import inspect
import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnbook.exercises._run import Run, Watch, run
from attnbook.exercises._verdict import Verdict
from attnbook.language import translate

_SHOWN = 30  # the most numbers in an array that is still shown whole


def say(string: str, **values: object) -> str:
    return translate(f"exercise.check.{string}", **values)


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What every exercise has.

    Attributes:
        name: what ``check`` is called with.
        chapter: the stem of the chapter's notebook, such as "01_qkv".
        kind: "predict", "implement" or "break it".
        mistakes: the named mistakes; ``exercise.<name>.<mistake>`` is what the
            catalogues say about each.
        difficulty: from 1 to 3.
        minutes: how long it takes.
        reread: the section to go back to, "<chapter>.<word>"; the catalogues
            have its title as ``exercise.section.<reread>``.
        sections: the section for single mistakes, where it is another one.
    """

    name: str
    chapter: str
    kind: str
    difficulty: int
    minutes: int
    reread: str
    mistakes: Mapping[str, Any]
    sections: Mapping[str, str] = field(default_factory=dict)

    def say(self, string: str) -> str:
        return translate(f"exercise.{self.name}.{string}")

    def section(self, mistake: str | None = None) -> str:
        """Return the id of the section that explains a mistake."""
        return self.sections.get(mistake or "", self.reread)

    def _verdict(
        self,
        status: str,
        *sentences: str,
        mistake: str | None = None,
        example: Sequence[tuple[str, str]] = (),
        section: str | None = None,
    ) -> Verdict:
        closing = ()
        if status in ("mistake", "wrong"):
            section = section or self.section(mistake)
            chapter = translate(f"exercise.chapter.{section.split('.')[0]}")
            title = translate(f"exercise.section.{section}")
            closing = (say("reread", section=title, chapter=chapter),)
        return Verdict(self.name, status, mistake, sentences, tuple(example), closing)


# --- implement --------------------------------------------------------------


def case(**arguments: object) -> dict[str, object]:
    """Write down the arguments of one call, by the names of the library."""
    return arguments


@dataclass(frozen=True, kw_only=True)
class Implement(Exercise):
    """Write a function that the library has too.

    Attributes:
        reference: the library's function; what it returns is right.
        returns: the axes of what it returns, for messages: "(..., T, d_v)".
        cases: the arguments of each call; tried from the smallest to the largest.
        extremes: calls tried after those, in which only the careful are right:
            large scores, −∞, a query with nobody to look at, float32.
        mistakes: each a function that is wrong in one way, or several such; they
            take all the arguments of the reference, and one variant more.
        variants: one mistake seldom comes alone, so each is tried with every one
            of these as its last argument.
        unnamed: the section to go back to after a failure without a name, where
            it is another one: by "dtype", or by the optional argument without
            which the answer is right.
    """

    reference: Callable[..., np.ndarray]
    returns: str
    cases: Sequence[Mapping[str, Any]]
    extremes: Sequence[Mapping[str, Any]]
    mistakes: Mapping[str, Callable | tuple[Callable, ...]]
    variants: Sequence[Any]
    unnamed: Mapping[str, str] = field(default_factory=dict)
    kind: str = "implement"

    def __post_init__(self) -> None:
        for name in ("cases", "extremes"):
            ordered = tuple(sorted(getattr(self, name), key=_size))
            object.__setattr__(self, name, ordered)

    def wrong_versions(self, mistake: str) -> list[Callable[..., np.ndarray]]:
        """Return each way in which a named mistake comes, as a function."""
        functions = self.mistakes[mistake]
        functions = functions if isinstance(functions, tuple) else (functions,)
        return [self._version(f, v) for f in functions for v in self.variants]

    def _version(self, function: Callable, variant: Any) -> Callable:
        signature = inspect.signature(self.reference)

        def version(*args: Any, **kwargs: Any) -> np.ndarray:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return function(*bound.arguments.values(), variant)

        return version

    def check(self, answer: object) -> Verdict:
        if answer is None or answer is ...:
            return self._verdict("not started", say("not_started"))
        if not callable(answer):
            return self._verdict(
                "error", say("not_a_function", type=type(answer).__name__)
            )
        missing = self._signature_problem(answer)
        if missing:
            return self._verdict("error", missing)

        watch = Watch()
        outcomes: list[_Outcome] = []
        for arguments in (*self.cases, *self.extremes):
            outcome = self._try(answer, arguments, watch)
            if outcome.run.stopped == "not implemented" and not outcomes:
                return self._verdict("not started", say("not_started"))
            outcomes.append(outcome)
            if outcome.run.stopped in ("time", "output", "input", "exit"):
                return self._error(outcome)
        failed = next((o for o in outcomes if o.problem), None)
        if failed is None:
            return self._verdict("right", say("right"))
        return self._named(outcomes) or self._unnamed(failed, outcomes)

    def _signature_problem(self, answer: Callable) -> str:
        """Say what is missing if the answer cannot take the reference's arguments."""
        needed = inspect.signature(self.reference)
        args, kwargs = self._call_with({name: None for name in needed.parameters})
        try:
            own = inspect.signature(answer)
        except (TypeError, ValueError):  # some compiled functions do not tell
            return ""
        try:
            own.bind(*args, **kwargs)
            required = [n for n in needed.parameters if n not in kwargs]
            own.bind(*required)
        except TypeError:
            return say(
                "signature",
                needed=f"{self.name}{_plain(needed)}",
                own=f"{self.name}{_plain(own)}",
            )
        return ""

    def _call_with(self, arguments: Mapping[str, Any]) -> tuple[tuple, dict]:
        """Pass what is required by position and what is optional by name."""
        parameters = inspect.signature(self.reference).parameters
        required = [n for n, p in parameters.items() if p.default is p.empty]
        args = tuple(arguments[name] for name in required)
        kwargs = {n: a for n, a in arguments.items() if n not in required}
        return args, kwargs

    def _try(
        self, answer: Callable, arguments: Mapping[str, Any], watch: Watch
    ) -> "_Outcome":
        mine = {name: _copy(value) for name, value in arguments.items()}
        args, kwargs = self._call_with(mine)
        done = run(answer, args, kwargs, watch)
        changed = [n for n, value in arguments.items() if _changed(value, mine[n])]
        args, kwargs = self._call_with(arguments)
        with np.errstate(all="ignore"):
            expected = self.reference(*args, **kwargs)
        if isinstance(expected, int):
            expected = np.asarray(expected)
            done = replace(done, result=_no_axes(done.result))
        return _Outcome(arguments, done, expected, tuple(changed))

    def _named(self, outcomes: "Sequence[_Outcome]") -> Verdict | None:
        """Look for the wrong version that does what the answer does.

        On every case and in dtype first; then whatever the dtype; then on the
        ordinary cases alone, for whoever makes two mistakes corrects one first;
        then on the first of those that fail, before any optional argument that
        the answer may not look at yet.
        """
        ordinary = outcomes[: len(self.cases)]
        for tried, dtypes in ((outcomes, True), (outcomes, False), (ordinary, False)):
            failed = next((o for o in tried if o.differs(dtypes)), None)
            if failed is None:
                continue
            mistake = next(self._explaining(tried, dtypes), None)
            if mistake is not None:
                return self._mistake(mistake[0], failed)
        tried, failed = self._first_groups(ordinary)
        if failed is None or sum(o.differs(False) for o in tried) < 2:
            return None  # on a single case, mistakes look alike
        # Several may do the same on those; the one that is right on most of the
        # others says the least that is not so.
        found = list(self._explaining(tried, False))
        if not found:
            return None
        mistake, _ = max(found, key=lambda pair: self._right(pair[1]))
        return self._mistake(mistake, failed)

    def _mistake(self, mistake: str, failed: "_Outcome") -> Verdict:
        return self._verdict(
            "mistake",
            say("mistake", what=self.say(mistake)),
            mistake=mistake,
            example=self._example(failed),
        )

    def _first_groups(
        self, outcomes: "Sequence[_Outcome]"
    ) -> "tuple[list[_Outcome], _Outcome | None]":
        """Return the cases up to the first group that fails, and its first failure.

        A group is the cases that give the same optional arguments: first those
        that give none, then those with one; the last parameter is the simplest.
        Stacks of matrices come after all of these.
        """
        names = [
            n
            for n, p in inspect.signature(self.reference).parameters.items()
            if p.default is not p.empty
        ]
        groups: dict[tuple, list[_Outcome]] = {}
        for outcome in outcomes:
            given = [-i for i, n in enumerate(names) if n in outcome.arguments]
            stacked = any(np.ndim(a) > 2 for a in outcome.arguments.values())
            key = (stacked, len(given), *sorted(given))
            groups.setdefault(key, []).append(outcome)
        tried: list[_Outcome] = []
        for key in sorted(groups):
            tried += groups[key]
            failed = next((o for o in groups[key] if o.differs(False)), None)
            if failed is not None:
                return tried, failed
        return tried, None

    def _explaining(
        self, tried: "Sequence[_Outcome]", dtypes: bool
    ) -> Iterator[tuple[str, Callable]]:
        """Give the mistakes that do what the answer does, with the wrong version."""
        for mistake in self.mistakes:
            for version in self.wrong_versions(mistake):
                if self._explains(version, tried, dtypes):
                    yield mistake, version

    def _right(self, version: Callable) -> int:
        """Count the ordinary cases on which a wrong version is right."""
        watch = Watch()
        outcomes = (self._try(version, arguments, watch) for arguments in self.cases)
        return sum(not outcome.differs(False) for outcome in outcomes)

    def _explains(
        self, version: Callable, outcomes: "Sequence[_Outcome]", dtypes: bool
    ) -> bool:
        for outcome in outcomes:
            args, kwargs = self._call_with(
                {name: _copy(value) for name, value in outcome.arguments.items()}
            )
            try:
                wrong = version(*args, **kwargs)
            except Exception as error:
                if outcome.run.error_type != type(error).__name__:
                    return False
            else:
                if outcome.run.stopped or not same(
                    outcome.run.result, wrong, dtypes=dtypes
                ):
                    return False
        return True

    def _unnamed(self, failed: "_Outcome", outcomes: "Sequence[_Outcome]") -> Verdict:
        if failed.problem == "error":
            return self._error(failed)
        expected, result = failed.expected, failed.run.result
        if failed.problem == "type":
            what = say("type", type=type(result).__name__)
            if result is None:
                what = say("none")
            elif expected.ndim == 0:
                what = say("whole_number", type=type(result).__name__)
        elif failed.problem == "shape":
            what = say(
                "shape",
                received=result.shape,
                axes=self.returns,
                expected=expected.shape,
            )
        elif failed.problem == "dtype" and expected.ndim == 0:
            what = say("whole_number", type=result.dtype)
        elif failed.problem == "dtype":
            what = say("dtype", received=result.dtype, expected=expected.dtype)
        elif failed.problem == "changed":
            names = ", ".join(f"`{name}`" for name in failed.changed)
            what = say("changed", names=names)
        else:
            what = say("wrong")
        section = self.unnamed.get(self._cause(failed, outcomes))
        example = self._example(failed)
        return self._verdict("wrong", what, example=example, section=section)

    def _cause(self, failed: "_Outcome", outcomes: "Sequence[_Outcome]") -> str:
        """Return "dtype", or the optional argument without which all is right."""
        if failed.problem == "dtype":
            return "dtype"
        wrong = [set(o.arguments) for o in outcomes if o.problem]
        shared = [n for n in self.unnamed if all(n in given for given in wrong)]
        return shared[0] if shared else ""

    def _error(self, outcome: "_Outcome") -> Verdict:
        done = outcome.run
        known = {"not implemented": "exception"}
        reason = known.get(done.stopped, done.stopped)
        sentences = [say(f"stopped.{reason}", error=done.error)]
        if done.line is not None:
            source = f" {done.source}" if done.source else ""
            sentences.append(say("line", line=done.line) + source)
        return self._verdict("error", *sentences, example=self._arguments(outcome))

    def _arguments(self, outcome: "_Outcome") -> list[tuple[str, str]]:
        shown = [(f"{n} =", _text(v)) for n, v in outcome.arguments.items()]
        return [(say("called_with"), ""), *shown, *_printed(outcome.run)]

    def _example(self, failed: "_Outcome") -> list[tuple[str, str]]:
        expected, done = failed.expected, failed.run
        lines = [(say("smallest"), "")]
        lines += [(f"{n} =", _text(v)) for n, v in failed.arguments.items()]
        if done.stopped:
            return [
                *lines,
                (say("expected"), _text(expected)),
                (say("received"), done.error),
            ]
        result = done.result
        if failed.problem == "changed":
            return lines
        if failed.problem == "value" and expected.size > _SHOWN:
            wrong = ~_close(result, expected)
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            index = ", ".join(map(str, place))
            lines += [
                (say("expected_at", index=index), _number(expected[place])),
                (say("received_at", index=index), _number(result[place])),
            ]
        else:
            dtypes = failed.problem == "dtype"
            one, two = _text(expected, dtypes), _text(result, dtypes)
            lines += [(say("expected"), one), (say("received"), two)]
            if one == two and failed.problem == "value":
                difference = np.nanmax(np.abs(result - expected))
                lines.append((say("difference"), f"{difference:.1g}"))
        if done.warned:
            lines.append((say("warned"), "; ".join(done.warned[:3])))
        return [*lines, *_printed(done)]


@dataclass(frozen=True)
class _Outcome:
    """One case, tried: what the answer did with it, and what is right."""

    arguments: Mapping[str, Any]
    run: Run
    expected: np.ndarray
    changed: tuple[str, ...]

    @property
    def problem(self) -> str:
        """What is wrong first of all; empty if nothing is."""
        result = self.run.result
        if self.run.stopped:
            return "error"
        if not isinstance(result, np.ndarray):
            return "type"
        if result.shape != self.expected.shape:
            return "shape"
        if result.dtype.kind != self.expected.dtype.kind:
            return "dtype"
        if not _close(result, self.expected).all():
            return "value"
        if result.dtype != self.expected.dtype:
            return "dtype"
        return "changed" if self.changed else ""

    def differs(self, dtypes: bool) -> bool:
        """Whether the result differs, with or without a look at its dtype."""
        if self.run.stopped:
            return True
        return not same(self.run.result, self.expected, dtypes=dtypes)


def same(one: object, two: object, *, dtypes: bool = True) -> bool:
    """Tell whether two results are the same array, but for rounding."""
    one, two = _no_axes(one), _no_axes(two)
    if not (isinstance(one, np.ndarray) and isinstance(two, np.ndarray)):
        return False
    if one.shape != two.shape or (dtypes and one.dtype != two.dtype):
        return False
    # Floating point like floating point, truth values like truth values.
    alike = one.dtype.kind == two.dtype.kind and one.dtype.kind in "fbiu"
    return alike and bool(_close(one, two).all())


def _no_axes(result: object) -> object:
    """Give a plain number as an array without axes, anything else as it is."""
    if isinstance(result, bool) or not isinstance(result, int | float | np.integer):
        return result
    whole = int(result) == result if math.isfinite(result) else False
    return np.asarray(int(result) if whole else float(result))


def _close(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    coarse = np.float32 in (one.dtype, two.dtype)
    relative, absolute = (1e-4, 1e-6) if coarse else (1e-7, 1e-10)
    with np.errstate(all="ignore"):
        return np.isclose(one, two, rtol=relative, atol=absolute, equal_nan=True)


def _size(arguments: Mapping[str, Any]) -> int:
    return sum(np.size(value) for value in arguments.values() if value is not None)


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _changed(before: Any, after: Any) -> bool:
    if not isinstance(before, np.ndarray):
        return False
    return (
        before.shape != after.shape
        or before.dtype != after.dtype
        or before.tobytes() != after.tobytes()
    )


def _plain(signature: inspect.Signature) -> str:
    """Write a signature without its annotations."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


def _number(value: Any) -> str:
    return str(value) if isinstance(value, np.bool_) else f"{float(value):.4g}"


def _text(value: Any, dtype: bool = False) -> str:
    """Show an argument or a result, rounded; a large array by its shape.

    ``dtype``: whether to name the usual dtype too, float64.
    """
    if isinstance(value, np.ndarray):
        # Objects show their addresses.
        if value.size > _SHOWN or value.dtype.hasobject:
            return say("array", shape=value.shape, dtype=value.dtype)
        # Adding 0 makes 0 of −0, whose sign would only be a riddle.
        shown = np.asarray(value) + 0.0 if value.dtype.kind == "f" else value
        text = np.array2string(
            shown, precision=3, suppress_small=True, max_line_width=60
        )
        dtype = dtype or value.dtype == np.float32
        return f"{text}  ({value.dtype})" if dtype else text
    if value is None or type(value) in (int, float, bool):
        return str(value)
    if isinstance(value, np.generic):
        return _number(value) if np.isrealobj(value) else type(value).__name__
    return type(value).__name__


def _printed(done: Run) -> list[tuple[str, str]]:
    if not done.printed.strip():
        return []
    lines = done.printed.strip().splitlines()
    text = "\n".join(line[:80] for line in lines[:10])
    return [(say("printed"), text + ("\n…" if len(lines) > 10 else ""))]


# --- predict, break it ------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Predict(Exercise):
    """Commit to a letter, a number or True or False before anything is run.

    Attributes:
        answer: what is right: "a" to "d", a bool, or a number.
        mistakes: the tempting wrong answers, by the name of the thought behind.
        tolerance: how far off a number may be, relative to the right one.
    """

    answer: str | bool | float
    mistakes: Mapping[str, str | bool | float]
    tolerance: float = 0.02
    kind: str = "predict"

    def check(self, answer: object) -> Verdict:
        if answer is None or answer is ...:
            return self._verdict("not started", say("no_answer"))
        given = self.read(answer)
        if given is None:
            return self._verdict("error", self._needs(answer))
        if self._equal(given, self.answer):
            return self._verdict("right", say("right_because", why=self.say("right")))
        for mistake, tempting in self.mistakes.items():
            if self._equal(given, tempting):
                return self._verdict(
                    "mistake", say("mistake", what=self.say(mistake)), mistake=mistake
                )
        if isinstance(given, float):
            size = "too_large" if given > self.answer else "too_small"
            return self._verdict("wrong", say(size))
        return self._verdict("wrong", say("wrong_answer"))

    def choices(self) -> list[str]:
        """Return the letters one can choose from; empty if it is not a choice."""
        if not isinstance(self.answer, str):
            return []
        return sorted([self.answer, *self.mistakes.values()])

    def read(self, answer: object) -> str | bool | float | None:
        """Return the answer as the type it needs, or None if it is not one."""
        if isinstance(answer, np.ndarray) and answer.ndim == 0:
            answer = answer[()]  # what NumPy's own functions give for a number
        if isinstance(self.answer, str):
            letter = (
                answer.strip(" \t\n().:").lower() if isinstance(answer, str) else ""
            )
            return letter if letter in self.choices() else None
        if isinstance(self.answer, bool):
            return bool(answer) if isinstance(answer, bool | np.bool_) else None
        if isinstance(answer, bool | np.bool_) or not isinstance(answer, numbers.Real):
            return None
        try:
            number = float(answer)
        except (OverflowError, ValueError, TypeError):
            return None
        return number if math.isfinite(number) else None

    def _equal(self, given: str | bool | float, other: str | bool | float) -> bool:
        if isinstance(given, float):
            return math.isclose(
                given, other, rel_tol=self.tolerance, abs_tol=self.tolerance / 100
            )
        return given == other

    def _needs(self, answer: object) -> str:
        shown = type(answer).__name__
        if type(answer) in (bool, int, float, str) and len(repr(answer)) <= 40:
            shown = repr(answer)
        if isinstance(self.answer, str):
            letters = ", ".join(f'"{letter}"' for letter in self.choices())
            return say("needs_letter", letters=letters, answer=shown)
        needs = "needs_bool" if isinstance(self.answer, bool) else "needs_number"
        return say(needs, answer=shown)
