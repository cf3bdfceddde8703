"""Text that came out of a file, made fit for a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text with every character that a terminal would act on, or not show, as its escape.

    A manifest may hold escape sequences, line breaks and marks that turn the direction of writing; none of them
    may reach the reader's screen. Tabs become one blank each, so that a caret stays below its character.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_plain_character, text))


def _plain_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character == "\t" else character.encode("unicode_escape", "backslashreplace").decode("ascii")


def width(text: str) -> int:
    """Columns that a plain text takes on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
