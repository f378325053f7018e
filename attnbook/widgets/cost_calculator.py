"""The cost calculator: what attention costs, and where it overtakes the rest."""

import html
from typing import ClassVar

import traitlets

from attnbook import cost
from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["CostCalculator"]

MOST_TOKENS = 2**20
LIMITS = {
    "layers": (1, 128, 1),
    "width": (64, 16384, 64),
    "heads": (1, 128, 1),
    "kv_heads": (1, 128, 1),
    "head_width": (8, 512, 8),
    "ffn_width": (128, 65536, 128),
    "tokens": (1, MOST_TOKENS, 1),
}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def _sizes_of(config: cost.Config) -> dict[str, int | bool]:
    sizes = {name: getattr(config, name) for name in LIMITS if name != "tokens"}
    return {**sizes, "gated": config.ffn_matrices == 3}


# The texts of numbers are made of whole numbers only, as in the module.


def _count_text(count: int) -> str:
    exponent = len(str(count)) - 1
    if exponent < 6:
        return f"{count:,}"
    unit = 10 ** (exponent - 1)
    leading = (count + unit // 2) // unit
    if leading == 100:
        leading, exponent = 10, exponent + 1
    one, two = str(leading)
    return f"{one}.{two}\u00a0·\u00a010{str(exponent).translate(_RAISED)}"


def _bytes_text(count: int) -> str:
    place = 0
    while place < len(_UNITS) - 1 and count >= 1024 ** (place + 1):
        place += 1
    unit = 1024**place
    tenths = (20 * count + unit) // (2 * unit)
    whole = count % unit == 0
    text = f"{count // unit:,}" if whole else f"{tenths // 10:,}.{tenths % 10}"
    return f"{text}\u00a0{_UNITS[place]}"


def _share_text(part: int, whole: int) -> str:
    tenths = (2000 * part + whole) // (2 * whole)
    if tenths == 0 and part > 0:
        return "<\u00a00.1%"
    return f"{tenths // 10}.{tenths % 10}%"


class CostCalculator(BookWidget):
    """Arithmetic and memory of a model of given sizes, for a text of given length.

    Traits:
        layers, width, heads, head_width, ffn_width: 1 to 128, 64 to 16384 in steps
            of 64, 1 to 128, 8 to 512 in steps of 8, 128 to 65536 in steps of 128.
        kv_heads: key/value heads, a divisor of ``heads``. To change both, make a
            new widget or use ``hold_trait_notifications``.
        gated: whether the feed-forward part has three matrices or two.
        bytes_per_number: 1, 2 or 4.
        tokens: the length of the text, 1 to 2²⁰.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "cost_calculator"
    data: ClassVar[object] = [
        {"name": name, "context": config.context, **_sizes_of(config)}
        for name, config in cost.CONFIGS.items()
    ]
    layers = traitlets.Int(28).tag(sync=True)
    width = traitlets.Int(3584).tag(sync=True)
    heads = traitlets.Int(28).tag(sync=True)
    kv_heads = traitlets.Int(4).tag(sync=True)
    head_width = traitlets.Int(128).tag(sync=True)
    ffn_width = traitlets.Int(18944).tag(sync=True)
    gated = traitlets.Bool(True).tag(sync=True)
    bytes_per_number = traitlets.Enum((1, 2, 4), 2).tag(sync=True)
    tokens = traitlets.Int(131072).tag(sync=True)

    @traitlets.validate(*LIMITS)
    def _check_size(self, proposal: dict) -> int:
        name, value = proposal.trait.name, proposal.value
        low, high, step = LIMITS[name]
        if not low <= value <= high or value % step:
            steps = "" if step == 1 else f" in steps of {step}"
            raise traitlets.TraitError(
                f"{name} is {value}; it must be {low} to {high}{steps}"
            )
        both = {"heads": self.heads, "kv_heads": self.kv_heads, name: value}
        if both["heads"] % both["kv_heads"]:
            raise traitlets.TraitError(
                f"{name} is {value}, but kv_heads, {both['kv_heads']}, must divide "
                f"heads, {both['heads']}"
            )
        return value

    def _preset(self) -> str | None:
        for name, config in cost.CONFIGS.items():
            if all(getattr(self, n) == size for n, size in _sizes_of(config).items()):
                return name
        return None

    def _arithmetic(self, queries: int, keys: int) -> dict[str, int]:
        heads, width, N = self.heads, self.head_width, self.layers
        return {
            "projections": N
            * cost.projection_flops(queries, self.width, heads, self.kv_heads, width),
            "scores": N * cost.attention_flops(queries, keys, heads, width),
            "feed_forward": N
            * cost.feed_forward_flops(
                queries, self.width, self.ffn_width, 3 if self.gated else 2
            ),
        }

    def _memory(self) -> dict[str, int]:
        n, size = self.tokens, self.bytes_per_number
        layer = cost.weights_bytes(n, n, self.heads, size)
        kept = (self.layers, self.kv_heads, self.head_width, size)
        return {
            "weights_layer": layer,
            "weights": self.layers * layer,
            "cache_token": cost.kv_cache_bytes(1, *kept),
            "cache": cost.kv_cache_bytes(n, *kept),
        }

    def _level(self) -> int:
        sizes = (self.width, self.heads, self.kv_heads, self.head_width, self.ffn_width)
        return cost.level_keys(*sizes, 3 if self.gated else 2)

    def _alt(self) -> str:
        parts, level = self._arithmetic(1, self.tokens), self._level()
        past = self.tokens >= level
        return translate(
            "widget.cost_calculator.past" if past else "widget.cost_calculator.before",
            name=self._preset() or translate("widget.cost_calculator.these"),
            tokens=f"{self.tokens:,}",
            level=f"{level:,}",
            share=_share_text(parts["scores"], sum(parts.values())),
            cache=_bytes_text(self._memory()["cache"]),
        )

    def _picture(self) -> str:
        def say(thing: str, **values: object) -> str:
            string = translate(f"widget.cost_calculator.{thing}", **values)
            return html.escape(string)

        def text(x: int, y: int, words: str, colour: str = "ink", end: bool = False):
            anchor = "end" if end else "start"
            return (
                f'<text x="{x}" y="{y}" fill="{LIGHT[colour]}" '
                f'text-anchor="{anchor}">{words}</text>'
            )

        def part(
            x: int, y: int, name: str, colour: str, share: str, portion: float, *lines
        ) -> str:
            """Draw one part of the bill, 300 wide: name, bar, two lines of numbers."""
            shown = [
                text(x, y, say(name)),
                text(x + 300, y, html.escape(share), colour, True),
                f'<rect x="{x}" y="{y + 7}" width="300" height="6" rx="3" '
                f'fill="{LIGHT["line"]}"/>',
                f'<rect x="{x}" y="{y + 7}" width="{300 * portion:.1f}" height="6" '
                f'rx="3" fill="{LIGHT[colour]}"/>',
            ]
            for i, (line, value) in enumerate(lines):
                shown.append(text(x, y + 30 + 17 * i, say(line), "muted"))
                shown.append(text(x + 300, y + 30 + 17 * i, value, "ink", True))
            return "".join(shown)

        n = self.tokens
        whole, one = self._arithmetic(n, n), self._arithmetic(1, n)
        total, held = sum(one.values()), self._memory()
        most = max(held["weights"], held["cache"])
        name = html.escape(self._preset() or translate("widget.cost_calculator.these"))
        parts = [
            text(24, 30, f"{name}, n = {n:,}"),
            text(24, 58, say("arithmetic"), "muted"),
            text(356, 58, say("memory"), "muted"),
        ]
        colours = {"projections": "query", "scores": "weight", "feed_forward": "output"}
        for i, (row, colour) in enumerate(colours.items()):
            parts.append(
                part(
                    24,
                    84 + 72 * i,
                    row,
                    colour,
                    _share_text(one[row], total),
                    one[row] / total,
                    ("whole_text", _count_text(whole[row])),
                    ("one_token", _count_text(one[row])),
                )
            )
        for i, (row, colour, small, lines) in enumerate(
            (
                ("weights", "weight", "weights_layer", ("one_layer", "all_layers")),
                ("cache", "key", "cache_token", ("each_token", "all_tokens")),
            )
        ):
            shown = [_bytes_text(held[small]), _bytes_text(held[row])]
            parts.append(
                part(
                    356,
                    84 + 72 * i,
                    row,
                    colour,
                    shown[1],
                    held[row] / most,
                    *zip(lines, shown, strict=True),
                )
            )
        crossing = say("keys", count=f"{self._level():,}")
        parts.append(text(356, 228, say("crossing"), "muted"))
        parts.append(text(656, 248, crossing, "ink", True))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 296" width="680" '
            'height="296" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="680" height="296" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
