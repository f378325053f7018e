"""Mask painter: who may look at whom, how much they do, and what moves if one moves."""

import html
from types import MappingProxyType

import numpy as np
import traitlets

from attnbook import ops
from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["MaskPainter", "allowed", "influence", "look"]

KINDS = ("bidirectional", "causal", "window", "prefix", "padding", "cross", "painted")
# Vectors of the tokens that are read (S, D) and of those being written (T, D), and
# the three matrices; found by trying, so that whoever may look is moved visibly.
_EXAMPLE = MappingProxyType(
    {
        "read": [
            [-0.1, -1.5, 0.2],
            [0.8, 1.0, -0.3],
            [0.9, 1.5, 0.5],
            [0.2, 1.0, 0.0],
            [-1.3, -0.9, 0.0],
        ],
        "written": [[0.2, -1.4, -1.3], [-1.1, -1.5, 0.0], [0.7, -0.3, -1.2]],
        "query": [[-0.5, 0.0, -0.5], [0.0, -0.5, 0.0], [-0.5, -0.5, 0.0]],
        "key": [[0.5, 0.0, -0.5], [0.5, -0.5, -0.5], [-0.5, 0.0, 0.5]],
        "value": [[0.0, -1.0], [-1.0, 0.5], [1.0, -0.5]],
        "disturbance": [1.0, -1.0, 1.0],
    }
)
S = len(_EXAMPLE["read"])
_PAINTED = ["10000", "11000", "00000", "11110", "11111"]


def allowed(
    kind: str, window: int, prefix: int, length: int, cells: list[str]
) -> np.ndarray:
    """Return the mask of a state of the widget, (T, S), True = may look."""
    if kind == "bidirectional":
        return np.ones((S, S), bool)
    if kind == "causal":
        return ops.causal_mask(S)
    if kind == "window":
        return ops.sliding_window_mask(S, window)
    if kind == "prefix":
        return ops.causal_mask(S) | (np.arange(S) < prefix)
    if kind == "padding":
        return np.repeat(ops.padding_mask([length], S)[0, 0], S, axis=0)
    if kind == "cross":
        return np.ones((len(_EXAMPLE["written"]), S), bool)
    return np.array([[sign == "1" for sign in row] for row in cells])


def look(allow: np.ndarray, disturbed: int | None = None) -> dict[str, np.ndarray]:
    """Return weights (T, S) and outputs (T, 2), with or without a disturbed token.

    With as many queries as keys the tokens look at themselves, else those being
    written look at those that are read.
    """
    read = np.array(_EXAMPLE["read"])
    if disturbed is not None:
        read[disturbed] += _EXAMPLE["disturbance"]
    asking = read if len(allow) == S else np.array(_EXAMPLE["written"])
    q, k, v = (
        x @ np.array(_EXAMPLE[name])
        for x, name in ((asking, "query"), (read, "key"), (read, "value"))
    )
    return {
        "weights": ops.attention_weights(q, k, allow),
        "outputs": ops.scaled_dot_product_attention(q, k, v, allow),
    }


def influence(allow: np.ndarray) -> np.ndarray:
    """Disturb each token in turn; return how far each output moves, (T, S)."""
    before = look(allow)["outputs"]
    moved = [look(allow, s)["outputs"] - before for s in range(S)]
    return np.linalg.norm(moved, axis=-1).T


def _share(x: float) -> str:
    """Write a number as the module does: a bare 0 for what is 0 exactly."""
    if x == 0:
        return "0"
    return "<0.01" if x < 0.005 else f"{x:.2f}"


