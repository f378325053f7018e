"""Three lineages of one block: what is asked, who sees whom, what for (chapter 6)."""

from drawing import Sheet, write

from attnbook.language import translate

WIDE, HIGH = 800, 560
COLUMNS = {"encoder": 252, "decoder": 438, "pair": 650}
CELL = 15


def words(name: str) -> str:
    return translate(f"figure.lineages.{name}")


def grid(sheet: Sheet, x: float, y: float, rows: int, columns: int, kind: str) -> None:
    """Draw who sees whom; a filled cell with a dot may be looked at."""
    hue = "key" if kind == "cross" else "weight"
    for row in range(rows):
        for column in range(columns):
            left, top = x + column * CELL, y + row * CELL
            sheet.line(
                (left, top),
                (left + CELL, top),
                (left + CELL, top + CELL),
                (left, top + CELL),
                (left, top),
                colour="line",
                width=1,
            )
            if kind != "causal" or column <= row:
                sheet.ring(left + CELL / 2, top + CELL / 2, 4.5, hue)


def stack(sheet: Sheet, x: float, y: float, hue: str) -> None:
    for layer in range(3):
        sheet.box(x - 42, y + 24 * layer, 84, 18, hue)


def draw(sheet: Sheet) -> None:
    for name, x in COLUMNS.items():
        sheet.text(words(name), x, 26, 18, bold=True)
        sheet.text(words(f"{name}.names"), x, 50, 13, "muted")
    for label, y in (("blocks", 116), ("asked", 202), ("mask", 290)):
        sheet.text(words(label), 12, y, 14, "muted", anchor="start")
    for label, y in (("good", 440), ("now", 510)):
        sheet.text(words(label), 12, y, 14, "muted", anchor="start")

    stack(sheet, COLUMNS["encoder"], 80, "key")
    stack(sheet, COLUMNS["decoder"], 80, "query")
    stack(sheet, COLUMNS["pair"] - 62, 80, "key")
    stack(sheet, COLUMNS["pair"] + 62, 80, "query")
    left, right = COLUMNS["pair"] - 18, COLUMNS["pair"] + 18
    for layer in range(3):
        # What the encoder's last block gives goes to each block of the decoder.
        sheet.arrow((left, 89), (right, 89 + 24 * layer))

    for name, x in COLUMNS.items():
        sheet.text(words(f"{name}.asked"), x, 202, 15)
        sheet.text(words(f"{name}.mask"), x, 252, 13, "weight")
        sheet.text(words(f"{name}.good"), x, 440, 15)
        sheet.text(words(f"{name}.now"), x, 510, 15)
    half = 2.5 * CELL
    grid(sheet, COLUMNS["encoder"] - half, 280, 5, 5, "all")
    grid(sheet, COLUMNS["decoder"] - half, 280, 5, 5, "causal")
    x = COLUMNS["pair"] - 7 * CELL - 18
    for name, rows, columns, kind in (
        ("reads", 5, 5, "all"),
        ("writes", 4, 4, "causal"),
        ("cross", 4, 5, "cross"),
    ):
        grid(sheet, x, 280, rows, columns, kind)
        hue = "key" if kind == "cross" else "muted"
        sheet.text(words(name), x + columns * CELL / 2, 372, 12, hue)
        x += columns * CELL + 18
    for y in (170, 230, 400, 475):
        sheet.line((12, y), (WIDE - 12, y), colour="line", width=1)


if __name__ == "__main__":
    write(__file__, WIDE, HIGH, draw)
