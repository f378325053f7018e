"""The code that the chapters of *Who Looks at Whom* share."""

from attnbook.language import set_language

__all__ = ["__version__", "set_language"]
__version__ = "0.1.0"
