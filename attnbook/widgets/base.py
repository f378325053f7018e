"""What every widget of the book is: one Python class and one ES module.

A new widget is ``name.py`` with a subclass of ``BookWidget``, ``name.js``, and
the strings ``widget.name.*`` in the catalogues. Live Jupyter gets the module
through anywidget; a static page gets the same text as a file and the element
that ``to_html`` writes, which shows a picture until ``loader.js`` replaces it.
"""

import base64
import html
import json
from pathlib import Path
from typing import ClassVar

import anywidget
import traitlets

from attnbook import palette
from attnbook.language import catalogue, language

_HERE = Path(__file__).parent


def module_text(name: str, code: str, data: object = None) -> str:
    """Return the ES module of a widget with its strings in one language.

    ``core.js``, the catalogue, ``data`` and ``<name>.js`` are one text, since a
    module that is loaded from a blob cannot import its neighbours.
    """
    prefixes = ("widget.common.", f"widget.{name}.")
    strings = {i: s for i, s in catalogue(code).items() if i.startswith(prefixes)}
    written = json.dumps(strings, ensure_ascii=False, indent=1, sort_keys=True)
    core, own = ((_HERE / f"{n}.js").read_text("utf-8") for n in ("core", name))
    given = "" if data is None else f"const DATA = {_json(data)};\n\n"
    return f"{core}\nconst CATALOGUE = {written};\n\n{given}{own}"


def style_text() -> str:
    """Return the style sheet that all widgets share: colours, then rules.

    On paper the light colours hold, whatever the screen shows.
    """
    variables = "".join(f" --attn-{n}: {c};" for n, c in palette.LIGHT.items())
    paper = f"@media print {{ .attn-root.attn-root {{{variables} }} }}\n"
    return palette.css() + (_HERE / "widgets.css").read_text("utf-8") + paper


class BookWidget(anywidget.AnyWidget):
    """Base of the book's widgets.

    A subclass sets ``name`` (that of its module), declares its state as traits
    tagged ``sync=True``, and implements ``_picture`` and ``_alt``. Every trait
    has a default, and a value that does not fit raises ``TraitError``. What else
    the module needs of Python stands in ``data``; there it is the constant DATA.
    """

    name: ClassVar[str]
    data: ClassVar[object] = None
    _start = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: object) -> None:
        known = self._state_names()
        for name in state:
            if name not in known:
                raise TypeError(
                    f"{name} is not an argument of {type(self).__name__}; "
                    f"it takes {', '.join(known)}"
                )
        super().__init__(**state)
        # Where Reset leads; the page's loader gives its models the same.
        self._start = self._state()

    @classmethod
    def files(cls) -> dict[str, str]:
        """Return what a page's module loads when it is asked for: name to text."""
        return {}

    @property
    def _esm(self) -> str:
        return module_text(self.name, language(), self.data)

    @property
    def _css(self) -> str:
        return style_text()

    @classmethod
    def _state_names(cls) -> list[str]:
        inherited = anywidget.AnyWidget.class_trait_names()
        own = set(cls.class_trait_names(sync=True)) - set(inherited)
        return sorted(name for name in own if not name.startswith("_"))

    def _state(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self._state_names()}

    def _picture(self) -> str:
        """Return the state as an opaque SVG with rounded numbers."""
        raise NotImplementedError

    def _alt(self) -> str:
        """Return what the picture says, in words."""
        raise NotImplementedError

    def to_html(self, widget_id: str | None = None) -> str:
        """Return the element that a static page shows and its loader brings to life.

        The same state always gives the same text. ``widget_id`` names the widget
        in addresses that hold its state; without one, its place in the page does.
        Raises ``ValueError`` if ``widget_id`` has other than letters, digits, - and _.
        """
        attributes = {"data-widget": self.name, "data-state": _json(self._state())}
        if widget_id is not None:
            if not widget_id.replace("-", "").replace("_", "").isalnum():
                raise ValueError(
                    f"widget_id is {widget_id!r}; it may hold letters, digits, - and _"
                )
            attributes["data-widget-id"] = widget_id
        alt = html.escape(self._alt())
        # As an image: an untrusted notebook would strip inline SVG.
        picture = base64.b64encode(self._picture().encode()).decode()
        written = "".join(f' {n}="{html.escape(v)}"' for n, v in attributes.items())
        return (
            f'<div class="attn-widget"{written}><figure>'
            f'<img src="data:image/svg+xml;base64,{picture}" alt="{alt}">'
            f"<figcaption>{alt}</figcaption></figure></div>"
        )

    def __repr__(self) -> str:
        state = ", ".join(f"{n}={v!r}" for n, v in self._state().items())
        return f"{type(self).__name__}({state})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = repr(self)
        data["text/html"] = self.to_html()
        return data, metadata


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
