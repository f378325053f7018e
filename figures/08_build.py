"""A whole decoder, from letters to the next letter and back (chapter 8)."""

from drawing import Sheet, write

from attnbook.language import translate

WIDE, HIGH = 640, 640
PATH, SIDE, NOTES = 120, 268, 372
LOOP = 618  # where the new letter goes back down


def words(name: str) -> str:
    return translate(f"figure.build.{name}")


def letters(sheet: Sheet, y: float) -> None:
    for i, letter in enumerate("alic"):
        sheet.box(PATH - 68 + 34 * i, y - 15, 30, 30, "ink")
        sheet.text(letter, PATH - 53 + 34 * i, y, 17)


def note(sheet: Sheet, y: float, name: str, shape: str = "") -> None:
    """What happens at this height, and the shape that comes out."""
    sheet.text(words(name), NOTES, y - (9 if shape else 0), 15, anchor="start")
    if shape:
        sheet.text(shape, NOTES, y + 12, 14, "muted", anchor="start", maths=True)


def step(sheet: Sheet, y: float, name: str) -> None:
    sheet.step(PATH - 82, y - 17, 164, 34)
    sheet.text(words(name), PATH, y, 15)


def sublayer(sheet: Sheet, y: float, name: str, hue: str) -> None:
    """Read the path through a norm, work, and add to the path."""
    sheet.arrow((PATH, y + 34), (SIDE, y + 34), (SIDE, y + 26))
    sheet.box(SIDE - 76, y - 22, 152, 46, hue)
    sheet.text(words(name), SIDE, y - 8, 15, hue, bold=True)
    sheet.text(words("after_norm"), SIDE, y + 11, 12, "muted")
    sheet.arrow((SIDE, y - 22), (SIDE, y - 40), (PATH + 13, y - 40))
    sheet.ring(PATH, y - 40, 11, "output")
    sheet.text("+", PATH, y - 41, 17, "output", bold=True)


def draw(sheet: Sheet) -> None:
    letters(sheet, 600)
    sheet.frame(PATH + 68, 585, 30, 30)
    note(sheet, 598, "letters", "(T)")
    sheet.arrow((PATH, 583), (PATH, 562))
    step(sheet, 544, "vectors")
    note(sheet, 544, "places", "(T) → (T, D)")
    sheet.line((PATH, 527), (PATH, 264), colour="output", width=4)
    sheet.frame(22, 290, 338, 218)
    sublayer(sheet, 450, "attention", "weight")
    sublayer(sheet, 346, "feed_forward", "ink")
    note(sheet, 450, "looks", "(T, D) → (T, D)")
    note(sheet, 346, "thinks", "(T, D) → (T, D)")
    note(sheet, 300, "times")
    step(sheet, 247, "norm")
    sheet.arrow((PATH, 230), (PATH, 212))
    step(sheet, 194, "unembedding")
    note(sheet, 194, "logits", "(T, D) → (T, vocabulary)")
    sheet.arrow((PATH, 177), (PATH, 158))
    step(sheet, 140, "cuts")
    note(sheet, 140, "last", "(vocabulary)")
    sheet.arrow((PATH, 123), (PATH, 104))
    step(sheet, 86, "softmax")
    note(sheet, 86, "probabilities", "(vocabulary)")
    sheet.arrow((PATH, 69), (PATH, 56))
    sheet.box(PATH - 15, 24, 30, 30, "ink")
    sheet.text("e", PATH, 39, 17)
    note(sheet, 39, "drawn")
    slot = PATH + 83
    sheet.arrow(
        (PATH, 24), (PATH, 10), (LOOP, 10), (LOOP, 634), (slot, 634), (slot, 617)
    )


if __name__ == "__main__":
    write(__file__, WIDE, HIGH, draw)
