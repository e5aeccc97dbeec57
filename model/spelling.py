"""How enumerations of the package are printed, and how names that were declared are read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize
from unicodedata import name as unicode_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Spelled", "any_of", "identifier", "names_in"]


class Spelled:
    """A base of enumerations whose members print as Python spells them: ``Mode.GPU``."""

    def __repr__(self) -> str:
        member: Any = self
        return f"{type(self).__name__}.{member.name}"


def any_of(names: Iterable[str]) -> str:
    """A pattern for one of some names, and of several that begin alike for the longest."""
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def names_in(text: str, known: Iterable[str], first: str = "") -> list[str]:
    """The names in a text, separated by commas or blanks, of which a known name may have some itself.

    Of several that begin alike, it is the longest.  What is not known ends with the next comma or blank.  `first` is a
    pattern of what is looked for before known names.
    """
    name = re.compile("(?:" + "|".join(filter(None, [first, any_of(known), r"[^,\s]+"])) + r")(?=[,\s]|$)")
    names: list[str] = []
    at = 0
    while match := name.search(text, at):
        names.append(match[0])
        at = match.end()
    return names


def identifier(text: str) -> str:
    """A name in code that is like a text: letters lose their accents, and signs alone are called as in Unicode."""
    letters = [letter for letter in normalize("NFKD", text) if not combining(letter)]
    plain = "".join(
        letter if letter.isascii() else f"_u{ord(letter):x}_" if letter.isalnum() else "_" for letter in letters
    )
    if not any(map(str.isalnum, plain)):
        plain = " ".join(unicode_name(letter, "sign") for letter in text).lower()
    plain = re.sub(r"[\W_]+", "_", plain, flags=re.ASCII).strip("_")
    return plain if plain[:1].isalpha() else f"m_{plain}".rstrip("_")
