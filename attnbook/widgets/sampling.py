"""Sampling: what temperature, top-k and top-p leave of a model's next letters.

The logits are those of the recorded small model of the chapter on building one.
"""

import html
import json
import math
from pathlib import Path

import numpy as np
import traitlets

from attnbook import sampling
from attnbook.language import translate
from attnbook.ops import entropy, softmax
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["Sampling"]

_FILE = Path(__file__).parents[1] / "data" / "small_writer.json"
_RECORD = json.loads(_FILE.read_text("utf-8"))
LETTERS: str = _RECORD["letters"]
BEGINNINGS: list[dict] = _RECORD["beginnings"]
SHOWN = 18  # the likeliest letters have bars, the others a number
HOTTEST = 2.0


class Sampling(BookWidget):
    """The next letter of a small model: bars before and after three knobs.

    Traits:
        beginning: which recorded beginning, from 0.
        t: temperature, 0 to 2; 0 is greedy.
        k: how many letters top-k keeps, 1 to all.
        p: the share of the probability that top-p keeps, above 0 and at most 1.

    The knobs are applied in this order. Raises ``TraitError`` if a value does not
    fit.
    """

    name = "sampling"
    data = {"letters": LETTERS, "beginnings": BEGINNINGS}  # noqa: RUF012 (never changed)
    beginning = traitlets.Int(2).tag(sync=True)
    t = traitlets.Float(1.0).tag(sync=True)
    k = traitlets.Int(len(LETTERS)).tag(sync=True)
    p = traitlets.Float(1.0).tag(sync=True)

    @traitlets.validate("beginning")
    def _check_beginning(self, proposal: dict) -> int:
        return _within("beginning", proposal.value, 0, len(BEGINNINGS) - 1)

    @traitlets.validate("t")
    def _check_t(self, proposal: dict) -> float:
        return _within("t", proposal.value, 0, HOTTEST)

    @traitlets.validate("k")
    def _check_k(self, proposal: dict) -> int:
        return _within("k", proposal.value, 1, len(LETTERS))

    @traitlets.validate("p")
    def _check_p(self, proposal: dict) -> float:
        if not 0 < proposal.value <= 1:
            raise traitlets.TraitError(
                f"p is {proposal.value}; it must be above 0 and at most 1"
            )
        return proposal.value

    def _probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what the model says, and what is drawn from."""
        logits = np.array(BEGINNINGS[self.beginning]["logits"])
        left = sampling.top_k(sampling.temperature(logits, self.t), self.k)
        return softmax(logits), softmax(sampling.top_p(left, self.p))

    def _facts(self) -> dict[str, str]:
        own, drawn = self._probabilities()
        best = int(drawn.argmax())
        return {
            "kept": f"{(drawn > 0).sum()} / {len(LETTERS)}",
            "best": f"{_shown(LETTERS[best])} {drawn[best]:.2f}",
            "share": f"{own[drawn > 0].sum():.2f}",
            "unsure": f"{2 ** entropy(drawn):.1f}",
        }

    def _alt(self) -> str:
        return translate(
            "widget.sampling.alt",
            beginning=BEGINNINGS[self.beginning]["text"],
            t=f"{self.t:g}",
            k=self.k,
            p=f"{self.p:g}",
            **self._facts(),
        )

    def _picture(self) -> str:
        own, drawn = self._probabilities()
        order = np.argsort(-own, kind="stable")[:SHOWN]
        left, floor, height, step = 52, 226, 168, 34
        limit = axis_limit(own, drawn)

        def say(thing: str, **values: object) -> str:
            return html.escape(translate(f"widget.sampling.{thing}", **values))

        def text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" fill="{LIGHT[colour]}" '
                f'text-anchor="{anchor}">{words}</text>'
            )

        def bar(x: float, share: float, look: str, width: float) -> str:
            high = share / limit * height
            return (
                f'<rect x="{x:.1f}" y="{floor - high:.1f}" width="{width}" '
                f'height="{high:.1f}" {look}/>'
            )

        quoted = html.escape(BEGINNINGS[self.beginning]["text"])
        parts = [text(24, 30, f"{say('after')} “{quoted}”", "ink", "start")]
        for part in (0, 0.5, 1):
            y = floor - part * height
            parts.append(
                f'<line x1="{left}" x2="664" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{LIGHT["line"]}"/>'
            )
            parts.append(text(left - 6, y + 4, f"{part * limit:g}", "muted", "end"))
        for place, i in enumerate(order):
            x = left + 4 + place * step
            parts.append(bar(x + 3, drawn[i], f'fill="{LIGHT["output"]}"', 20))
            outline = f'fill="none" stroke="{LIGHT["muted"]}" stroke-dasharray="3 3"'
            parts.append(bar(x, own[i], outline, 26))
            colour = "ink" if drawn[i] > 0 else "muted"
            letter = _shown(LETTERS[i]) if drawn[i] > 0 else f"({_shown(LETTERS[i])})"
            parts.append(
                text(x + 13, floor + 17, html.escape(letter), colour, "middle")
            )
        knobs = say("knobs", t=f"{self.t:g}", k=self.k, p=f"{self.p:g}")
        parts.append(text(left, 272, knobs, "ink", "start"))
        facts = self._facts()
        for x, y, name in (
            (left, 294, "kept"),
            (364, 272, "best"),
            (364, 294, "unsure"),
        ):
            words = f"{say(name)}: {html.escape(facts[name])}"
            parts.append(text(x, y, words, "ink", "start"))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 312" width="680" '
            'height="312" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="680" height="312" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )


def axis_limit(own: np.ndarray, drawn: np.ndarray) -> float:
    """Return how far the axis reaches: to one half, as long as every bar fits."""
    return 0.5 if max(own.max(), drawn.max()) <= 0.5 else 1.0


def _within(name: str, value: float, low: float, high: float) -> float:
    if not (low <= value <= high and math.isfinite(value)):
        raise traitlets.TraitError(f"{name} is {value}; it must be {low} to {high:g}")
    return value


def _shown(letter: str) -> str:
    """Return a sign for a letter that has none."""
    return {" ": "␣", "\n": "¶"}.get(letter, letter)
