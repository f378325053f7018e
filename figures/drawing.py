"""The visual language of the book's figures, shared by all NN_name.py.

A figure is a function that draws on a ``Sheet``. ``write`` calls it for both
themes and every language whose catalogue has the figure's words, and leaves
``NN_name.svg``, ``NN_name.dark.svg`` and, for other languages than English,
``NN_name.<code>.svg`` and ``NN_name.<code>.dark.svg``.
"""

from collections.abc import Callable
from pathlib import Path

import drawsvg

from attnbook import language, palette

HERE = Path(__file__).parent
FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
MATHS = "'STIX Two Text', 'Cambria', 'Times New Roman', serif"


class Sheet:
    """A drawing surface in one theme; lengths are in pixels of the viewBox."""

    def __init__(self, width: int, height: int, colours: dict[str, str]) -> None:
        self.colours = colours
        self.drawing = drawsvg.Drawing(width, height, font_family=FONT)
        self._add(drawsvg.Rectangle(0, 0, width, height, fill=colours["page"], rx=8))

    def _add(self, element: drawsvg.DrawingElement) -> None:
        self.drawing.append(element)

    def box(self, x: float, y: float, w: float, h: float, colour: str) -> None:
        """An array: an outlined box filled with a breath of its colour."""
        hue = self.colours[colour]
        self._add(
            drawsvg.Rectangle(
                *(x, y, w, h),
                **{"fill": hue, "fill_opacity": 0.12, "stroke": hue, "rx": 6},
                stroke_width=2,
            )
        )

    def step(self, x: float, y: float, w: float, h: float) -> None:
        """An operation: a rounded box without a colour of its own."""
        ink = self.colours
        self._add(
            drawsvg.Rectangle(
                *(x, y, w, h),
                **{"fill": ink["surface"], "stroke": ink["line"], "rx": h / 2},
                stroke_width=1.5,
            )
        )

    def text(
        self,
        words: str,
        x: float,
        y: float,
        size: int = 16,
        colour: str = "ink",
        anchor: str = "middle",
        maths: bool = False,
        bold: bool = False,
    ) -> None:
        """Words whose middle line is at ``y``; mathematics is set in italics."""
        style = {"font_family": MATHS, "font_style": "italic"} if maths else {}
        if bold:
            style["font_weight"] = "600"
        self._add(
            drawsvg.Text(
                words,
                size,
                x,
                # Not dominant-baseline: not every renderer of images knows it.
                round(y + size * 0.35, 2),
                fill=self.colours[colour],
                text_anchor=anchor,
                **style,
            )
        )

    def ring(self, x: float, y: float, r: float, colour: str) -> None:
        """A ring round a sign or a number."""
        fill, hue = self.colours["page"], self.colours[colour]
        self._add(drawsvg.Circle(x, y, r, fill=fill, stroke=hue, stroke_width=1.5))

    def frame(self, x: float, y: float, w: float, h: float) -> None:
        """A dashed frame round what belongs together."""
        hue = self.colours["line"]
        self._add(
            drawsvg.Rectangle(
                *(x, y, w, h),
                **{"fill": "none", "stroke": hue, "rx": 10},
                stroke_width=2,
                stroke_dasharray="7 5",
            )
        )

    def line(
        self, *points: tuple[float, float], colour: str = "muted", width: float = 2
    ) -> None:
        """A line through ``points``."""
        hue = self.colours[colour]
        path = drawsvg.Path(stroke=hue, stroke_width=width, fill="none")
        path.M(*points[0])
        for point in points[1:]:
            path.L(*(round(value, 2) for value in point))
        self._add(path)

    def arrow(self, *points: tuple[float, float], colour: str = "muted") -> None:
        """A line through ``points`` with a head at the last."""
        hue = self.colours[colour]
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        end = (x1 - 7 * ux, y1 - 7 * uy)
        self.line(*points[:-1], end, colour=colour)
        head = [(x1, y1)]
        head += [(end[0] - s * 5 * uy, end[1] + s * 5 * ux) for s in (1, -1)]
        flat = [round(value, 2) for point in head for value in point]
        self._add(drawsvg.Lines(*flat, close=True, fill=hue))


def _has_words(code: str, name: str) -> bool:
    own = language.catalogue_of(code)
    return any(string_id.startswith(f"figure.{name}.") for string_id in own)


def write(
    script: str, width: int, height: int, draw: Callable[[Sheet], None]
) -> list[Path]:
    """Draw a figure in every theme and language; return the files written.

    Args:
        script: the ``__file__`` of the figure's script, ``NN_name.py``.
        width, height: of the viewBox, in pixels.
        draw: draws on a sheet; takes its words from ``figure.<name>.*``.
    """
    stem = Path(script).stem
    name = stem.split("_", 1)[1]
    before = language.language()
    written = []
    for code in language.languages():
        if not _has_words(code, name):
            continue
        language.set_language(code)
        for theme, colours in (("", palette.LIGHT), (".dark", palette.DARK)):
            sheet = Sheet(width, height, dict(colours))
            draw(sheet)
            edition = "" if code == "en" else f".{code}"
            path = HERE / f"{stem}{edition}{theme}.svg"
            path.write_text(sheet.drawing.as_svg() + "\n", "utf-8")
            written.append(path)
    language.set_language(before)
    return written
