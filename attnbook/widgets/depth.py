"""Depth: what a stack of layers does to the size of the signal and of its gradient.

The network comes from the module's own generator, written in NumPy in
``scaling``, so that the picture on paper shows what the living widget shows.
"""

import html
import math

import numpy as np
import traitlets

from attnbook.depth import KINDS, NORMS, Sizes, stack_sizes
from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget
from attnbook.widgets.scaling import random_words

__all__ = ["Depth", "measured", "network"]

LAYERS = 128
TOKENS = 4
D = 32
F = 128
GAINS = (0.5, 1.0, 2.0)
_DECADES = (1, 3, 12, 48, 96)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _uniforms(seed: int, first: int, shape: tuple[int, int], fan: int) -> np.ndarray:
    indices = first + np.arange(shape[0] * shape[1]).reshape(shape)
    u = (random_words(seed, indices) + 0.5) / 2**32
    return (2 * u - 1) * math.sqrt(3 / fan)


def network(
    seed: int, layers: int
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the network of a seed: its input, the gradient at its output, its layers.

    Four tokens of 32 numbers; a layer is (w_in, w_out), (32, 128) and (128, 32).
    All numbers are uniform with mean 0; the variance of a matrix is 1 / (rows),
    that of the rest 1.
    """
    tokens = (TOKENS, D)
    x = _uniforms(seed, 0, tokens, 1)
    grad = _uniforms(seed, TOKENS * D, tokens, 1)
    firsts = 2 * TOKENS * D + 2 * D * F * np.arange(layers)
    weights = [
        (_uniforms(seed, n, (D, F), D), _uniforms(seed, n + D * F, (F, D), F))
        for n in firsts
    ]
    return x, grad, weights


def measured(
    seed: int, layers: int, residual: bool, norm: str, kind: str, gain: float
) -> Sizes:
    """Return the sizes that the widget shows in this state."""
    x, grad, weights = network(seed, layers)
    scaled = [(w_in, gain * w_out) for w_in, w_out in weights]
    return stack_sizes(x, scaled, grad, residual, norm, kind)


def _axis_decades(sizes: np.ndarray) -> int:
    reach = np.abs(np.log10(sizes)).max()
    return next((d for d in _DECADES if reach <= d), _DECADES[-1])


def _power_of_ten(exponent: int) -> str:
    sign = "⁻" if exponent < 0 else ""
    return f"10{sign}{str(abs(exponent)).translate(_RAISED)}"


def _size_text(size: float) -> str:
    exponent = math.floor(math.log10(size))
    if -2 <= exponent < 4:
        return f"{size:.2f}" if exponent < 1 else f"{size:.1f}"
    leading = f"{size / 10.0**exponent:.1f}"
    if leading == "10.0":
        leading, exponent = "1.0", exponent + 1
    return f"{leading}\u00a0·\u00a0{_power_of_ten(exponent)}"


class Depth(BookWidget):
    """The size of signal and gradient through up to 128 feed-forward layers.

    Traits:
        layers: 1 to 128.
        residual: whether a layer adds to its input or replaces it.
        norm: "none", "pre" or "post".
        kind: "layer" (LayerNorm) or "rms" (RMSNorm).
        gain: what each layer's second matrix is multiplied by: 0.5, 1 or 2.
        seed: which network, 0 to 2³² − 1.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "depth"
    layers = traitlets.Int(64).tag(sync=True)
    residual = traitlets.Bool(False).tag(sync=True)
    norm = traitlets.Enum(NORMS, "none").tag(sync=True)
    kind = traitlets.Enum(KINDS, "rms").tag(sync=True)
    gain = traitlets.Enum(GAINS, 1.0).tag(sync=True)
    seed = traitlets.Int(5).tag(sync=True)

    @traitlets.validate("layers")
    def _check_layers(self, proposal: dict) -> int:
        if not 1 <= proposal.value <= LAYERS:
            raise traitlets.TraitError(
                f"layers is {proposal.value}; it must be 1 to {LAYERS}"
            )
        return proposal.value

    @traitlets.validate("seed")
    def _check_seed(self, proposal: dict) -> int:
        if not 0 <= proposal.value < 2**32:
            raise traitlets.TraitError(
                f"seed is {proposal.value}; it must be 0 to 4294967295"
            )
        return proposal.value

    def _sizes(self) -> Sizes:
        return measured(
            self.seed, self.layers, self.residual, self.norm, self.kind, self.gain
        )

    def _arrangement(self) -> str:
        """Say in words what is connected how."""

        def say(thing: str) -> str:
            return translate(f"widget.depth.{thing}")

        norm = say(f"norm.{self.norm}")
        if self.norm != "none":
            norm = f"{norm} ({say(f'kind.{self.kind}')})"
        return f"{say('with') if self.residual else say('without')}, {norm}"

    def _alt(self) -> str:
        sizes = self._sizes()
        return translate(
            "widget.depth.alt",
            layers=self.layers,
            arrangement=self._arrangement(),
            signal=_size_text(sizes.signal[-1]),
            gradient=_size_text(sizes.gradient[0]),
            likeness=f"{sizes.likeness[-1]:.2f}".replace("-", "−"),
        )

    def _picture(self) -> str:
        sizes = self._sizes()
        decades = _axis_decades(np.concatenate([sizes.signal, sizes.gradient]))
        left, right, top, floor = 76, 656, 60, 268
        middle = (top + floor) / 2

        def say(thing: str, **values: object) -> str:
            return html.escape(translate(f"widget.depth.{thing}", **values))

        def text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" fill="{LIGHT[colour]}" '
                f'text-anchor="{anchor}">{words}</text>'
            )

        def y_of(size: float) -> float:
            return middle - math.log10(size) / decades * (floor - top) / 2

        def curve(values: np.ndarray, colour: str, dashes: str) -> str:
            points = "L".join(
                f"{left + (right - left) * i / self.layers:.1f} {y_of(size):.1f}"
                for i, size in enumerate(values)
            )
            return (
                f'<path d="M{points}" fill="none" stroke="{LIGHT[colour]}" '
                f'stroke-width="2.5"{dashes}/>'
            )

        parts = [text(24, 28, say("chart"), "ink", "start")]
        for part in (-1, -0.5, 0, 0.5, 1):
            y = middle - part * (floor - top) / 2
            parts.append(
                f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{LIGHT["line"]}"/>'
            )
            exponent = part * decades
            if exponent == int(exponent):
                label = _power_of_ten(int(exponent)) if exponent else "1"
                parts.append(text(left - 8, y + 4, label, "muted", "end"))
        parts += [
            text(left, floor + 18, "0", "muted", "start"),
            text(right, floor + 18, str(self.layers), "muted", "end"),
            text((left + right) / 2, floor + 18, say("axis"), "muted", "middle"),
            curve(sizes.signal, "output", ""),
            curve(sizes.gradient, "query", ' stroke-dasharray="7 5"'),
        ]
        for place, (x, name, colour, value) in enumerate(
            (
                (left, "signal", "output", _size_text(sizes.signal[-1])),
                (left + 290, "gradient", "query", _size_text(sizes.gradient[0])),
            )
        ):
            dashes = ' stroke-dasharray="7 5"' if place else ""
            parts.append(
                f'<line x1="{x}" x2="{x + 28}" y1="306" y2="306" '
                f'stroke="{LIGHT[colour]}" stroke-width="2.5"{dashes}/>'
            )
            words = f"{say(name)}: {value}"
            parts.append(text(x + 36, 310, words, colour, "start"))
        words = html.escape(self._arrangement())
        parts.append(text(right, 28, words, "muted", "end"))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 328" width="680" '
            'height="328" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="680" height="328" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
