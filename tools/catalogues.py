"""Write attnbook/locale/<code>.json from each attnbook/locale/<code>.po."""

import json
from pathlib import Path

from babel.messages.pofile import read_po

LOCALE = Path(__file__).parents[1] / "attnbook" / "locale"


def as_json(po: Path) -> str:
    """Return the JSON text for a catalogue; fuzzy and empty strings are left out."""
    with po.open("rb") as file:
        messages = read_po(file, locale=po.stem, abort_invalid=True)
    strings = {m.id: m.string for m in messages if m.id and m.string and not m.fuzzy}
    return json.dumps(strings, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> None:
    for po in sorted(LOCALE.glob("*.po")):
        po.with_suffix(".json").write_text(as_json(po), "utf-8")


if __name__ == "__main__":
    main()