class MaskPainter(BookWidget):
    """A mask, the weights under it, and what moves when one token is disturbed.

    Traits:
        kind: one of "bidirectional", "causal", "window", "prefix", "padding",
            "cross" (three tokens look at five others) and "painted".
        window: how many tokens may be seen, 1 to 5, one's own included.
        prefix: how many tokens see one another, 0 to 5.
        length: how many tokens are no padding, 0 to 5.
        cells: the painted mask, five rows (or three, for cross-attention) of five
            signs, "1" = may look.
        disturbed: which token is disturbed, 0 to 4.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "mask_painter"
    kind = traitlets.Unicode("causal").tag(sync=True)
    window = traitlets.Int(2).tag(sync=True)
    prefix = traitlets.Int(2).tag(sync=True)
    length = traitlets.Int(3).tag(sync=True)
    cells = traitlets.List(traitlets.Unicode(), _PAINTED).tag(sync=True)
    disturbed = traitlets.Int(2).tag(sync=True)

    @traitlets.validate("kind")
    def _check_kind(self, proposal: dict) -> str:
        if proposal.value not in KINDS:
            raise traitlets.TraitError(
                f"kind is {proposal.value!r}; it must be one of {', '.join(KINDS)}"
            )
        return proposal.value

    @traitlets.validate("window", "prefix", "length", "disturbed")
    def _check_number(self, proposal: dict) -> int:
        name = proposal.trait.name
        low = 1 if name == "window" else 0
        high = S - 1 if name == "disturbed" else S
        if not low <= proposal.value <= high:
            raise traitlets.TraitError(
                f"{name} is {proposal.value}; it must be {low} to {high}"
            )
        return proposal.value

    @traitlets.validate("cells")
    def _check_cells(self, proposal: dict) -> list[str]:
        rows = proposal.value
        if len(rows) not in (len(_EXAMPLE["written"]), S) or any(
            len(row) != S or set(row) - set("01") for row in rows
        ):
            raise traitlets.TraitError(
                f"cells is {rows!r}; it must be five rows, or three, of five signs 0 "
                f"or 1"
            )
        return rows

    def _allow(self) -> np.ndarray:
        return allowed(self.kind, self.window, self.prefix, self.length, self.cells)

    def _words(self, rows: int) -> tuple[list[str], list[str]]:
        """Return the words of the queries and of the keys."""

        def words(which: str) -> list[str]:
            count = 3 if which == "written" else S
            return [
                translate(f"widget.mask_painter.{which}.{i + 1}") for i in range(count)
            ]

        keys = words("read")
        if self.kind == "padding":
            pad = translate("widget.mask_painter.pad")
            keys = [w if i < self.length else pad for i, w in enumerate(keys)]
        return (keys if rows == S else words("written")), keys

    def _alt(self) -> str:
        allow = self._allow()
        queries, keys = self._words(len(allow))
        weights = look(allow)["weights"]
        rows = "; ".join(
            f"{query}: {', '.join(map(_share, row))}"
            for query, row in zip(queries, weights, strict=True)
        )
        moved = influence(allow)[:, self.disturbed] > 0
        names = ", ".join(w for w, moves in zip(queries, moved, strict=True) if moves)
        return translate(
            "widget.mask_painter.alt" if names else "widget.mask_painter.alt_none",
            kind=translate(f"widget.mask_painter.kind.{self.kind}"),
            keys=", ".join(keys),
            rows=rows,
            token=keys[self.disturbed],
            moved=names,
        )

    def _picture(self) -> str:
        allow = self._allow()
        queries, keys = self._words(len(allow))
        matrices = (
            ("weights", look(allow)["weights"], "weight", 0),
            ("influence", influence(allow), "output", 336),
        )
        height = 100 + 40 * len(allow)
        parts = []

        def text(x: float, y: float, words: str, more: str = "") -> str:
            colour = "" if "fill=" in more else f' fill="{LIGHT["ink"]}"'
            return f'<text x="{x}" y="{y}"{colour}{more}>{html.escape(words)}</text>'

        middle, end = ' text-anchor="middle"', ' text-anchor="end"'
        muted = f' fill="{LIGHT["muted"]}"'
        for name, matrix, colour, left in matrices:
            title = translate(f"widget.mask_painter.{name}")
            parts.append(text(left + 20, 30, title, ' font-weight="600"'))
            for s, key in enumerate(keys):
                parts.append(text(left + 108 + 46 * s, 62, key, middle + muted))
            largest = max(matrix.max(), 1e-9) if name == "influence" else 1
            for t, query in enumerate(queries):
                y = 74 + 40 * t
                parts.append(text(left + 78, y + 24, query, end + muted))
                for s in range(S):
                    x = left + 86 + 46 * s
                    shade = 0.5 * matrix[t, s] / largest
                    parts.append(
                        f'<rect x="{x}" y="{y}" width="44" height="38" rx="4" '
                        f'fill="{LIGHT[colour]}" fill-opacity="{shade:.2f}" '
                        f'stroke="{LIGHT["line"]}"/>'
                    )
                    if name == "weights" and not allow[t, s]:
                        parts.append(
                            f'<path d="M{x + 6} {y + 32}L{x + 38} {y + 6}" '
                            f'stroke="{LIGHT["line"]}" stroke-width="2"/>'
                        )
                    shown = _share(matrix[t, s])
                    parts.append(text(x + 22, y + 24, shown, middle))
        # The column of the disturbed token.
        parts.append(
            f'<rect x="{336 + 84 + 46 * self.disturbed}" y="46" width="48" '
            f'height="{30 + 40 * len(allow)}" rx="5" fill="none" '
            f'stroke="{LIGHT["ink"]}" stroke-width="2"/>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" '
            f'width="680" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="13">'
            f'<rect width="680" height="{height}" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
