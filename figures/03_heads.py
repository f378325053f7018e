"""Heads and groups: which query head reads whose keys and values (chapter 3)."""

from drawing import Sheet, write

from attnbook.language import translate

HEADS = 6
KINDS = (("mha", 6, 14), ("gqa", 2, 214), ("mqa", 1, 414))
LEFT, STEP, WIDE = 24, 74, 62


def words(name: str) -> str:
    return translate(f"figure.heads.{name}")


def middle(place: float) -> float:
    """Where the middle of a head lies; places are counted in heads."""
    return LEFT + STEP * place + WIDE / 2


def kind(sheet: Sheet, name: str, groups: int, top: float) -> None:
    """One row of query heads, and the key/value heads that they read."""
    sheet.text(words(name), LEFT, top + 14, 16, anchor="start", bold=True)
    sheet.text(words(f"{name}.count"), LEFT, top + 36, 14, "muted", "start")
    share = HEADS // groups
    for h in range(HEADS):
        home = middle((h // share) * share + (share - 1) / 2)
        # Side by side at the head that is read, so that the points stay apart.
        end = home + 9 * (h % share - (share - 1) / 2)
        sheet.arrow((middle(h), top + 92), (end, top + 134), colour="query")
        sheet.box(LEFT + STEP * h, top + 56, WIDE, 34, "query")
        sheet.text(f"Q{h}", middle(h), top + 73, 16, "query", maths=True)
    for g in range(groups):
        home = middle(g * share + (share - 1) / 2)
        for side, role, letter in ((-30, "key", "K"), (1, "value", "V")):
            sheet.box(home + side, top + 136, 29, 34, role)
            sheet.text(
                f"{letter}{g}", home + side + 14.5, top + 153, 15, role, maths=True
            )


def draw(sheet: Sheet) -> None:
    for name, groups, top in KINDS:
        kind(sheet, name, groups, top)


if __name__ == "__main__":
    write(__file__, 480, 592, draw)
