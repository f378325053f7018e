"""Every string that a reader sees and that is not chapter prose.

The catalogues are gettext files, ``locale/<code>.po``, one for each language;
``make catalogues`` writes ``locale/<code>.json`` from them, which Python and
the browser modules read. Ids are dotted names ("scaling.title"), so that a
reworded English sentence does not orphan its translations.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path

_LOCALE = Path(__file__).parent / "locale"
_current = "en"


def languages() -> list[str]:
    """Return the codes of the languages that have a catalogue, English first."""
    codes = sorted(path.stem for path in _LOCALE.glob("*.json"))
    return sorted(codes, key=lambda code: code != "en")


def language() -> str:
    """Return the code of the language in use."""
    return _current


def set_language(code: str) -> None:
    """Show widgets, checks and messages in this language from now on.

    Raises ``ValueError`` if there is no catalogue for ``code``.
    """
    global _current
    if code not in languages():
        raise ValueError(
            f"code: there is no catalogue for {code!r}; "
            f"known languages: {', '.join(languages())}"
        )
    _current = code


@functools.cache
def catalogue_of(code: str) -> Mapping[str, str]:
    """Return the strings that this language itself has, by id."""
    return json.loads((_LOCALE / f"{code}.json").read_text("utf-8"))


@functools.cache
def catalogue(code: str) -> Mapping[str, str]:
    """Return all strings of a language by id; what is untranslated is English."""
    return {**catalogue_of("en"), **catalogue_of(code)}


def translate(string_id: str, /, **values: object) -> str:
    """Return a string in the language in use, its ``{names}`` filled from ``values``.

    Raises ``KeyError`` if the catalogues do not have ``string_id``.
    """
    text = catalogue(_current)[string_id]
    return text.format(**values) if values else text
