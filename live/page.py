"""What the Python of a page has around it: running cells, and showing what they give.

The worker runs this module once. What a notebook imports from Jupyter, a page has no
use for, and it would cost megabytes and seconds: ``IPython.display``, ``anywidget`` and
``ipywidgets.interact_manual`` have stand-ins here. matplotlib comes when a cell draws.
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import importlib
import io
import json
import linecache
import logging
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path

TEXT = 100_000  # characters of text that one run may show
THINGS = 50  # pictures, tables and values that one run may show
SIZE = 5_000_000  # characters of one of them
ERROR = 10_000  # characters of an error's last line and of what stands above it
FRAMES = 6  # of the reader's own code in a traceback
WORK = Path("work.json")
BACKEND = "page_plots"  # of matplotlib

send: Callable[[str, str], None]  # (kind, JSON of what it is about)


def _say(string: str, **values: object) -> str:
    from attnbook.language import translate

    return translate(f"live.{string}", **values)


class _Room:
    """How much a run may still show; nothing but errors, if it is quiet."""

    text = TEXT
    things = THINGS
    quiet = False


def emit(kind: str, **about: object) -> None:
    """Send something to the page, if there is still room for it."""
    if _Room.quiet and kind != "error":
        return
    if kind != "text":
        paper.send()
    if kind == "error":  # shown however much was shown before
        _send(
            kind, {part: _shortened(str(text), ERROR) for part, text in about.items()}
        )
        return
    if kind == "text":
        text, room = str(about["text"]), _Room.text
        if room > 0:
            _Room.text -= len(text)
            _send(kind, {**about, "text": text[:room]})
            if _Room.text <= 0:
                _send("cut", {})
        return
    if kind == "value":
        about = {"text": _shortened(str(about["text"]), TEXT)}
    _Room.things -= 1
    if _Room.things >= 0 and sum(len(str(part)) for part in about.values()) < SIZE:
        _send(kind, about)
    elif _Room.things >= -1:
        _send("cut", {})


def _shortened(text: str, length: int) -> str:
    """Return a text, without its middle if it is longer than ``length``."""
    if len(text) <= length:
        return text
    return f"{text[: length // 2]} … {text[-length // 2 :]}"


def _send(kind: str, about: dict) -> None:
    send(kind, json.dumps(about, ensure_ascii=False))


class _Paper:
    """Gathers what is printed, so that a loop of prints is not a flood of messages."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.parts: list[str] = []
        self.stream = "stdout"
        self.sent = 0.0
        self.prompt = 200  # lines that are sent at once

    def add(self, text: str, stream: str) -> None:
        if stream != self.stream:
            self.send()
            self.stream = stream
        self.parts.append(text)
        self.prompt -= text.count("\n")
        now = time.monotonic()
        if ("\n" in text and self.prompt > 0) or now - self.sent > 0.1:
            self.send()
            self.sent = now

    def send(self) -> None:
        text, self.parts = "".join(self.parts), []
        if text:
            emit("text", text=text, stream=self.stream)


paper = _Paper()


class _Stream(io.TextIOBase):
    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self.stream = name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        paper.add(str(text), self.stream)
        return len(text)

    def flush(self) -> None:
        paper.send()


# --- what a cell shows ------------------------------------------------------------


def show(thing: object) -> None:
    """Show a value the best way it knows: drawn, as HTML, or as text."""
    if type(thing).__module__ == "attnbook.exercises._verdict":
        sentences, closing = list(thing.sentences), list(thing.closing)
        emit(
            "verdict",
            exercise=thing.exercise,
            status=thing.status,
            mistake=thing.mistake,
            sentences=sentences,
            example=[list(pair) for pair in thing.example],
            closing=closing,
        )
        return
    if type(thing).__module__.startswith("attnbook.widgets."):
        state, svg, alt = thing._state(), thing._picture(), thing._alt()
        emit("widget", name=thing.name, state=state, svg=svg, alt=alt)
        return
    for kind, name in (
        ("html", "_repr_html_"),
        ("picture", "_repr_svg_"),
        ("png", "_repr_png_"),
    ):
        method = getattr(thing, name, None)
        drawn = method() if method and not isinstance(thing, type) else None
        if isinstance(drawn, bytes):
            drawn = base64.b64encode(drawn).decode()
        if drawn is not None:
            emit(kind, **{"svg" if kind == "picture" else "data": drawn})
            return
    emit("value", text=repr(thing))


class Shown:
    """Stands in for IPython's Markdown and HTML: holds a text to show."""

    def __init__(self, data: str) -> None:
        self.data = data

    def __repr__(self) -> str:
        return self.data


class Html(Shown):
    def _repr_html_(self) -> str:
        return self.data


def display(*things: object, **_: object) -> None:
    for thing in things:
        show(thing)


# --- stand-ins --------------------------------------------------------------------


def _module(name: str, **contents: object) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


