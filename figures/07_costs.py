"""Where the square bites and where the straight line does (the chapter on cost)."""

from drawing import Sheet, write

from attnbook import cost
from attnbook.language import translate

WIDE, HIGH = 800, 640
COUNT, CELL = 7, 22
TOP = 96
MODEL = "Qwen2-7B"
LONGEST = cost.CONFIGS[MODEL].context
KEYS = (1_000, 10_000, 100_000, 1_000_000)
PARTS = {
    "projections": "query",
    "feed_forward": "output",
    "scores": "weight",
    "vocabulary": "muted",
}


def words(name: str, **values: object) -> str:
    return translate(f"figure.costs.{name}", **values)


def gibibytes(count: int) -> str:
    return f"{count / 2**30:,.{0 if count >= 100 * 2**30 else 1}f} GiB"


def shares(keys: int) -> dict[str, float]:
    """Return the parts of the arithmetic for one token that looks at so many keys."""
    config = cost.CONFIGS[MODEL]
    counts = {
        "projections": config.projection_flops(1),
        "feed_forward": config.feed_forward_flops(1),
        "scores": config.attention_flops(1, keys),
        "vocabulary": config.vocabulary_flops(1),
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


def all_at_once(sheet: Sheet, left: float) -> None:
    """Every token looks at every token: a square."""
    for t in range(COUNT):
        for s in range(COUNT):
            x, y = left + CELL * s + 1, TOP + CELL * t + 1
            sheet.box(x, y, CELL - 3, CELL - 3, "weight")
    centre, below = left + CELL * COUNT / 2, TOP + CELL * COUNT + 16
    sheet.text("n × n", centre, below, 16, "weight", maths=True)


def one_by_one(sheet: Sheet, left: float) -> None:
    """Step by step the cache grows; the last query reads all of it."""
    for t in range(COUNT):
        y = TOP + CELL * t + 1
        for s in range(t + 1):
            last = t == COUNT - 1
            hue = "key" if last or s == t else "line"
            sheet.box(left + CELL * s + 1, y, CELL - 3, CELL - 3, hue)
    y = TOP + CELL * (COUNT - 0.5)
    sheet.box(left - 42, y - 10, 22, 19, "query")
    sheet.text("q", left - 31, y - 1, 15, "query", maths=True)
    sheet.arrow((left - 18, y - 1), (left - 2, y - 1), colour="query")
    centre, below = left + CELL * COUNT / 2, TOP + CELL * COUNT + 16
    sheet.text("1, 2, …, n", centre, below, 16, "key", maths=True)


def says(sheet: Sheet, x: float, y: float, name: str, hue: str, **values: str) -> None:
    """Name a cost, say how it grows, and give a number under its condition."""
    sheet.text(words(name), x, y, 15, hue, anchor="start", bold=True)
    sheet.text(words(f"{name}.grows"), x, y + 21, 14, anchor="start")
    for i, line in enumerate(("when", "example")):
        said = words(f"{name}.{line}", **values)
        sheet.text(said, x, y + 42 + 19 * i, 13, "muted", anchor="start")


def bars(sheet: Sheet, top: float) -> None:
    """What a token's arithmetic goes into, for more and more keys."""
    left, width = 150, 620
    sheet.text(words("bars", model=MODEL), 20, top, 16, anchor="start", bold=True)
    x = left
    for name, hue in PARTS.items():
        sheet.box(x, top + 18, 16, 16, hue)
        sheet.text(words(name), x + 24, top + 26, 14, anchor="start")
        x += 56 + 8 * len(words(name))
    for i, keys in enumerate(KEYS):
        y = top + 48 + 34 * i
        said = words("keys", keys=f"{keys:,}")
        sheet.text(said, left - 10, y + 13, 14, "muted", anchor="end")
        x = left
        for name, share in shares(keys).items():
            long = width * share
            sheet.box(round(x, 2), y, round(max(long - 3, 1), 2), 26, PARTS[name])
            if long > 44:
                sheet.text(f"{share:.0%}", round(x + long / 2 - 1, 2), y + 13, 14)
            x += long
    level = cost.CONFIGS[MODEL].level_keys()
    foot = top + 48 + 34 * len(KEYS) + 14
    said = words("level", level=f"{level:,}")
    sheet.text(said, left, foot, 14, anchor="start")


def draw(sheet: Sheet) -> None:
    config, half = cost.CONFIGS[MODEL], WIDE / 2
    for name, x in (("learning", 20), ("writing", half + 20)):
        sheet.text(words(name), x, 28, 18, anchor="start", bold=True)
        sheet.text(words(f"{name}.when"), x, 54, 14, "muted", anchor="start")
    sheet.line((half, 16), (half, 372), colour="line", width=1)
    sheet.line((20, 388), (WIDE - 20, 388), colour="line", width=1)

    longest = f"{LONGEST:,}"
    all_at_once(sheet, 20)
    times = cost.attention_flops(10, 10, 1, 1) // cost.attention_flops(1, 1, 1, 1)
    says(sheet, 194, 108, "arithmetic", "weight", times=f"{times}")
    one_layer = gibibytes(cost.weights_bytes(LONGEST, LONGEST, config.heads))
    says(sheet, 194, 206, "matrix", "weight", tokens=longest, bytes=one_layer)

    one_by_one(sheet, half + 62)
    each = f"{config.kv_cache_bytes(1) // 1024} KiB"
    says(sheet, half + 236, 108, "cache", "key", bytes=each)
    full = gibibytes(config.kv_cache_bytes(LONGEST))
    says(sheet, half + 236, 206, "read", "key", tokens=longest, bytes=full)
    sheet.text(words("learning.sum"), 20, 316, 14, anchor="start")
    sheet.text(words("writing.sum"), half + 20, 316, 14, anchor="start")
    sheet.text(words("learning.limit"), 20, 340, 14, "muted", anchor="start")
    sheet.text(words("writing.limit"), half + 20, 340, 14, "muted", anchor="start")
    bars(sheet, 414)


if __name__ == "__main__":
    write(__file__, WIDE, HIGH, draw)
