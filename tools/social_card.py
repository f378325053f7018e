"""Draw book/assets/card.png, the picture that a link to the book is shown with.

Two sentences' worth of tokens, each looking at one other: 1200 by 630 pixels,
the same bytes every time.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch

from attnbook.language import translate
from attnbook.palette import LIGHT

CARD = Path(__file__).resolve().parents[1] / "book" / "assets" / "card.png"
PAPER = "#faf5ec"


def draw(path: Path) -> None:
    """Write the card to ``path``."""
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 1200), ylim=(0, 630), aspect="equal")
    axes.axis("off")
    font = {"family": "DejaVu Serif", "color": LIGHT["ink"]}
    axes.text(80, 500, translate("page.title"), size=60, weight="bold", **font)
    axes.text(82, 430, translate("page.subtitle"), size=26, **font)
    places = [120 + 160 * i for i in range(7)]
    colours = ["key", *["value"] * 5, "query"]
    for x, name in zip(places, colours, strict=True):
        axes.add_patch(Circle((x, 110), 34, color=LIGHT[name], zorder=3))
    # The last token looks at all the others, at the first one most.
    for x, width in zip(places[:-1], (16, 2, 3, 9, 2, 4), strict=True):
        arrow = FancyArrowPatch(
            (places[-1], 150),
            (x, 150),
            connectionstyle="arc3,rad=0.22",
            arrowstyle="-",
            linewidth=width,
            color=LIGHT["weight"],
            alpha=0.85,
            capstyle="round",
        )
        axes.add_patch(arrow)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(CARD)
