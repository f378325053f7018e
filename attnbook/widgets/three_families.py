"""Three families: who sees whom, what is asked of each place, how many losses."""

import html
from types import MappingProxyType

import numpy as np
import traitlets

from attnbook import ops
from attnbook.language import translate
from attnbook.palette import LIGHT
from attnbook.widgets.base import BookWidget
from attnbook.widgets.scaling import random_words

__all__ = ["ThreeFamilies", "covered", "expected", "lesson", "losses", "masks", "sees"]

FAMILIES = ("encoder", "decoder", "pair")
TEXTS = ("letters", "key", "rain")
# Signs that a model is given where no token of the text stands.
MASK, START = -1, -2
MOST = 12
LONG = 512
RATE_STEP, RATE_MOST = 5, 50
SEEDS = 10_000
_HUES = MappingProxyType({"read": "weight", "own": "weight", "cross": "key"})


def masks(family: str, n: int) -> dict[str, np.ndarray]:
    """Return the masks of a family for a text of ``n`` tokens, True = may look.

    ``own`` is (T, T), what the stack that is asked sees of itself; the pair also
    has ``read``, (S, S), of its encoder, and ``cross``, (T, S).
    """
    if family == "encoder":
        return {"own": np.ones((n, n), bool)}
    if family == "decoder":
        return {"own": ops.causal_mask(n - 1)}
    S = n // 2
    return {
        "read": np.ones((S, S), bool),
        "own": ops.causal_mask(n - S),
        "cross": np.ones((n - S, S), bool),
    }


def covered(seed: int, rate: int, flipped: list[int], n: int) -> list[int]:
    """Return the places of the encoder's holes: drawn, then turned over by hand."""
    drawn = (random_words(seed, np.arange(n)) + 0.5) / 2**32 < rate / 100
    return [i for i in range(n) if drawn[i] != (i in flipped)]


