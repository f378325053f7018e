"""The reader's right answers, kept in ``work.json`` beside the notebook.

``{"version": 1, "exercises": {name: {"source": …, "status": "right"}}}``; the
page's storage and its export file have the same form. A source stands alone:
it carries the imports, constants and helpers that the function uses, so that a
later chapter can run it.
"""

import ast
import errno
import inspect
import json
import math
import os
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TextIO

from attnbook.exercises._run import Watch, run

try:
    import fcntl
except ImportError:  # Windows, the browser
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

VERSION = 1
PATIENCE = 10.0  # seconds to wait while other notebooks keep their answers


class BrokenWork(ValueError):
    """``work.json`` is damaged."""


class OtherVersion(BrokenWork):
    """``work.json`` was written by another version of the book."""

    def __init__(self, version: object) -> None:
        super().__init__(f"of version {version!r}, and this book reads {VERSION}")
        self.version = version


class Busy(Exception):
    """Other notebooks kept ``work.json`` locked for longer than we wait."""


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
        # Some editors put a mark before the text, which is no damage.
        work = json.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {"version": VERSION, "exercises": {}}
    except (ValueError, RecursionError):
        raise BrokenWork("damaged: not JSON") from None
    version = work.get("version") if isinstance(work, dict) else None
    if type(version) is int and version != VERSION:
        raise OtherVersion(version)
    whole = (
        version == VERSION
        and isinstance(work.get("exercises"), dict)
        and all(
            isinstance(entry, dict) and isinstance(entry.get("source"), str)
            for entry in work["exercises"].values()
        )
    )
    if not whole:
        raise BrokenWork("damaged: not a record of answers")
    return work


