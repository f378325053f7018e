"""Scaling and saturation: wide vectors make large dot products and one-sided weights.

The samples come from the module's own generator, written here a second time in
NumPy, so that the picture on paper shows what the living widget shows.
"""

import html
import math

import numpy as np
import traitlets

from attnbook.language import translate
from attnbook.ops import entropy, softmax
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["ScalingAndSaturation", "key_products", "pair_products", "random_words"]

LARGEST = 1024
KEYS = 16
PAIRS = 4096
BINS = 64
_FIRST_PAIR = LARGEST * (KEYS + 1)


def random_words(seed: int, indices: np.ndarray) -> np.ndarray:
    """Return words of the stream that ``seed`` starts (mulberry32), as uint32.

    Args:
        seed: 0 to 2³² − 1.
        indices: places in the stream, integers of any shape.

    Returns:
        uint32 of the shape of ``indices``.
    """
    one, a15, b7, c14 = (np.uint32(n) for n in (1, 15, 7, 14))
    a = (indices.astype(np.uint32) + one) * np.uint32(0x6D2B79F5) + np.uint32(seed)
    t = (a ^ (a >> a15)) * (a | one)
    t = (t + (t ^ (t >> b7)) * (t | np.uint32(61))) ^ t
    return t ^ (t >> c14)


def _uniforms(seed: int, indices: np.ndarray) -> np.ndarray:
    return (random_words(seed, indices) + 0.5) / 2**32


def key_products(seed: int, d: int) -> np.ndarray:
    """Return the dot products of one query with sixteen keys of width ``d``, (16,)."""
    n = np.arange(d * (KEYS + 1)).reshape(d, KEYS + 1)
    radius = np.sqrt(-2 * np.log(_uniforms(seed, 2 * n)))
    normals = radius * np.cos(2 * np.pi * _uniforms(seed, 2 * n + 1))
    return (normals[:, :1] * normals[:, 1:]).sum(axis=0)


def pair_products(seed: int, d: int) -> np.ndarray:
    """Return the dot products of 4096 independent pairs of width ``d``, (4096,)."""
    total = np.zeros(PAIRS)
    for i in range(d):
        n = _FIRST_PAIR + i * PAIRS + np.arange(PAIRS)
        # The two branches of a Box–Muller pair, multiplied.
        angle = 4 * np.pi * _uniforms(seed, 2 * n + 1)
        total -= np.log(_uniforms(seed, 2 * n)) * np.sin(angle)
    return total


def _axis_limit(variance: float) -> int:
    return 8 if variance <= 4 else 32 if variance <= 64 else 128


def _variance(values: np.ndarray) -> str:
    measured = values.var()
    return f"{measured:.3f}" if measured < 10 else f"{measured:.1f}"


class ScalingAndSaturation(BookWidget):
    """Sixteen weights and a histogram of dot products as d_k grows.

    Traits:
        d: width of queries and keys, 1 to 1024.
        scaled: whether dot products are divided by √d.
        seed: which sample, 0 to 2³² − 1.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "scaling"
    d = traitlets.Int(64).tag(sync=True)
    scaled = traitlets.Bool(False).tag(sync=True)
    seed = traitlets.Int(91).tag(sync=True)

    @traitlets.validate("d")
    def _check_d(self, proposal: dict) -> int:
        if not 1 <= proposal.value <= LARGEST:
            raise traitlets.TraitError(
                f"d is {proposal.value}; it must be 1 to {LARGEST}"
            )
        return proposal.value

    @traitlets.validate("seed")
    def _check_seed(self, proposal: dict) -> int:
        if not 0 <= proposal.value < 2**32:
            raise traitlets.TraitError(
                f"seed is {proposal.value}; it must be 0 to 4294967295"
            )
        return proposal.value

    def _scale(self) -> float:
        return 1 / math.sqrt(self.d) if self.scaled else 1.0

    def _weights(self) -> np.ndarray:
        return softmax(key_products(self.seed, self.d) * self._scale())

    def _products(self) -> np.ndarray:
        return pair_products(self.seed, self.d) * self._scale()

    def _alt(self) -> str:
        weights = self._weights()
        return translate(
            "widget.scaling.alt_scaled" if self.scaled else "widget.scaling.alt_plain",
            d=self.d,
            largest=f"{weights.max():.2f}",
            bits=f"{entropy(weights):.2f}",
            variance=_variance(self._products()),
            pairs=PAIRS,
        )

    def _picture(self) -> str:
        weights, products = self._weights(), self._products()
        theory = 1 if self.scaled else self.d
        limit = _axis_limit(theory)
        counts, _ = np.histogram(products, BINS, (-limit, limit))
        density = counts / (PAIRS * 2 * limit / BINS)
        xs = np.linspace(-limit, limit, 121)
        curve = np.exp(-(xs**2) / (2 * theory)) / math.sqrt(2 * math.pi * theory)
        highest = max(1.15 * curve.max(), 1.05 * density.max())
        heading = "histogram_scaled" if self._scale() != 1 else "histogram"
        floor, height = 232, 184

        def say(thing: str, **values: object) -> str:
            return html.escape(translate(f"widget.scaling.{thing}", **values))

        def text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" fill="{LIGHT[colour]}" '
                f'text-anchor="{anchor}">{words}</text>'
            )

        def rule(x1: int, x2: int, y: float, colour: str) -> str:
            return (
                f'<line x1="{x1}" x2="{x2}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{LIGHT[colour]}"/>'
            )

        parts = [
            text(24, 28, say("bars"), "ink", "start"),
            text(366, 28, say(heading, pairs=PAIRS), "ink", "start"),
        ]
        for w in (0, 0.5, 1):
            parts.append(rule(48, 332, floor - w * height, "line"))
            parts.append(text(42, floor - w * height + 4, f"{w:g}", "muted", "end"))
        for j, w in enumerate(weights):
            parts.append(
                f'<rect x="{50 + 17.7 * j:.1f}" y="{floor - w * height:.1f}" '
                f'width="14" height="{w * height:.1f}" fill="{LIGHT["weight"]}"/>'
            )
            parts.append(text(57 + 17.7 * j, floor + 16, str(j + 1), "muted", "middle"))
        left, span = 366, 290
        bins = "".join(
            f"V{floor - h / highest * height:.1f}H{left + span * (b + 1) / BINS:.1f}"
            for b, h in enumerate(density)
        )
        line = "L".join(
            f"{left + span * i / 120:.1f} {floor - h / highest * height:.1f}"
            for i, h in enumerate(curve)
        )
        parts += [
            f'<path d="M{left} {floor}{bins}V{floor}Z" fill="{LIGHT["line"]}"/>',
            f'<path d="M{line}" fill="none" stroke="{LIGHT["ink"]}" stroke-width="2"/>',
            rule(left, left + span, floor, "muted"),
        ]
        for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
            label = f"{(2 * part - 1) * limit:g}".replace("-", "−")
            parts.append(text(left + span * part, floor + 16, label, "muted", anchor))
        in_theory = (
            say("theory_scaled") if self.scaled else say("theory_plain", d=self.d)
        )
        bits = say("bits", bits=f"{entropy(weights):.2f}", all=f"{math.log2(KEYS):g}")
        for x, y, name, value in (
            (24, 280, "largest", f"{weights.max():.3f}"),
            (24, 302, "entropy", bits),
            (366, 280, "measured", _variance(products)),
            (366, 302, "theory", in_theory),
        ):
            parts.append(text(x, y, f"{say(name)}: {value}", "ink", "start"))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 320" width="680" '
            'height="320" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="680" height="320" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
