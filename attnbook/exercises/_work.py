"""The reader's right answers, kept in ``work.json`` beside the notebook.

``{"version": 1, "exercises": {name: {"source": …, "status": "right"}}}``; the
page's storage and its export file have the same form. A source stands alone:
it carries the imports, constants and helpers that the function uses, so that a
later chapter can run it.
"""

import ast
import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

VERSION = 1


class BrokenWork(ValueError):
    """``work.json`` is not what this version of the book writes."""


def switched_off() -> bool:
    """Tell whether answers are not kept: tests and ``make notebooks`` say so."""
    return os.environ.get("ATTNBOOK_WORK", "").lower() == "off"


def path() -> Path:
    """Return where the answers are kept."""
    return Path.cwd() / "work.json"


def read(file: Path) -> dict[str, Any]:
    """Return what is kept; nothing yet is an empty record.

    Raises:
        BrokenWork: the file is damaged or of another version.
        OSError: the file cannot be read.
    """
    try:
        work = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {"version": VERSION, "exercises": {}}
    except (ValueError, RecursionError):
        raise BrokenWork("not JSON") from None
    whole = (
        isinstance(work, dict)
        and work.get("version") == VERSION
        and isinstance(work.get("exercises"), dict)
        and all(
            isinstance(entry, dict) and isinstance(entry.get("source"), str)
            for entry in work["exercises"].values()
        )
    )
    if not whole:
        raise BrokenWork("not a record of answers")
    return work


def keep(file: Path, name: str, source: str) -> Path | None:
    """Record a right answer.

    Returns:
        Where a damaged record was moved to, if there was one.

    Raises:
        OSError: the file cannot be written.
    """
    moved = None
    try:
        work = read(file)
    except BrokenWork:
        moved = _aside(file)
        work = read(file)
    entry = work["exercises"].get(name, {})
    work["exercises"][name] = {**entry, "source": source, "status": "right"}
    text = json.dumps(work, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    # Written beside it and then put in its place: never half a file.
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text, "utf-8")
    draft.replace(file)
    return moved


def _aside(file: Path) -> Path:
    number = 1
    while (target := file.with_name(f"{file.name}.broken-{number}")).exists():
        number += 1
    return file.rename(target)


# --- the source of an answer ------------------------------------------------


class NoSource(ValueError):
    """The source of a function cannot be had, or would not stand alone."""


def source_of(function: Callable) -> str:
    """Return a module's text that defines ``function`` and what it uses.

    Raises ``NoSource``, with the name that stands in the way.
    """
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise NoSource(type(function).__name__)
    parts: dict[str, str] = {}
    _collect(function, function.__name__, parts)
    imports = sorted(t for t in parts.values() if t.startswith(("import ", "from ")))
    rest = [t for t in parts.values() if t not in imports]
    blocks = ["\n".join(imports)] if imports else []
    return "\n\n\n".join([*blocks, *rest]) + "\n"


def rebuild(source: str, name: str, of: str) -> Callable:
    """Run a source and return the function in it.

    Args:
        source: what ``source_of`` gave.
        name: the name of the exercise, and usually that of the function.
        of: shown as the file's name in tracebacks.
    """
    space: dict[str, Any] = {"__name__": f"attnbook_work.{name}"}
    exec(compile(source, of, "exec"), space)
    if callable(space.get(name)):
        return space[name]
    # The function stands last; the reader gave it another name.
    last = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)][-1]
    return space[last.name]


def _collect(function: FunctionType, name: str, parts: dict[str, str]) -> None:
    """Put the sources of what a function uses into ``parts``, it itself last."""
    if function.__closure__:
        raise NoSource(function.__code__.co_freevars[0])
    try:
        text = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        raise NoSource(name) from None
    if not text.startswith(("def ", "@")) or function.__name__ != name:
        raise NoSource(name)
    parts[name] = ""  # on the way: functions may call each other
    for used in _names(function.__code__):
        if used not in parts and used in function.__globals__:
            _use(function.__globals__[used], used, function.__module__, parts)
    del parts[name]
    parts[name] = text


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _use(value: Any, name: str, home: str, parts: dict[str, str]) -> None:
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
        if value.__name__ == name:
            parts[name] = f"import {name}"
    elif isinstance(value, FunctionType) and value.__module__ == home:
        _collect(value, name, parts)
    elif (module := _module_with(value)) is not None:
        own = value.__name__
        parts[name] = f"from {module} import {own}" + (
            "" if own == name else f" as {name}"
        )
    elif _is_literal(value):
        parts[name] = f"{name} = {value!r}"
    else:
        raise NoSource(name)


def _module_with(value: Any) -> str | None:
    """Return the module a function or class can be imported from."""
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(own, str) or module == "__main__":
        return None
    found = getattr(sys.modules.get(module), own, None)
    return module if found is value else None


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_literal(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)
