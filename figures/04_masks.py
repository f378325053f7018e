"""Who may look at whom: bidirectional beside causal (the chapter on the mask)."""

from drawing import Sheet, write

from attnbook import ops
from attnbook.language import translate

COUNT = 5
CELL = 44
TOP = 108


def words(name: str) -> str:
    return translate(f"figure.masks.{name}")


def grid(sheet: Sheet, left: float, kind: str, allow: list[list[bool]]) -> None:
    """One mask: a row looks, a column is looked at."""
    centre = left + COUNT * CELL / 2
    sheet.text(words(kind), centre, 22, 18, bold=True)
    sheet.text(words(f"{kind}_for"), centre, 46, 14, "muted")
    for i in range(COUNT):
        sheet.text(str(i + 1), left + CELL * (i + 0.5), TOP - 14, 14, "key")
        sheet.text(str(i + 1), left - 14, TOP + CELL * (i + 0.5), 14, "query")
    for t, row in enumerate(allow):
        for s, seen in enumerate(row):
            x, y = left + CELL * s + 2, TOP + CELL * t + 2
            if seen:
                sheet.box(x, y, CELL - 4, CELL - 4, "weight")
                sheet.text("✓", x + CELL / 2 - 2, y + CELL / 2 - 2, 18, "weight")
            else:
                sheet.step(x, y, CELL - 4, CELL - 4)
                minus = x + CELL / 2 - 2, y + CELL / 2 - 2
                sheet.text("−∞", *minus, 14, "muted", maths=True)
    below = TOP + COUNT * CELL + 24
    sheet.text(words(f"{kind}_says"), centre, below, 14)


def draw(sheet: Sheet) -> None:
    everybody = [[True] * COUNT for _ in range(COUNT)]
    grid(sheet, 60, "bidirectional", everybody)
    grid(sheet, 370, "causal", ops.causal_mask(COUNT).tolist())
    sheet.text(words("key"), 170, TOP - 36, 14, "key")
    sheet.text(words("key"), 480, TOP - 36, 14, "key")
    foot = TOP + COUNT * CELL + 52
    sheet.text(words("rows"), 325, foot, 14, "query")


if __name__ == "__main__":
    write(__file__, 650, TOP + COUNT * CELL + 72, draw)