def lesson(family: str, n: int, holes: list[int]) -> dict[str, list[int | None]]:
    """Return what a model is given and asked on a text whose tokens are 0 to n − 1.

    ``source`` is what the pair reads, ``given`` what each place of the stack that
    is asked gets (a token, ``MASK`` or ``START``), ``answers`` what each is asked
    for, None where nothing is.
    """
    tokens = list(range(n))
    if family == "encoder":
        given = [MASK if i in holes else i for i in tokens]
        answers = [i if i in holes else None for i in tokens]
        return {"source": [], "given": given, "answers": answers}
    if family == "decoder":
        return {"source": [], "given": tokens[:-1], "answers": tokens[1:]}
    source, answers = tokens[: n // 2], tokens[n // 2 :]
    return {"source": source, "given": [START, *answers[:-1]], "answers": answers}


def losses(family: str, n: int, holes: list[int]) -> int:
    """Count the places that are asked."""
    answers = lesson(family, n, holes)["answers"]
    return sum(answer is not None for answer in answers)


def expected(family: str, n: int, rate: int) -> float:
    """Return how many places of a text of ``n`` tokens are asked, on average."""
    return n * rate / 100 if family == "encoder" else losses(family, n, [])


def sees(family: str, n: int, place: int) -> dict[str, list[int]]:
    """Return the places that a place sees in its own stack, and those across.

    The pair's places run through the source and on through the answer.
    """
    allow = masks(family, n)
    if family != "pair":
        return {"own": np.flatnonzero(allow["own"][place]).tolist(), "across": []}
    S = n // 2
    if place < S:
        return {"own": np.flatnonzero(allow["read"][place]).tolist(), "across": []}
    own, cross = (np.flatnonzero(allow[name][place - S]) for name in ("own", "cross"))
    return {"own": (own + S).tolist(), "across": cross.tolist()}


def _percent(part: int, whole: int) -> str:
    return f"{(200 * part + whole) // (2 * whole)} %"


def _numbers(places: list[int]) -> str:
    """Write neighbouring places, as "3" or "1–3"."""
    ends = dict.fromkeys([*places[:1], *places[-1:]])
    return "–".join(str(place + 1) for place in ends)


class ThreeFamilies(BookWidget):
    """One sentence, three families: masks, objective, and losses.

    Traits:
        family: "encoder", "decoder" or "pair" (encoder–decoder).
        text: which sentence, "letters", "key" or "rain".
        rate: percent of the tokens that are covered for the encoder, on average;
            a multiple of 5, 5 to 50.
        seed: of the draw of covered places, 0 to 9999.
        flipped: places, 0 to 11, at which the reader turned the draw over.
        place: the place that is followed, 0 to 11; the last, if there are fewer.

    Raises ``TraitError`` if a value does not fit.
    """

    name = "three_families"
    family = traitlets.Unicode("encoder").tag(sync=True)
    text = traitlets.Unicode("letters").tag(sync=True)
    rate = traitlets.Int(15).tag(sync=True)
    seed = traitlets.Int(11).tag(sync=True)
    flipped = traitlets.List(traitlets.Int()).tag(sync=True)
    place = traitlets.Int(6).tag(sync=True)

    @traitlets.validate("family", "text")
    def _check_choice(self, proposal: dict) -> str:
        name = proposal.trait.name
        known = FAMILIES if name == "family" else TEXTS
        if proposal.value not in known:
            raise traitlets.TraitError(
                f"{name} is {proposal.value!r}; it must be one of {', '.join(known)}"
            )
        return proposal.value

    @traitlets.validate("rate")
    def _check_rate(self, proposal: dict) -> int:
        if not RATE_STEP <= proposal.value <= RATE_MOST or proposal.value % RATE_STEP:
            raise traitlets.TraitError(
                f"rate is {proposal.value}; it must be a multiple of {RATE_STEP} from "
                f"{RATE_STEP} to {RATE_MOST}"
            )
        return proposal.value

    @traitlets.validate("seed", "place")
    def _check_number(self, proposal: dict) -> int:
        name = proposal.trait.name
        high = (SEEDS if name == "seed" else MOST) - 1
        if not 0 <= proposal.value <= high:
            raise traitlets.TraitError(
                f"{name} is {proposal.value}; it must be 0 to {high}"
            )
        return proposal.value

    @traitlets.validate("flipped")
    def _check_flipped(self, proposal: dict) -> list[int]:
        places = proposal.value
        if len(set(places)) < len(places) or set(places) - set(range(MOST)):
            raise traitlets.TraitError(
                f"flipped is {places!r}; it must hold different places, 0 to {MOST - 1}"
            )
        return places

    def _words(self) -> list[str]:
        return translate(f"widget.three_families.text.{self.text}").split()

    def _holes(self) -> list[int]:
        return covered(self.seed, self.rate, self.flipped, len(self._words()))

    def _rows(self) -> list[dict]:
        """Return of each place its number, what it is given, and what it is asked."""
        words = self._words()
        n = len(words)
        task = lesson(self.family, n, self._holes())
        signs = {
            MASK: translate("widget.three_families.mask"),
            START: translate("widget.three_families.start"),
        }
        given = [*task["source"], *task["given"]]
        answers = [*(None for _ in task["source"]), *task["answers"]]
        return [
            {
                "place": i + 1,
                "given": signs[g] if g in signs else words[g],
                "answer": None if a is None else words[a],
                **sees(self.family, n, i),
            }
            for i, (g, a) in enumerate(zip(given, answers, strict=True))
        ]

    def _alt(self) -> str:
        rows = []
        for row in self._rows():
            kind = "row_asked" if row["answer"] else "row_free"
            if row["across"]:
                kind = "row_asked_across"
            rows.append(
                translate(
                    f"widget.three_families.{kind}",
                    place=row["place"],
                    given=row["given"],
                    seen=_numbers(row["own"]),
                    across=_numbers(row["across"]),
                    answer=row["answer"],
                )
            )
        counts = ", ".join(f"{name} {count}" for name, count, _ in self._counts())
        return translate(
            "widget.three_families.alt",
            family=translate(f"widget.three_families.family.{self.family}"),
            rows="; ".join(rows),
            counts=counts,
        )

    def _counts(self) -> list[tuple[str, str, float]]:
        """Return of each family its name, its losses in words, and its share."""
        n, holes = len(self._words()), self._holes()
        return [
            (
                translate(f"widget.three_families.family.{family}"),
                translate(
                    "widget.three_families.of",
                    part=losses(family, n, holes),
                    whole=n,
                ),
                losses(family, n, holes) / n,
            )
            for family in FAMILIES
        ]

    def _picture(self) -> str:
        rows = self._rows()
        n = len(self._words())
        allow = masks(self.family, n)
        chosen = min(self.place, len(rows) - 1)
        S = len(allow["read"]) if "read" in allow else 0
        parts = []

        def text(
            x: float,
            y: float,
            words: str,
            colour: str = "ink",
            anchor: str = "start",
            weight: int = 400,
        ) -> str:
            return (
                f'<text x="{x}" y="{y}" fill="{LIGHT[colour]}" text-anchor="{anchor}" '
                f'font-weight="{weight}">{html.escape(words)}</text>'
            )

        def grid(name: str, left: int, top: int, first: int, columns: int) -> None:
            """Draw a mask whose first row and column are these places."""
            title = translate(f"widget.three_families.matrix.{self.family}_{name}")
            parts.append(text(left, top - 26, title, "ink", weight=600))
            for c in range(allow[name].shape[1]):
                number = str(columns + c + 1)
                parts.append(
                    text(left + 24 * c + 11, top - 6, number, "muted", "middle")
                )
            for t, line in enumerate(allow[name]):
                y = top + 24 * t
                for c, seen in enumerate(line):
                    x = left + 24 * c
                    hue = LIGHT[_HUES[name]] if seen else LIGHT["surface"]
                    parts.append(
                        f'<rect x="{x}" y="{y}" width="22" height="22" rx="4" '
                        f'fill="{hue}" fill-opacity="{0.55 if seen else 1}" '
                        f'stroke="{LIGHT["line"]}"/>'
                    )
                if first + t == chosen:
                    parts.append(
                        f'<rect x="{left - 2}" y="{y - 2}" rx="5" height="26" '
                        f'width="{24 * len(line) + 2}" fill="none" '
                        f'stroke="{LIGHT["ink"]}" stroke-width="2"/>'
                    )

        def beside(left: int, top: int, first: int, last: int, right: int) -> None:
            """Write what the places are given and asked for, left and right."""
            for i, row in enumerate(rows[first:last]):
                y = top + 24 * i + 16
                head = f"{row['place']} {row['given']}"
                parts.append(text(left - 8, y, head, "ink", "end"))
                if row["answer"]:
                    parts.append(text(right, y, f"→ {row['answer']}", "output"))

        top = 68
        if S:
            grid("read", 118, top, 0, 0)
            beside(118, top, 0, S, 0)
            top += 24 * S + 52
        T = len(allow["own"])
        grid("own", 118, top, S, S)
        beside(118, top, S, S + T, 118 + 24 * T + 8)
        if S:
            grid("cross", 330, top, S, 0)
        height = top + 24 * T + 20
        parts.append(
            text(470, 42, translate("widget.three_families.counts"), weight=600)
        )
        for i, (name, count, share) in enumerate(self._counts()):
            y = 72 + 42 * i
            whole = FAMILIES[i] == self.family
            parts.append(text(470, y, name, "ink", weight=600 if whole else 400))
            parts.append(text(656, y + 20, count, "ink", "end"))
            parts += [
                f'<rect x="470" y="{y + 10}" width="{width:.1f}" height="12" rx="3" '
                f'fill="{LIGHT[hue]}"/>'
                for width, hue in ((120, "line"), (120 * share, "output"))
                if width
            ]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" '
            f'width="680" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="13">'
            f'<rect width="680" height="{height}" rx="10" fill="{LIGHT["page"]}"/>'
            f"{''.join(parts)}</svg>"
        )
