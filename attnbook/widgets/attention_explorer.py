"""Attention explorer: recorded attention of two real models, every layer and head."""

import base64
import html
import json
import zlib
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import traitlets

from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget

__all__ = ["AttentionExplorer", "recorded_attention"]

_FILE = Path(__file__).parents[1] / "data" / "attention_explorer.json"
_RECORD = json.loads(_FILE.read_text("utf-8"))
_SENTENCES = {(r["network"], r["text"]): r for r in _RECORD["recorded"]}
NETWORKS = tuple(_RECORD["networks"])
TEXTS = tuple(_RECORD["sentences"])
LONGEST = max(len(r["tokens"]) for r in _RECORD["recorded"])


@lru_cache(maxsize=4)
def recorded_attention(network: str, text: str) -> np.ndarray:
    """Return the recorded weights of a sentence, (layers, H, T, T), rows sum to 1.

    They were recorded in steps of 1/255.
    """
    shape = _RECORD["networks"][network]
    sentence = _SENTENCES[network, text]
    steps = np.frombuffer(
        zlib.decompress(base64.b64decode(sentence["weights"])), np.uint8
    )
    T = len(sentence["tokens"])
    whole = np.zeros((shape["layers"], shape["heads"], T, T))
    if shape["causal"]:
        rows, columns = np.tril_indices(T)
        whole[:, :, rows, columns] = steps.reshape(*whole.shape[:2], -1)
    else:
        whole[:] = steps.reshape(whole.shape)
    return whole / whole.sum(axis=-1, keepdims=True)


def _share(x: float) -> str:
    return "<0.01" if x < 0.005 else f"{x:.2f}"


