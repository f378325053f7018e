"""Attention in three steps: dot product, softmax, weighted sum, checkable by hand."""

import html
import math
from types import MappingProxyType

import numpy as np
import traitlets

from attnbook.language import translate
from attnbook.ops import attention_weights
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["AttentionInThreeSteps"]

# Word vectors; the axes are "fruit" and "company". Asking is twice as loud as the
# word itself, a word's badge is itself, and it hands over how far it leans.
_EXAMPLE = MappingProxyType(
    {
        "fruit": [[2.0, 0.0], [1.0, 1.0], [3.0, 0.0], [0.0, 0.0]],
        "company": [[0.0, 2.0], [1.0, 1.0], [0.0, 3.0], [0.0, 0.0]],
    }
)
_PROJECTIONS = MappingProxyType(
    {
        "query": np.array([[2.0, 0.0], [0.0, 2.0]]),
        "key": np.array([[1.0, 0.0], [0.0, 1.0]]),
        "value": np.array([[1.0, -1.0], [-1.0, 1.0]]),
    }
)
_LIMIT = 3.0


def _number(x: float, decimals: int) -> str:
    """Write a number as the module does: a true minus, and none before zero."""
    text = f"{x:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _vector(xs: np.ndarray, decimals: int) -> str:
    return f"({', '.join(_number(x, decimals) for x in xs)})"


class AttentionInThreeSteps(BookWidget):
    """One of four words asks; its output is pulled towards fruit or company.

    Traits:
        context: "fruit" (eat apple pie today) or "company" (buy apple shares today).
        asker: which word asks, 0 to 3.
        step: the step shown, 1 dot product, 2 softmax, 3 weighted sum.
        fruit, company: the word vectors of each sentence, (4, 2), within ±3; they
            are rounded to one decimal.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "three_steps"
    context = traitlets.Unicode("fruit").tag(sync=True)
    asker = traitlets.Int(1).tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)
    fruit = traitlets.List(_EXAMPLE["fruit"]).tag(sync=True)
    company = traitlets.List(_EXAMPLE["company"]).tag(sync=True)

    @traitlets.validate("context")
    def _check_context(self, proposal: dict) -> str:
        if proposal.value not in _EXAMPLE:
            raise traitlets.TraitError(
                f"context is {proposal.value!r}; it must be one of {list(_EXAMPLE)}"
            )
        return proposal.value

    @traitlets.validate("asker")
    def _check_asker(self, proposal: dict) -> int:
        if not 0 <= proposal.value <= 3:
            raise traitlets.TraitError(f"asker is {proposal.value}; it must be 0 to 3")
        return proposal.value

    @traitlets.validate("step")
    def _check_step(self, proposal: dict) -> int:
        if not 1 <= proposal.value <= 3:
            raise traitlets.TraitError(
                f"step is {proposal.value}; it must be 1, 2 or 3"
            )
        return proposal.value

    @traitlets.validate("fruit", "company")
    def _check_vectors(self, proposal: dict) -> list[list[float]]:
        name = proposal.trait.name
        try:
            vectors = np.array(proposal.value, dtype=float)
        except (TypeError, ValueError):
            raise traitlets.TraitError(
                f"{name} is {proposal.value!r}; it must be four pairs of numbers"
            ) from None
        if vectors.shape != (4, 2):
            raise traitlets.TraitError(
                f"{name} has shape {vectors.shape}; it must be (4, 2), a pair of "
                f"numbers for each word"
            )
        if not (np.abs(vectors) <= _LIMIT).all():
            raise traitlets.TraitError(
                f"{name} is {proposal.value!r}; its numbers must lie within ±{_LIMIT:g}"
            )
        # Adding 0 turns −0 into 0, so that equal states have equal texts.
        return (np.round(vectors, 1) + 0.0).tolist()

    def _words(self) -> list[str]:
        return [
            translate(f"widget.three_steps.{self.context}.{i}") for i in range(1, 5)
        ]

    def _attend(self) -> dict[str, np.ndarray]:
        x = np.array(getattr(self, self.context))
        q, k, v = (x @ _PROJECTIONS[n] for n in ("query", "key", "value"))
        q = q[self.asker : self.asker + 1]
        weights = attention_weights(q, k)
        return {
            "q": q[0],
            "k": k,
            "v": v,
            "products": (q @ k.T)[0],
            "scores": (q @ k.T)[0] / math.sqrt(k.shape[-1]),
            "weights": weights[0],
            "output": (weights @ v)[0],
        }

    def _alt(self) -> str:
        result, words = self._attend(), self._words()
        listed = ", ".join(
            f"{word} {_number(weight, 3)}"
            for word, weight in zip(words, result["weights"], strict=True)
        )
        return translate(
            "widget.three_steps.alt",
            sentence=" ".join(words),
            word=words[self.asker],
            weights=listed,
            output=_vector(result["output"], 2),
        )

    def _picture(self) -> str:
        r, words = self._attend(), self._words()

        def say(thing: str, **values: str) -> str:
            return html.escape(translate(f"widget.three_steps.{thing}", **values))

        def text(
            x: int, y: int, words: str, colour: str = "ink", more: str = ""
        ) -> str:
            return f'<text x="{x}" y="{y}" fill="{LIGHT[colour]}"{more}>{words}</text>'

        end, bold = ' text-anchor="end"', ' font-weight="600"'
        rows = [
            text(24, 34, " ".join(map(html.escape, words)), more=bold),
            text(
                24,
                60,
                f"{html.escape(words[self.asker])}: q = {_vector(r['q'], 1)}",
                "query",
            ),
            text(24, 96, say("word"), "muted"),
            text(140, 96, "k", "key"),
            text(276, 96, "q · k", "muted", end),
            text(390, 96, say("to_score"), "muted", end),
            text(410, 96, say("weight"), "weight"),
            text(656, 96, "v", "value", end),
        ]
        for i, word in enumerate(words):
            y = 126 + 30 * i
            width = 120 * r["weights"][i]
            rows += [
                f'<line x1="24" x2="656" y1="{y - 21}" y2="{y - 21}" '
                f'stroke="{LIGHT["line"]}"/>',
                text(24, y, html.escape(word)),
                text(140, y, _vector(r["k"][i], 1), "key"),
                text(276, y, _number(r["products"][i], 2), more=end),
                text(390, y, _number(r["scores"][i], 3), more=end),
                f'<rect x="410" y="{y - 13}" width="{width:.1f}" height="16" rx="3" '
                f'fill="{LIGHT["weight"]}"/>',
                text(round(416 + width), y, _number(r["weights"][i], 3), "weight"),
                text(656, y, _vector(r["v"][i], 1), "value", end),
            ]
        rows += [
            f'<line x1="24" x2="656" y1="225" y2="225" stroke="{LIGHT["ink"]}"/>',
            text(24, 252, say("output"), "output", bold),
            text(656, 252, _vector(r["output"], 2), "output", end + bold),
        ]
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 276" width="680" '
            'height="276" font-family="system-ui, sans-serif" font-size="15">'
            f'<rect width="680" height="276" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(rows)}</svg>"
        )
