"""Break it: what a published model says, and how surprised it is, without a part."""

import html
import json
import math
from pathlib import Path
from typing import ClassVar

import traitlets

from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["BreakIt", "perplexity", "share"]

# What the notebook calls the changes, and what the widget does.
NAMES = {
    "intact": "intact",
    "scale": "no scale",
    "mask": "no mask",
    "heads": "heads tiled",
    "residual": "no residual",
    "norm": "no norm",
    "last_division": "no last division",
    "last_gain": "no last gain",
    "pairs": "wrong pairs",
    "positions": "no positions",
}
VOCABULARY = 49_152
LONGEST = 18  # nats that fit into the bar


def _recorded() -> dict[str, dict]:
    path = Path(__file__).parents[1] / "data" / "real.json"
    record = json.loads(path.read_text("utf-8"))
    return {change: record[f"break: {name}"] for change, name in NAMES.items()}


def perplexity(nats: float | None) -> str:
    """Return e to the nats, to two digits, as text; a dash where there is none."""
    if nats is None:
        return "—"
    if nats > 40:
        return "> 10¹⁷"  # e⁴⁰
    value = math.exp(nats)
    if value < 10:
        return f"{value:.1f}"
    size = 10 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / size + 0.5) * size:,}"


def share(nats: float | None) -> float:
    """Return how much of the bar these nats fill, 0 to 1; all if they are none."""
    return 1 if nats is None else min(nats / LONGEST, 1)


class BreakIt(BookWidget):
    """A published model intact, and with one part taken away or built in wrongly.

    Traits:
        change: "intact", "scale", "mask", "heads", "residual", "norm",
            "last_division", "last_gain", "pairs" or "positions".

    Raises ``TraitError`` if a value does not fit.
    """

    name = "break_it"
    data: ClassVar[object] = _recorded()
    change = traitlets.Unicode("mask").tag(sync=True)

    @traitlets.validate("change")
    def _check_change(self, proposal: dict) -> str:
        if proposal.value not in NAMES:
            raise traitlets.TraitError(
                f"change is {proposal.value!r}; it must be one of {', '.join(NAMES)}"
            )
        return proposal.value

    def _say(self, thing: str, **values: object) -> str:
        return translate(f"widget.break_it.{thing}", **values)

    def _nats(self, change: str) -> str:
        nats = self.data[change]["nats"]
        return self._say("no_number") if nats is None else f"{nats:.1f}"

    def _alt(self) -> str:
        found = self.data[self.change]
        return self._say(
            "alt",
            change=self._say(f"change.{self.change}"),
            nats=self._nats(self.change),
            perplexity=perplexity(found["nats"]),
            intact=self._nats("intact"),
            blind=f"{math.log(VOCABULARY):.1f}",
            says=" ".join(found["says"].split()),
            lesson=self._say(f"lesson.{self.change}"),
        )

    def _picture(self) -> str:
        parts = []

        def text(x: float, y: float, words: str, colour: str = "ink", **more: str):
            extra = "".join(f' {n.replace("_", "-")}="{v}"' for n, v in more.items())
            parts.append(
                f'<text x="{x}" y="{y}" fill="{LIGHT[colour]}"{extra}>'
                f"{html.escape(words)}</text>"
            )

        left, width, top = 200, 330, 62
        text(16, 30, self._say("title"), font_weight="600")
        for i, change in enumerate(NAMES):
            y, chosen = top + 26 * i, change == self.change
            label = self._say(f"change.{change}")
            text(16, y + 13, label, font_weight="600" if chosen else "400")
            nats = self.data[change]["nats"]
            length = width * share(nats)
            hue = LIGHT["output" if chosen else "muted"]
            # Where there is no number the bar is empty, and no short one.
            paint = f'fill="{hue}"'
            if nats is None:
                paint = f'fill="none" stroke="{hue}" stroke-dasharray="6 4"'
            parts.append(
                f'<rect x="{left}" y="{y}" width="{length:.1f}" height="16" '
                f'rx="3" {paint}/>'
            )
            if nats is not None and nats > LONGEST:  # cut open
                x = left + width - 8
                parts.append(
                    f'<line x1="{x - 6}" y1="{y + 18}" x2="{x}" y2="{y - 2}" '
                    f'stroke="{LIGHT["page"]}" stroke-width="4"/>'
                )
            text(left + width + 12, y + 13, self._nats(change))
        bottom = top + 26 * len(NAMES)
        blind = round(left + width * share(math.log(VOCABULARY)), 1)
        parts.append(
            f'<line x1="{blind}" y1="{top - 8}" x2="{blind}" y2="{bottom}" '
            f'stroke="{LIGHT["ink"]}" stroke-dasharray="4 3"/>'
        )
        text(blind, top - 14, self._say("blind"), "muted", text_anchor="middle")
        text(left + width + 12, top - 14, self._say("nats"), "muted")
        text(16, bottom + 26, self._say("writes"), "muted")
        says = " ".join(self.data[self.change]["says"].split())
        shown = says if len(says) <= 84 else f"{says[:83]}…"
        text(16, bottom + 48, shown, "ink", font_family="monospace", font_size="12")
        height = bottom + 66
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" '
            f'width="680" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="13">'
            f'<rect width="680" height="{height}" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
