"""The book's widgets. Each is a module here with a ``.js`` file of the same name.

Adding such a pair adds a widget: its class can be imported from this package.
"""

import importlib
from pathlib import Path

from attnbook.language import languages
from attnbook.widgets.base import BookWidget, module_text, style_text

_HERE = Path(__file__).parent


def _discover() -> dict[str, type[BookWidget]]:
    found = {}
    for path in sorted(_HERE.glob("*.py")):
        if not path.with_suffix(".js").exists():
            continue
        module = importlib.import_module(f"{__name__}.{path.stem}")
        for thing in vars(module).values():
            is_class = isinstance(thing, type) and thing.__module__ == module.__name__
            if is_class and issubclass(thing, BookWidget):
                found[thing.name] = thing
    return found


WIDGETS = _discover()
globals().update({cls.__name__: cls for cls in WIDGETS.values()})
__all__ = [
    "WIDGETS",
    "BookWidget",
    "static_files",
    *(cls.__name__ for cls in WIDGETS.values()),
]


def static_files(language: str) -> dict[str, str]:
    """Return the files that the pages of an edition need: file name to text.

    Each widget's module is the very text that a live notebook loads; besides
    them what modules load when asked for, ``widgets.css`` and ``loader.js``, which
    a page loads as a module.

    Raises ``ValueError`` if there is no catalogue for ``language``.
    """
    if language not in languages():
        raise ValueError(
            f"language is {language!r}; there are catalogues for "
            f"{', '.join(languages())}"
        )
    files = {
        f"{name}.js": module_text(name, language, cls.data)
        for name, cls in WIDGETS.items()
    }
    for cls in WIDGETS.values():
        files |= cls.files()
    files["widgets.css"] = style_text()
    files["loader.js"] = (_HERE / "loader.js").read_text("utf-8")
    return files
