"""Exercises that answer back.

``check(name, answer)`` runs the reader's function, or looks at the reader's
prediction, and says what came of it: which mistake it is, with the smallest
example that shows it. A chapter declares its exercises in a module of its own
in this package, as a list ``EXERCISES``; adding a module adds its exercises.
"""

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from attnbook.exercises import _work
from attnbook.exercises._exercise import Exercise, Implement, Predict, case, say
from attnbook.exercises._kept import Kept
from attnbook.exercises._progress import Progress
from attnbook.exercises._verdict import Verdict

__all__ = [
    "EXERCISES",
    "Exercise",
    "Implement",
    "Kept",
    "Predict",
    "Verdict",
    "case",
    "check",
    "kept",
    "load_answer",
    "progress",
]


def _discover() -> dict[str, Exercise]:
    found: dict[str, Exercise] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        if module.name.startswith("_"):
            continue
        chapter = importlib.import_module(f"{__name__}.{module.name}")
        for exercise in chapter.EXERCISES:
            if exercise.name in found:
                raise ValueError(f"two exercises are called {exercise.name!r}")
            found[exercise.name] = exercise
    # sorted() keeps the order that a module gives to its own exercises.
    return dict(sorted(found.items(), key=lambda item: item[1].chapter))


EXERCISES: Mapping[str, Exercise] = MappingProxyType(_discover())


def _exercise(name: str) -> Exercise:
    try:
        return EXERCISES[name]
    except (KeyError, TypeError):
        raise ValueError(
            f"name: there is no exercise {name!r}; known exercises: "
            f"{', '.join(EXERCISES)}"
        ) from None


