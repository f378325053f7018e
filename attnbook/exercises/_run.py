"""Run a reader's function so that nothing it does can end or hang the check.

A loop in Python is ended by a deadline, for tracing sees each of its lines.
One endless call inside NumPy is a single line: it can only be stopped from
outside (the kernel's Interrupt, the page's Stop).
"""

import builtins
import inspect
import io
import linecache
import opcode
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

import numpy as np

from attnbook import ops

SECONDS = 10.0  # for all the cases of one check together
CHARACTERS = 100_000  # of output, for one case


class _Stopped(BaseException):
    """Ends the reader's function, through an ``except Exception`` too."""

    reason: str


class _TimeUp(_Stopped):
    """Ends a slow function, even one that catches everything and carries on.

    Python switches tracing off when a trace function raises. A bare ``except``
    that swallows this exception also frees it, and that switches tracing on
    again: the next line, outside the ``try``, ends the loop.
    """

    reason = "time"

    def __init__(self, watch: "Watch") -> None:
        self._watch = watch

    def __del__(self) -> None:
        self._watch.resume(sys._getframe(1))


class _TooMuchOutput(_Stopped):
    reason = "output"


class _AskedForInput(_Stopped):
    reason = "input"


class Watch:
    """The time that the reader's function has, measured while it runs."""

    def __init__(self, seconds: float | None = None) -> None:
        self.left = SECONDS if seconds is None else seconds
        self._end = 0.0
        self._floor: FrameType | None = None  # the frame that calls the function
        self._before: Any = None  # the trace of a debugger or a coverage tool

    def start(self) -> None:
        self._before = sys.gettrace()
        self._end = time.monotonic() + self.left
        self._floor = sys._getframe(1)
        sys.settrace(self._trace)

    def stop(self) -> None:
        sys.settrace(self._before)
        self._floor = None
        self.left = max(self._end - time.monotonic(), 0.0)

    def resume(self, frame: FrameType | None) -> None:
        """Trace again, in the frames too that are running already."""
        if self._floor is None:
            return
        while frame is not None and frame is not self._floor:
            frame.f_trace = self._trace
            frame.f_trace_opcodes = _spins(frame.f_code)
            frame = frame.f_back
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return None  # our own functions run to their end
        if time.monotonic() > self._end:
            raise _TimeUp(self)
        if event == "call":
            frame.f_trace_opcodes = _spins(frame.f_code)
        return self._trace


@lru_cache(maxsize=256)
def _spins(code: CodeType) -> bool:
    """Tell whether some loop of a function is seen by none of its lines.

    Python 3.11 makes one instruction of ``while True: pass``, a jump onto itself,
    and does not call that a new line. Tracing each instruction sees it. That is
    seven times as slow, so it is done only where there is such a jump.
    """
    if sys.version_info >= (3, 12):
        return False
    jump = opcode.opmap["JUMP_BACKWARD"]
    pairs = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    # One back from the next instruction is the jump itself.
    return any(operation == jump and by == 1 for operation, by in pairs)


class _Paper(io.StringIO):
    """Takes what is printed, up to a limit, and cannot be closed."""

    def close(self) -> None:
        pass

    def write(self, text: str) -> int:
        if self.tell() + len(text) > CHARACTERS:
            raise _TooMuchOutput
        return super().write(text)


@dataclass(frozen=True)
class Run:
    """What came of one call.

    ``stopped`` is None if the function returned; else why it did not:
    "time", "output", "input", "exit", "recursion", "not implemented" or
    "exception".
    """

    result: object = None
    stopped: str | None = None
    error: str = ""  # "ValueError: …"
    error_type: str = ""
    line: int | None = None  # where, in the reader's own source
    source: str = ""
    warned: tuple[str, ...] = ()
    printed: str = ""


def run(function: Callable, args: tuple, kwargs: dict, watch: Watch) -> Run:
    """Call ``function`` and say what came of it. Only KeyboardInterrupt passes."""
    paper = _Paper()
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        with (
            redirect_stdout(paper),
            redirect_stderr(paper),
            _no_input(),
            _unpatched(np, ops),
        ):
            found = _call(function, args, kwargs, watch)
        texts = (_without_addresses(str(w.message)) for w in caught)
        warned = tuple(dict.fromkeys(texts))
    return Run(**found, warned=warned, printed=_without_addresses(paper.getvalue()))


def _call(function: Callable, args: tuple, kwargs: dict, watch: Watch) -> dict:
    try:
        watch.start()
        try:
            result = function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result.close()  # else Python complains that nobody awaited it
            return {"result": result}
        except (KeyboardInterrupt, _Stopped):
            raise
        except BaseException as error:
            # Its text is the reader's code too, hence inside the deadline.
            return _describe(error, function)
        finally:
            watch.stop()
    except _Stopped as stop:
        return {"stopped": stop.reason, **_where(stop.__traceback__, function)}


def _describe(error: BaseException, function: Callable) -> dict:
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    text = _without_addresses(text)
    text = text if len(text) <= 200 else text[:199] + "…"
    depth = len(list(_frames(error.__traceback__)))
    if isinstance(error, SystemExit):
        stopped = "exit"
    elif isinstance(error, RecursionError):
        stopped = "recursion"
    elif isinstance(error, NotImplementedError) and depth <= 2:
        stopped = "not implemented"  # raised by the function itself
    else:
        stopped = "exception"
    return {
        "stopped": stopped,
        "error": f"{kind}: {text}" if text else kind,
        "error_type": kind,
        **_where(error.__traceback__, function),
    }


def _without_addresses(text: str) -> str:
    """Leave out what differs from run to run, and says nothing."""
    return re.sub(r"\b0x[0-9a-fA-F]{4,}\b", "0x…", text)


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _where(trace: TracebackType | None, function: Callable) -> dict:
    """Find the last line that the reader wrote, in the file of the function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return {}
    own = [line for frame, line in _frames(trace) if _file(frame) == code.co_filename]
    if not own:
        return {}
    source = linecache.getline(code.co_filename, own[-1]).strip()
    return {"line": own[-1], "source": source}


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


@contextmanager
def _unpatched(*modules: ModuleType) -> Iterator[None]:
    """Put back what a function changes in modules that the check itself uses."""
    before = [dict(vars(module)) for module in modules]
    try:
        yield
    finally:
        for module, names in zip(modules, before, strict=True):
            now = vars(module)
            changed = {n: v for n, v in names.items() if now.get(n, now) is not v}
            now.update(changed)


@contextmanager
def _no_input() -> Iterator[None]:
    def refuse(*_: object) -> str:
        raise _AskedForInput

    before, builtins.input = builtins.input, refuse
    try:
        yield
    finally:
        builtins.input = before