class AttentionExplorer(BookWidget):
    """The attention of two published models on a dozen sentences, head by head.

    Traits:
        network: "minilm" (an encoder) or "smollm2" (a decoder).
        text: which sentence, by name; one that was not recorded with this network
            gives way to the network's first.
        layer, head: which head, counted from 0; the last, if there are fewer.
        token: the place of the token that looks, from 0; the last, if there are
            fewer.
        target: the place of the token that is looked at.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "attention_explorer"
    data: ClassVar[dict] = {
        **{n: _RECORD[n] for n in ("networks", "sentences", "presets", "found")},
        "order": {n: [t for t in TEXTS if (n, t) in _SENTENCES] for n in NETWORKS},
        # Keys of an object are sorted when it is written.
        "goes_to": list(_RECORD["presets"]),
        "longest": LONGEST,
    }
    _start_at = _RECORD["presets"]["gender_minilm"]
    network = traitlets.Unicode(_start_at["network"]).tag(sync=True)
    text = traitlets.Unicode(_start_at["text"]).tag(sync=True)
    layer = traitlets.Int(_start_at["layer"]).tag(sync=True)
    head = traitlets.Int(_start_at["head"]).tag(sync=True)
    token = traitlets.Int(_start_at["token"]).tag(sync=True)
    target = traitlets.Int(_start_at["target"]).tag(sync=True)
    # What a live notebook shows; a page loads the same from a file of its own.
    _recorded = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: object) -> None:
        super().__init__(**state)
        self._hand_over()
        self.observe(lambda _: self._hand_over(), ["network", "text"])

    @traitlets.validate("network", "text")
    def _check_name(self, proposal: dict) -> str:
        name = proposal.trait.name
        known = NETWORKS if name == "network" else TEXTS
        if proposal.value not in known:
            raise traitlets.TraitError(
                f"{name} is {proposal.value!r}; it must be one of {', '.join(known)}"
            )
        return proposal.value

    @traitlets.validate("layer", "head", "token", "target")
    def _check_number(self, proposal: dict) -> int:
        name = proposal.trait.name
        count = LONGEST
        if name in ("layer", "head"):
            count = max(shape[f"{name}s"] for shape in _RECORD["networks"].values())
        if not 0 <= proposal.value < count:
            raise traitlets.TraitError(
                f"{name} is {proposal.value}; it must be 0 to {count - 1}"
            )
        return proposal.value

    @classmethod
    def files(cls) -> dict[str, str]:
        """Return a module for each sentence, which a page loads when it is chosen."""
        return {
            f"{cls.name}.{network}.{text}.js": (
                f"export default {_sent(network, text)};\n"
            )
            for network, text in _SENTENCES
        }

    def _there(self) -> str:
        """Return the chosen sentence, or the network's first in its place."""
        order = self.data["order"][self.network]
        return self.text if self.text in order else order[0]

    def _hand_over(self) -> None:
        text = self._there()
        sent = json.loads(_sent(self.network, text))
        self._recorded = {"key": f"{self.network}.{text}", **sent}

    def _scene(self) -> dict:
        text = self._there()
        weights = recorded_attention(self.network, text)
        last = weights.shape[-1] - 1
        layer, head = (
            min(self.layer, len(weights) - 1),
            min(self.head, weights.shape[1] - 1),
        )
        return {
            "layer": layer,
            "head": head,
            "token": min(self.token, last),
            "target": min(self.target, last),
            "tokens": _SENTENCES[self.network, text]["tokens"],
            "weights": weights[layer, head],
        }

    def _title(self, scene: dict) -> str:
        return translate(
            "widget.attention_explorer.picture",
            network=translate(f"widget.attention_explorer.network.{self.network}"),
            layer=scene["layer"],
            head=scene["head"],
        )

    def _alt(self) -> str:
        scene = self._scene()
        tokens, row = scene["tokens"], scene["weights"][scene["token"]]
        most = [s for s in np.argsort(-row, kind="stable")[:5] if row[s] >= 0.01]
        return translate(
            "widget.attention_explorer.alt",
            title=self._title(scene),
            sentence=_RECORD["sentences"][self._there()],
            token=tokens[scene["token"]],
            weights=", ".join(f"{tokens[s]} {_share(row[s])}" for s in most),
        )

    def _picture(self) -> str:
        scene = self._scene()
        tokens, weights, asks = scene["tokens"], scene["weights"], scene["token"]
        step, top, left, n = 24, 62, 120, len(tokens)
        height = top + step * n + 14
        parts = []

        def text(x: float, y: float, words: str, more: str = "") -> str:
            return (
                f'<text x="{x:g}" y="{y:g}" fill="{LIGHT["ink"]}"{more}>'
                f"{html.escape(words)}</text>"
            )

        parts.append(text(20, 28, self._title(scene), ' font-weight="600"'))
        for s, token in enumerate(tokens):
            y = top + step * s + 16
            bold = ' font-weight="700"' if s == asks else ""
            parts.append(text(left, y, token, bold))
            parts.append(text(left + 96, y, _share(weights[asks, s])))
            if s != asks and weights[asks, s] >= 0.005:
                here, there = top + step * asks + 12, top + step * s + 12
                out = max(8, left - 12 - 0.7 * abs(here - there))
                parts.append(
                    f'<path d="M{left - 6} {here}C{out:g} {here} {out:g} {there} '
                    f'{left - 6} {there}" fill="none" stroke="{LIGHT["weight"]}" '
                    f'stroke-width="{1 + 8 * weights[asks, s]:.1f}" '
                    f'stroke-opacity="{0.25 + 0.75 * weights[asks, s]:.2f}"/>'
                )
        x0, size = 380, min(step, 280 / n)
        for t, token in enumerate(tokens):
            y = top + size * (t + 0.5) + 4
            parts.append(text(x0 - 8, round(y, 1), token, ' text-anchor="end"'))
        # Cells of nearly the same shade are one path: it keeps the page small.
        for tenth in range(1, 11):
            cells = np.argwhere(np.ceil(weights * 10 - 0.3) == tenth)
            if len(cells):
                path = "".join(
                    f"M{x0 + size * s:.0f} {top + size * t:.0f}h{size - 1:.0f}"
                    f"v{size - 1:.0f}h-{size - 1:.0f}z"
                    for t, s in cells
                )
                parts.append(
                    f'<path d="{path}" fill="{LIGHT["weight"]}" '
                    f'fill-opacity="{tenth / 10:g}"/>'
                )
        parts.append(
            f'<rect x="{x0 - 2}" y="{top + size * asks - 2:.0f}" '
            f'width="{size * n + 3:.0f}" height="{size + 3:.0f}" rx="3" fill="none" '
            f'stroke="{LIGHT["ink"]}"/>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" '
            f'width="680" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="13">'
            f'<rect width="680" height="{height}" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )


def _sent(network: str, text: str) -> str:
    """Write a sentence's tokens and weights as JSON."""
    sentence = _SENTENCES[network, text]
    part = {name: sentence[name] for name in ("tokens", "weights")}
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
