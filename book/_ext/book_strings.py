"""The theme speaks the book's language: its strings come from our catalogues."""

import gettext

from sphinx.locale import translators

from attnbook.language import catalogue

# The theme's English string, and the id of ours.
STRINGS = {
    "Skip to main content": "page.skip",
    "Search": "page.search",
    "Color mode": "page.colour_mode",
    "Light": "page.light",
    "Dark": "page.dark",
    "System Settings": "page.system",
    "previous": "page.previous",
    "next": "page.next",
    "previous page": "page.previous",
    "next page": "page.next",
    "Contents": "page.on_this_page",
    "On this page": "page.on_this_page",
    "Link to this heading": "page.link_heading",
    "Link to this code": "page.link_code",
    "Link to this equation": "page.link_equation",
    "Link to this image": "page.link_image",
    "Link to this table": "page.link_table",
    "Link to this definition": "page.link_definition",
    "Error": "page.error",
    "Please activate JavaScript to enable the search functionality.": (
        "page.search_needs_script"
    ),
}


class BookStrings(gettext.NullTranslations):
    """Translate what STRINGS names from a catalogue, the rest as before."""

    def __init__(self, strings, before) -> None:
        super().__init__()
        self._strings = strings
        self.add_fallback(before)

    def gettext(self, message: str) -> str:
        if message in STRINGS:
            return self._strings[STRINGS[message]]
        return super().gettext(message)


def _install(app) -> None:
    strings = catalogue(app.config.book_language)
    app.translator = BookStrings(strings, app.translator)
    for domain in ("sphinx", "booktheme"):
        key = ("general", domain)
        before = translators.get(key, gettext.NullTranslations())
        if not isinstance(before, BookStrings):
            translators[key] = BookStrings(strings, before)
    app.builder.templates.environment.install_gettext_translations(app.translator)


def setup(app):
    app.connect("builder-inited", _install, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