class Later(types.ModuleType):
    """matplotlib.pyplot until a cell draws: it only remembers the style."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.style = types.SimpleNamespace(use=self._remember)
        self._styles: list[object] = []

    def _remember(self, style: object) -> None:
        self._styles.append(style)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError(_say("no_plot", name=name))


def _stand_ins() -> None:
    _module("IPython", get_ipython=lambda: None)
    _module("IPython.display", Markdown=Shown, HTML=Html, display=display)

    def interact_manual(*_: object, **__: object) -> Callable:
        raise RuntimeError(_say("no_interact"))

    _module("ipywidgets", interact_manual=interact_manual)
    _module("matplotlib")
    later = Later("matplotlib.pyplot")
    sys.modules["matplotlib.pyplot"] = sys.modules["matplotlib"].pyplot = later


def _widgets() -> None:
    import traitlets

    class AnyWidget(traitlets.HasTraits):
        """A widget's state without its kernel, which is all that its picture needs."""

        def _repr_mimebundle_(self, **_: object) -> tuple[dict, dict]:
            return {}, {}

    _module("anywidget", AnyWidget=AnyWidget)


class _Drawing(ast.NodeVisitor):
    """Looks for a use of matplotlib beyond its import as plt and its style."""

    found = False

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if ast.unparse(node) != "plt.style.use":
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.found |= node.id == "plt"

    def visit_Import(self, node: ast.Import) -> None:
        for name in (alias.name for alias in node.names):
            beyond = name != "matplotlib.pyplot"
            self.found |= beyond and name.partition(".")[0] == "matplotlib"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found |= (node.module or "").partition(".")[0] == "matplotlib"


def draws(source: str) -> bool:
    """Say whether a cell needs matplotlib, which is not loaded yet."""
    if not isinstance(sys.modules["matplotlib.pyplot"], Later):
        return False
    looking = _Drawing()
    with contextlib.suppress(SyntaxError):
        looking.visit(ast.parse(source))
    return looking.found


def draw() -> None:
    """Put the real matplotlib, which is loaded by now, where its stand-in was."""
    later = sys.modules.pop("matplotlib.pyplot")
    del sys.modules["matplotlib"]
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _module(BACKEND, FigureCanvas=FigureCanvasAgg, show=_show_figures)
    plt = importlib.import_module("matplotlib.pyplot")
    for style in later._styles:
        plt.style.use(style)
    for space in spaces.values():
        for name, value in space.items():
            if value is later:
                space[name] = plt


def _show_figures(**_: object) -> None:
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None or isinstance(plt, Later):
        return
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", bbox_inches="tight")
        emit("png", data=base64.b64encode(picture.getvalue()).decode())
    plt.close("all")


# --- running ----------------------------------------------------------------------

spaces: dict[str, dict] = {}  # the names that cells define, by exercise


def _space(name: str) -> dict:
    return spaces.setdefault(name, {"__name__": "__main__", "__builtins__": builtins})


def _no_input(*_: object) -> str:
    raise RuntimeError(_say("no_input"))


def prepare(sender: Callable[[str, str], None]) -> None:
    """Get ready, once; NumPy, traitlets and attnbook are loaded."""
    global send
    send = sender
    sys.stdout, sys.stderr = _Stream("stdout"), _Stream("stderr")
    builtins.input = _no_input
    os.environ["MPLBACKEND"] = f"module://{BACKEND}"
    _stand_ins()
    _widgets()


async def run(cell: str, source: str, space: str, quiet: bool) -> bool:
    """Run a cell and say whether it came to its end.

    Args:
        cell: its id, which tracebacks name.
        source: its text.
        space: which names it sees; each exercise has its own.
        quiet: whether only an error is to be shown.
    """
    from pyodide.code import eval_code_async

    paper.start()
    _Room.text, _Room.things, _Room.quiet = TEXT, THINGS, quiet
    file = f"cell {cell}"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        value = await eval_code_async(source, _space(space), filename=file)
        _show_figures()
        if value is not None:
            show(value)
    except BaseException as error:
        emit("error", **_describe(error))
        return False
    finally:
        paper.send()
    return True


def _describe(error: BaseException) -> dict[str, str]:
    """Return an error's last line, and above it only what the reader wrote."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("cell ")
    ]
    listed = traceback.StackSummary.from_list(frames).format()
    if len(listed) > FRAMES:
        half = FRAMES // 2
        listed = [*listed[:half], "  …\n", *listed[-half:]]
    last = traceback.format_exception_only(type(error), error)
    if isinstance(error, SystemExit):
        last = [f"SystemExit: {error}\n"]
    return {"trace": "".join(listed), "last": "".join(last).rstrip("\n")}


# --- the reader's right answers ---------------------------------------------------


def put_work(text: str) -> None:
    """Lay the answers that the page keeps where the checks keep theirs."""
    WORK.write_text(text, "utf-8")


def get_work() -> str:
    """Return the record of right answers, which a check may have added to."""
    try:
        return WORK.read_text("utf-8")
    except (OSError, ValueError):  # none, or no text
        return ""
