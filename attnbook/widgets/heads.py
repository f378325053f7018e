"""Heads and groups: who reads whose keys and values, and what that costs."""

import html

import numpy as np
import traitlets

from attnbook.cost import (
    CONFIGS,
    attention_exponentials,
    attention_flops,
    kv_cache_bytes,
)
from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["HeadsAndGroups"]

MOST_HEADS = 64
WIDEST = 256
WIDTH_STEP = 8


def _costs(heads: int, kv_heads: int, width: int) -> dict[str, int]:
    """Return what one layer does for a pair of tokens, and keeps for a token."""
    return {
        "products": attention_flops(1, 1, heads, width) // 2,
        "exponentials": attention_exponentials(1, 1, heads),
        "kept": kv_cache_bytes(1, 1, kv_heads, width, 1),
        "bytes": kv_cache_bytes(1, 1, kv_heads, width),
    }


def _kibibytes(count: int) -> str:
    return f"{count / 1024:.{0 if count % 1024 == 0 else 1}f} KiB"


class HeadsAndGroups(BookWidget):
    """Query heads, the key/value heads that they read, and what is kept.

    Traits:
        heads: query heads, 1 to 64.
        kv_heads: key/value heads, a divisor of ``heads``. To change both, make a
            new widget or use ``hold_trait_notifications``.
        head_width: numbers in one key, a multiple of 8 up to 256.
        asker: the query head that is followed, 0 to 63; the last, if there are
            fewer.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "heads"
    heads = traitlets.Int(28).tag(sync=True)
    kv_heads = traitlets.Int(4).tag(sync=True)
    head_width = traitlets.Int(128).tag(sync=True)
    asker = traitlets.Int(9).tag(sync=True)

    @traitlets.validate("heads", "kv_heads")
    def _check_heads(self, proposal: dict) -> int:
        name, value = proposal.trait.name, proposal.value
        if not 1 <= value <= MOST_HEADS:
            raise traitlets.TraitError(
                f"{name} is {value}; it must be 1 to {MOST_HEADS}"
            )
        both = {"heads": self.heads, "kv_heads": self.kv_heads, name: value}
        if both["heads"] % both["kv_heads"]:
            raise traitlets.TraitError(
                f"{name} is {value}, but kv_heads, {both['kv_heads']}, must divide "
                f"heads, {both['heads']}"
            )
        return value

    @traitlets.validate("head_width")
    def _check_width(self, proposal: dict) -> int:
        value = proposal.value
        if not WIDTH_STEP <= value <= WIDEST or value % WIDTH_STEP:
            raise traitlets.TraitError(
                f"head_width is {value}; it must be a multiple of {WIDTH_STEP} "
                f"up to {WIDEST}"
            )
        return value

    @traitlets.validate("asker")
    def _check_asker(self, proposal: dict) -> int:
        if not 0 <= proposal.value < MOST_HEADS:
            raise traitlets.TraitError(
                f"asker is {proposal.value}; it must be 0 to {MOST_HEADS - 1}"
            )
        return proposal.value

    def _readers(self) -> np.ndarray:
        return np.repeat(np.arange(self.kv_heads), self.heads // self.kv_heads)

    def _preset(self) -> str | None:
        sizes = (self.heads, self.kv_heads, self.head_width)
        for name, c in CONFIGS.items():
            if sizes == (c.heads, c.kv_heads, c.head_width):
                return name
        return None

    def _sentence(self) -> str:
        group = self.heads // self.kv_heads
        asker = min(self.asker, self.heads - 1)
        read = int(self._readers()[asker])
        kind = "grouped"
        if self.heads == 1:
            kind = "single"
        elif group == 1:
            kind = "full"
        elif self.kv_heads == 1:
            kind = "multi"
        values = {"heads": self.heads, "asker": asker, "read": read, "group": group}
        first, last = read * group, read * group + group - 1
        said = translate(f"widget.heads.{kind}", first=first, last=last, **values)
        name = self._preset()
        if name is None:
            return said
        config = CONFIGS[name]
        full = kv_cache_bytes(1, config.layers, config.heads, config.head_width)
        more = translate(
            "widget.heads.layers_full" if group == 1 else "widget.heads.layers",
            name=name,
            layers=config.layers,
            bytes=_kibibytes(config.kv_cache_bytes(1)),
            full=_kibibytes(full),
        )
        return f"{said} {more}"

    def _alt(self) -> str:
        shown = translate(
            "widget.heads.picture_alt",
            heads=self.heads,
            kv_heads=self.kv_heads,
            asker=min(self.asker, self.heads - 1),
            read=int(self._readers()[min(self.asker, self.heads - 1)]),
        )
        return f"{shown} {self._sentence()}"

    def _picture(self) -> str:
        heads, kv_heads, width = self.heads, self.kv_heads, self.head_width
        owner, group = self._readers(), self.heads // self.kv_heads
        asker = min(self.asker, heads - 1)
        read = int(owner[asker])
        pitch = 300 / heads
        wide = min(40, pitch - min(4, pitch / 4))

        def say(thing: str, **values: object) -> str:
            return html.escape(translate(f"widget.heads.{thing}", **values))

        def x(place: float) -> float:
            return 24 + (place + 0.5) * pitch

        def home(g: int) -> float:
            return x(g * group + (group - 1) / 2)

        def text(
            x: float, y: float, words: str, colour: str = "ink", anchor: str = "start"
        ) -> str:
            return (
                f'<text x="{x:.1f}" y="{y}" fill="{LIGHT[colour]}" '
                f'text-anchor="{anchor}">{words}</text>'
            )

        def box(middle: float, y: int, height: int, colour: str, fully: bool) -> str:
            return (
                f'<rect x="{middle - wide / 2:.1f}" y="{y}" width="{wide:.1f}" '
                f'height="{height}" rx="{min(3, wide / 4):.1f}" fill="{LIGHT[colour]}" '
                f'opacity="{1 if fully else 0.35}"/>'
            )

        def way(h: int, colour: str, thickness: float) -> str:
            end = home(int(owner[h]))
            return (
                f'<line x1="{x(h):.1f}" y1="81" x2="{end:.1f}" y2="137" '
                f'stroke="{LIGHT[colour]}" stroke-width="{thickness}"/>'
            )

        parts = [text(24, 30, say("queries_above", heads=heads), "muted")]
        parts += [way(h, "line", 1.5) for h in range(heads)]
        parts.append(way(asker, "query", 3))
        for h in range(heads):
            parts.append(box(x(h), 58, 22, "query", owner[h] == read))
        for g in range(kv_heads):
            parts.append(box(home(g), 138, 15, "key", g == read))
            parts.append(box(home(g), 155, 15, "value", g == read))
        parts += [
            text(max(34, min(314, x(asker))), 52, f"Q{asker}", "query", "middle"),
            text(
                max(44, min(304, home(read))), 188, f"K{read} V{read}", "ink", "middle"
            ),
            text(24, 214, say("keys_below", kv_heads=kv_heads), "muted"),
        ]
        columns = [
            _costs(heads, kv_heads, width),
            _costs(heads, heads, width),
            _costs(1, 1, heads * width),
        ]
        for place, thing in ((540, "these"), (594, "full_column"), (656, "one_column")):
            parts.append(text(place, 30, say(thing), "muted", "end"))
        for i, row in enumerate(columns[0]):
            y = 62 + 30 * i
            parts.append(
                f'<line x1="352" x2="656" y1="{y - 20}" y2="{y - 20}" '
                f'stroke="{LIGHT["line"]}"/>'
            )
            parts.append(text(352, y, say(f"row_short.{row}")))
            for place, column in zip((540, 594, 656), columns, strict=True):
                parts.append(text(place, y, str(column[row]), anchor="end"))
        share = "1" if group == 1 else f"1/{group}"
        parts.append(text(352, 188, f"{say('share')}: {share}"))
        parts.append(text(352, 214, f"{say('served')}: {group}"))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 236" width="680" '
            'height="236" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="680" height="236" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