def keep(file: Path, name: str, source: str) -> tuple[Path, BrokenWork] | None:
    """Record a right answer. Several notebooks may do so at once.

    Returns:
        Where a record that could not be read was moved to, and why, if there
        was one.

    Raises:
        OSError: the file cannot be written.
        Busy: others have been writing all the time.
    """
    file = file.resolve()  # a link stays one
    _refuse_read_only(file)
    with _alone(file):
        moved = None
        try:
            work = read(file)
        except BrokenWork as error:
            moved = _aside(file), error
            work = read(file)
        entry = work["exercises"].get(name, {})
        work["exercises"][name] = {**entry, "source": source, "status": "right"}
        text = json.dumps(work, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        # Written beside it and then put in its place: never half a file.
        draft = file.with_name(f"{file.name}.{uuid.uuid4().hex}.new")
        try:
            draft.write_text(text, "utf-8")
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    return moved


def _refuse_read_only(file: Path) -> None:
    """Raise PermissionError where a replacement would get round a protection."""
    with suppress(FileNotFoundError):
        if not file.stat().st_mode & 0o222 or not os.access(file, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process at a time read, change and write the record."""
    if fcntl is None and msvcrt is None:  # in the browser
        yield
        return
    path = file.with_name(f"{file.name}.lock")
    end = time.monotonic() + PATIENCE
    while True:
        with path.open("a") as lock:
            # Who waited for a lock that has been deleted since holds nothing.
            if _locked(lock) and _is_at(path, lock):
                try:
                    yield
                finally:
                    with suppress(OSError):  # Windows keeps what is open
                        path.unlink()
                return
        if time.monotonic() > end:
            raise Busy
        time.sleep(0.01)


def _locked(lock: TextIO) -> bool:
    """Try to take a lock; closing the file gives it back, as does any end."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        # Any other error says that this file system has no locks: go without.
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True


def _is_at(path: Path, lock: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False


def _aside(file: Path) -> Path:
    number = 1
    while (target := file.with_name(f"{file.name}.broken-{number}")).exists():
        number += 1
    return file.rename(target)


# --- the source of an answer ------------------------------------------------


class NoSource(ValueError):
    """The source of a function cannot be had, or would not stand alone.

    Attributes:
        reason: "library", "lambda", "not_def", "outside" or "source".
        what: the name that stands in the way.
    """

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(f"{reason}: {what}")
        self.reason = reason
        self.what = what


def source_of(function: Callable) -> str:
    """Return a module's text that defines ``function`` and what it uses.

    Raises ``NoSource``, with the name that stands in the way.
    """
    if not isinstance(function, FunctionType):
        raise NoSource("not_def", type(function).__name__)
    if function.__name__ == "<lambda>":
        raise NoSource("lambda", function.__name__)
    if function.__module__.startswith("attnbook."):
        raise NoSource("library", function.__name__)
    parts: dict[str, str] = {}
    _collect(function, function.__name__, parts)
    imports = sorted(t for t in parts.values() if t.startswith(("import ", "from ")))
    rest = [t for t in parts.values() if t not in imports]
    blocks = ["\n".join(imports)] if imports else []
    return "\n\n\n".join([*blocks, *rest]) + "\n"


class Refused(ValueError):
    """A kept source holds more than ``source_of`` gives, or does not end."""


def rebuild(source: str, name: str, of: str) -> Callable:
    """Run a source and return the function in it.

    Only what ``source_of`` gives is run: imports, constants, functions. That says
    nothing about what the function does once it is called.

    Args:
        source: what ``source_of`` gave.
        name: the name of the exercise, and usually that of the function.
        of: shown as the file's name in tracebacks.

    Raises:
        SyntaxError: the source is no Python.
        Refused: it does something else, or fails.
    """
    tree = ast.parse(source, of)
    for statement in tree.body:
        _refuse_unless_plain(statement)
    defined = [s.name for s in tree.body if isinstance(s, ast.FunctionDef)]
    if not defined:
        raise Refused("there is no function in it")
    space: dict[str, Any] = {"__name__": f"attnbook_work.{name}"}
    done = run(exec, (compile(tree, of, "exec"), space), {}, Watch())
    if done.stopped:
        raise Refused(done.error or done.stopped)
    # The function stands last; the reader may have given it another name.
    return space[name if name in defined else defined[-1]]


# What an answer may import: nothing that reads files or starts programs by itself.
MODULES = (
    *("numpy", "attnbook", "math", "cmath", "functools", "itertools", "operator"),
    *("collections", "typing", "string", "fractions", "numbers"),
)


def _refuse_unless_plain(statement: ast.stmt) -> None:
    """Raise ``Refused`` unless running a statement only defines something."""
    match statement:
        case ast.Import(names=names):
            plain = all(_may_import(alias.name) for alias in names)
        case ast.ImportFrom(module=module, level=0):
            plain = _may_import(module)
        case ast.Assign(targets=[ast.Name()], value=value):
            plain = _is_plain(value, ast.Constant)
        case ast.FunctionDef(decorator_list=[], args=args, returns=returns):
            every = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs)
            every = (*every, args.kwarg)
            notes = [argument.annotation for argument in every if argument]
            # These are worked out when the function is defined.
            now = [*args.defaults, *args.kw_defaults, *notes, returns]
            plain = all(_is_plain(e, *_DEFAULTS) for e in now if e is not None)
        case _:
            plain = False
    if not plain:
        line = ast.unparse(statement).split("\n")[0]
        raise Refused(f"only imports, constants and functions are run, not {line!r}")


_DEFAULTS = (ast.Constant, ast.Name, ast.Attribute, ast.Subscript)


def _is_plain(value: ast.expr, *kinds: type[ast.expr]) -> bool:
    """Tell whether an expression is made of literals, and of ``kinds`` of names."""
    allowed = (*kinds, ast.Tuple, ast.List, ast.UnaryOp, ast.unaryop, ast.Load)
    return all(isinstance(node, allowed) for node in ast.walk(value))


def _may_import(module: str | None) -> bool:
    return module is not None and module.split(".")[0] in MODULES


def _collect(function: FunctionType, name: str, parts: dict[str, str]) -> None:
    """Put the sources of what a function uses into ``parts``, it itself last."""
    if function.__closure__:
        raise NoSource("outside", function.__code__.co_freevars[0])
    try:
        text = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        raise NoSource("source", name) from None
    if not text.startswith(("def ", "@")) or function.__name__ != name:
        raise NoSource("source", name)
    parts[name] = ""  # on the way: functions may call each other
    for used in (*_names(function.__code__), *_names_of_header(text)):
        if used not in parts and used in function.__globals__:
            _use(function.__globals__[used], used, function.__module__, parts)
    del parts[name]
    parts[name] = text


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _names_of_header(text: str) -> Iterator[str]:
    """Give the names in defaults and annotations, which the body need not use."""
    (function,) = ast.parse(text).body
    for part in (function.args, function.returns):
        for node in ast.walk(part) if part is not None else ():
            if isinstance(node, ast.Name):
                yield node.id


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
    elif type(value) is float and math.isinf(value):
        # Python has no literal for it, but reads a number too large as one.
        parts[name] = f"{name} = {'-' if value < 0 else ''}1e999"
    elif _is_literal(value):
        parts[name] = f"{name} = {value!r}"
    else:
        raise NoSource("outside", name)


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
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (bool, int, str)
