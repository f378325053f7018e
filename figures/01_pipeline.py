"""The pipeline of scaled dot-product attention, with shapes (chapter 1)."""

from drawing import Sheet, write

from attnbook.language import translate

ROLES = (
    ("query", "Q", "(T, dₖ)", 92),
    ("key", "K", "(S, dₖ)", 240),
    ("value", "V", "(S, dᵥ)", 388),
)


def words(name: str) -> str:
    return translate(f"figure.pipeline.{name}")


def project(sheet: Sheet, role: str, letter: str, shape: str, x: float) -> None:
    """One learned matrix and what it makes of the words."""
    sheet.arrow((240, 66), (240, 84), (x, 84), (x, 104))
    sheet.step(x - 44, 104, 88, 36)
    sheet.text("×", x - 22, 122)
    sheet.text("W", x + 2, 121, 18, maths=True)
    sheet.text(letter, x + 16, 127, 12, maths=True)
    sheet.arrow((x, 140), (x, 164), colour=role)
    sheet.box(x - 66, 164, 132, 58, role)
    sheet.text(letter, x - 26, 182, 20, role, maths=True)
    sheet.text(shape, x + 22, 182, 14, "muted")
    sheet.text(words(role), x, 206, 14, role)


def draw(sheet: Sheet) -> None:
    sheet.box(174, 12, 132, 54, "ink")
    sheet.text("X", 212, 29, 20, maths=True)
    sheet.text("(T, D)", 258, 29, 14, "muted")
    sheet.text(words("words"), 240, 51, 14)
    for role in ROLES:
        project(sheet, *role)

    # Queries meet keys.
    sheet.arrow((92, 222), (92, 272), (126, 272), colour="query")
    sheet.arrow((240, 222), (240, 254), colour="key")
    sheet.step(126, 254, 188, 36)
    sheet.text("Q Kᵀ / √dₖ", 220, 272, 18, maths=True)
    sheet.arrow((220, 290), (220, 312))
    sheet.box(126, 312, 188, 40, "ink")
    sheet.text(words("scores"), 190, 332)
    sheet.text("(T, S)", 272, 332, 14, "muted")

    sheet.arrow((220, 352), (220, 374))
    sheet.step(126, 374, 188, 36)
    sheet.text(words("softmax"), 220, 392)
    sheet.arrow((220, 410), (220, 432), colour="weight")
    sheet.box(126, 432, 188, 40, "weight")
    sheet.text(words("weights"), 190, 452, 16, "weight")
    sheet.text("(T, S)", 272, 452, 14, "muted")

    # Weights meet values.
    sheet.arrow((220, 472), (220, 496), colour="weight")
    sheet.arrow((388, 222), (388, 514), (316, 514), colour="value")
    sheet.step(126, 496, 188, 36)
    sheet.text(words("mix"), 220, 514)
    sheet.arrow((220, 532), (220, 556), colour="output")
    sheet.box(126, 556, 188, 40, "output")
    sheet.text(words("output"), 186, 576, 16, "output")
    sheet.text("(T, dᵥ)", 270, 576, 14, "muted")


if __name__ == "__main__":
    write(__file__, 480, 610, draw)
