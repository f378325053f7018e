"""What a check answers, as plain text and as HTML."""

import html
import re
from dataclasses import dataclass

STATUSES = ("not started", "right", "mistake", "wrong", "error")
_MARKS = {"not started": "○", "right": "✓", "mistake": "✗", "wrong": "✗", "error": "!"}


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer of ``check``.

    Attributes:
        exercise: the name of the exercise.
        status: "not started", "right", "mistake", "wrong" or "error".
        mistake: the name of the mistake, where it is a known one, else None.
        sentences: what there is to say.
        example: the smallest example, as (label, text) pairs.
        closing: what to do next.
    """

    exercise: str
    status: str
    mistake: str | None = None
    sentences: tuple[str, ...] = ()
    example: tuple[tuple[str, str], ...] = ()
    closing: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The whole verdict as plain text, the same on every run."""
        first, *rest = self.sentences
        lines = [f"{_MARKS[self.status]} {self.exercise}: {first}", *rest]
        for label, text in self.example:
            lines += _labelled(label, text)
        return "\n".join([*lines, *self.closing])

    def __str__(self) -> str:
        return self.message

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # Colours come from the page, so that light and dark both read well.
        first, *rest = self.sentences
        parts = [
            f'<p style="margin:0"><span aria-hidden="true">{_MARKS[self.status]}'
            f"</span> <strong>{html.escape(self.exercise)}</strong>: "
            f"{_inline(first)}</p>"
        ]
        parts += [_paragraph(sentence) for sentence in rest]
        if self.example:
            text = "\n".join(line for pair in self.example for line in _labelled(*pair))
            parts.append(
                '<pre style="margin:.5em 0 0;padding:0;border:0;background:none;'
                'color:inherit;white-space:pre-wrap;box-shadow:none">'
                f"{html.escape(text)}</pre>"
            )
        parts += [_paragraph(sentence) for sentence in self.closing]
        status = self.status.replace(" ", "-")
        return (
            f'<div class="attn-verdict attn-verdict-{status}" '
            'style="border-left:.25em solid currentColor;padding:.25em .75em;'
            f'color:inherit">{"".join(parts)}</div>'
        )


def _labelled(label: str, text: str) -> list[str]:
    """Put the label before a text, or above it if the text has several lines."""
    if not text:
        return [label]
    if "\n" not in text:
        return [f"  {label} {text}"]
    return [f"  {label}", *(f"    {line}" for line in text.split("\n"))]


def _paragraph(sentence: str) -> str:
    return f'<p style="margin:.5em 0 0">{_inline(sentence)}</p>'


def _inline(sentence: str) -> str:
    """Escape a sentence; what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence))