def check(name: str, answer: object, *, keep: bool = True) -> Verdict:
    """Look at an answer and say what came of it.

    A right answer is kept in ``work.json`` in the working directory, where
    ``load_answer`` and ``progress`` find it, unless ``ATTNBOOK_WORK=off``.

    Args:
        name: the exercise.
        answer: the reader's function, or the reader's prediction.
        keep: whether a right answer counts as the reader's own; the book's
            solutions say False.

    Returns:
        The verdict; it shows itself in a notebook and prints as text.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = _exercise(name)
    # The reader's function may change the working directory.
    file = None if _work.switched_off() or not keep else _work.path()
    verdict = exercise.check(answer)
    if verdict.status != "right" or file is None:
        return verdict
    closing = (*verdict.closing, _keep(exercise, answer, file))
    return Verdict(name, "right", sentences=verdict.sentences, closing=closing)


def _keep(exercise: Exercise, answer: Any, file: Any) -> str:
    """Keep a right answer and say so, or say why it could not be kept."""
    try:
        if isinstance(exercise, Predict):
            source = repr(exercise.read(answer))
        else:
            source = _work.source_of(answer)
            alone = _work.rebuild(source, exercise.name, file.name)
            if exercise.check(alone).status != "right":
                return say("not_kept.alone")
        moved = _work.keep(file, exercise.name, source)
    except _work.NoSource as error:
        return say(f"not_kept.{error.reason}", what=error.what)
    except _work.Busy:
        return say("not_kept.busy", file=file.name)
    except OSError as error:
        return say("not_kept.file", file=file.name, error=error.strerror or error)
    except Exception as error:
        # Whatever the rebuilt source does, the verdict stands.
        return say("not_kept.error", error=f"{type(error).__name__}: {error}")
    if moved is None:
        return say("kept", file=file.name)
    aside, why = moved
    if isinstance(why, _work.OtherVersion):
        return say("kept_beside", file=file.name, moved=aside.name, version=why.version)
    return say("kept_anew", file=file.name, moved=aside.name)


def load_answer(name: str) -> Callable | str | bool | float:
    """Return the reader's own right answer, rebuilt from what ``check`` kept.

    Args:
        name: the exercise.

    Returns:
        The function, or what was predicted.

    Raises:
        ValueError: there is no exercise of that name, or the record is damaged
            or of another version of the book.
        LookupError: no right answer has been kept yet.
    """
    exercise = _exercise(name)
    file = _work.path()
    try:
        entry = _work.read(file)["exercises"].get(name)
    except _work.BrokenWork as error:
        raise ValueError(f"{file.name} cannot be read: it is {error}") from None
    if entry is None or entry.get("status") != "right":
        raise LookupError(
            f"{file.name} has no right answer to {name!r} yet; solve the exercise "
            f"in {exercise.chapter} and run its check"
        )
    try:
        if not isinstance(exercise, Predict):
            return _work.rebuild(entry["source"], name, file.name)
        answer = exercise.read(ast.literal_eval(entry["source"]))
    except Exception as error:  # somebody else's text can raise anything
        trouble = f"{type(error).__name__}: {error}"
    else:
        if answer is not None:
            return answer
        trouble = f"{entry['source']} is not an answer"
    raise ValueError(
        f"{file.name}: what is kept for {name!r} cannot be used ({trouble}); run "
        f"the check of your answer in {exercise.chapter} again"
    )


def kept(names: Iterable[str] | None = None, run: str = "no") -> Kept:
    """Return the reader's own functions from ``work.json``, each checked again.

    To use them is to run what the file says, and a file can come from anybody. So
    nothing is run unless ``run`` says "yes"; otherwise they are only named. Of each
    source nothing but imports, constants and functions is run, under the check's
    deadline; what the functions do when they are called is theirs.

    A source that was right once may have been altered since, or the check may have
    become stricter; what does not pass now is left out, and the reason is kept.

    Args:
        names: the functions that can be used; None: all that are exercises. Names
            that are no exercise are passed over.
        run: "yes" or "no".

    Returns:
        The functions, by the names of their exercises. Empty if there are none,
        if ``run`` is "no", or with ``ATTNBOOK_WORK=off``.

    Raises:
        ValueError: ``run`` is neither "yes" nor "no".
    """
    if run not in ("yes", "no"):
        raise ValueError(f'run is {run!r}; it must be "yes" or "no"')
    wanted = EXERCISES if names is None else names
    kinds = [n for n in wanted if isinstance(EXERCISES.get(n), Implement)]
    entries, trouble = _entries()
    there = [n for n in kinds if entries.get(n, {}).get("status") == "right"]
    if run == "no":
        return Kept(trouble=trouble, waiting=tuple(there))
    functions: dict[str, Callable] = {}
    left_out: dict[str, str] = {}
    for name in there:
        try:
            function = _work.rebuild(entries[name]["source"], name, "work.json")
            status = EXERCISES[name].check(function).status
        except Exception as error:  # somebody else's text can raise anything
            left_out[name] = f"{type(error).__name__}: {error}"
            continue
        if status == "right":
            functions[name] = function
        else:
            left_out[name] = say("no_longer_right")
    return Kept(functions, left_out, trouble)


def _entries() -> tuple[dict[str, dict], str]:
    """Return what is kept, by exercise, and what is wrong with the record."""
    if _work.switched_off():
        return {}, ""
    file = _work.path()
    try:
        return _work.read(file)["exercises"], ""
    except _work.OtherVersion as error:
        return {}, say("other_version", file=file.name, version=error.version)
    except _work.BrokenWork:
        return {}, say("broken", file=file.name)
    except OSError as error:
        return {}, say("unread", file=file.name, error=error.strerror or error)


def progress() -> Progress:
    """Return how many exercises have a right answer in ``work.json``, by chapter."""
    entries, trouble = _entries()
    names = {name for name, e in entries.items() if e.get("status") == "right"}
    chapters: dict[str, list[tuple[str, bool]]] = {}
    for exercise in EXERCISES.values():
        solved = exercise.name in names
        chapters.setdefault(exercise.chapter, []).append((exercise.name, solved))
    return Progress(chapters, trouble)
