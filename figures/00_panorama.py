"""The whole Transformer on one map, from token vectors to sampling (prologue)."""

from drawing import Sheet, write

from attnbook.language import translate

CENTRE = 190


def words(name: str) -> str:
    return translate(f"figure.panorama.{name}")


def mark(sheet: Sheet, number: str, x: float, y: float, colour: str = "ink") -> None:
    """A number in a ring, for the caption to refer to."""
    sheet.ring(x, y, 13, colour)
    sheet.text(number, x, y, 15, colour, bold=True)


def sublayer(sheet: Sheet, y: float, name: str, number: str, colour: str) -> None:
    """A box beside the residual path, from which it is fed and to which it adds."""
    sheet.arrow((CENTRE, y + 62), (300, y + 62), (300, y + 44), colour="muted")
    sheet.box(222, y, 236, 44, colour)
    sheet.text(words(name), 348, y + 15, 15, colour, bold=True)
    sheet.text(words(f"{name}_does"), 348, y + 33, 12.5, "muted")
    sheet.arrow((300, y), (300, y - 20), (CENTRE + 12, y - 20), colour="muted")
    sheet.ring(CENTRE, y - 20, 11, "ink")
    sheet.text("+", CENTRE, y - 20, 16)
    mark(sheet, number, 484, y + 22, colour)


def draw(sheet: Sheet) -> None:
    # The frame that is repeated.
    sheet.frame(66, 176, 440, 286)
    sheet.text(words("layers"), 84, 196, 14, "muted", "start")

    sheet.box(CENTRE - 110, 512, 220, 44, "ink")
    sheet.text(words("tokens"), CENTRE, 534, 15)
    sheet.line((CENTRE, 512), (CENTRE, 140), colour="ink", width=3)
    sublayer(sheet, 368, "attention", "1", "weight")
    sublayer(sheet, 236, "feed_forward", "2", "value")
    mark(sheet, "3", 134, 318)
    sheet.text(words("residual"), 118, 346, 12.5, "muted")

    sheet.arrow((CENTRE, 160), (CENTRE, 136), colour="ink")
    sheet.box(CENTRE - 118, 92, 236, 44, "ink")
    sheet.text(words("logits"), CENTRE, 114, 15)
    mark(sheet, "4", CENTRE + 144, 114)
    sheet.arrow((CENTRE, 92), (CENTRE, 62), colour="ink")
    sheet.step(CENTRE - 80, 24, 160, 38)
    sheet.text(words("sampling"), CENTRE, 43, 15)
    sheet.arrow((CENTRE - 80, 43), (34, 43), (34, 534), (CENTRE - 110, 534))


if __name__ == "__main__":
    write(__file__, 530, 572, draw)
