"""The residual path and the norms, in post-norm and pre-norm blocks (chapter 5)."""

from drawing import Sheet, write

from attnbook.language import translate

WIDE, HIGH = 640, 600
SUBLAYERS = (("attention", "between", "weight"), ("feed_forward", "within", "ink"))


def words(name: str) -> str:
    return translate(f"figure.blocks.{name}")


def plus(sheet: Sheet, x: float, y: float) -> None:
    sheet.ring(x, y, 12, "output")
    sheet.text("+", x, y - 1, 18, "output", bold=True)


def norm(sheet: Sheet, x: float, y: float) -> None:
    sheet.step(x - 38, y - 15, 76, 30)
    sheet.text(words("norm"), x, y, 15)


def sublayer(sheet: Sheet, x: float, y: float, name: str, does: str, hue: str) -> None:
    sheet.box(x - 70, y - 27, 140, 54, hue)
    sheet.text(words(name), x, y - 9, 16, hue, bold=True)
    sheet.text(words(does), x, y + 12, 13, "muted")


def post_norm(sheet: Sheet, path: float) -> None:
    """Tokens come in at the bottom; each sum is normalised on the path itself."""
    side, y = path + 128, 520
    sheet.line((path, y), (path, y - 14), colour="output", width=4)
    y -= 14
    for name, does, hue in SUBLAYERS:
        sheet.line((path, y), (path, y - 108), colour="output", width=4)
        sheet.arrow((path, y - 12), (side, y - 12), (side, y - 36))
        sublayer(sheet, side, y - 63, name, does, hue)
        sheet.arrow((side, y - 90), (side, y - 120), (path + 14, y - 120))
        plus(sheet, path, y - 120)
        sheet.line((path, y - 132), (path, y - 151), colour="output", width=4)
        norm(sheet, path, y - 166)
        sheet.line((path, y - 181), (path, y - 200), colour="output", width=4)
        y -= 200
    sheet.arrow((path, y), (path, y - 24), colour="output")


def pre_norm(sheet: Sheet, path: float) -> None:
    """The path meets nothing but sums; each sublayer reads through its own norm."""
    side, y = path + 128, 520
    sheet.line((path, y), (path, y - 14), colour="output", width=4)
    y -= 14
    for name, does, hue in SUBLAYERS:
        sheet.line((path, y), (path, y - 158), colour="output", width=4)
        sheet.arrow((path, y - 12), (side, y - 12), (side, y - 30))
        norm(sheet, side, y - 45)
        sheet.arrow((side, y - 60), (side, y - 80))
        sublayer(sheet, side, y - 107, name, does, hue)
        sheet.arrow((side, y - 134), (side, y - 170), (path + 14, y - 170))
        plus(sheet, path, y - 170)
        sheet.line((path, y - 182), (path, y - 200), colour="output", width=4)
        y -= 200
    sheet.arrow((path, y), (path, y - 24), colour="output")


def draw(sheet: Sheet) -> None:
    for left, name, says, block in (
        (0, "post", "broken", post_norm),
        (320, "pre", "straight", pre_norm),
    ):
        sheet.text(words(name), left + 160, 24, 18, bold=True)
        sheet.text(words(says), left + 160, 48, 14, "output")
        path = left + 78
        sheet.text(words("out"), path, 70, 14, "muted")
        block(sheet, path)
        sheet.text(words("in"), path, 536, 14, "muted")
    sheet.line((320, 14), (320, 586), colour="line", width=1)
    sheet.text(words("last"), 480, 570, 14, "muted")


if __name__ == "__main__":
    write(__file__, WIDE, HIGH, draw)
