"""Names as people read them: without what no database or screen can take, and not in CAPITALS."""

import re
import unicodedata

LONGEST = 200
"""Characters kept of a name; the longest ones recorded have about sixty."""

_KEPT = {
    *("BLM", "COE", "KOA", "NPS", "TVA", "USACE", "USDA", "USFS", "USFWS"),
    *("NCA", "NF", "NM", "NP", "NRA", "NWR", "SF", "SNRA", "SP", "SRA", "WMA"),
    *("ADA", "ATV", "OHV", "ORV", "RV"),
}
"""Agencies, kinds of land and of vehicle, as RIDB abbreviates them."""

_SMALL = frozenset(["a", "an", "and", "at", "by", "de", "del", "for", "in", "la", "of", "on", "or", "the", "to"])
_ROMAN = re.compile(r"(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3})")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_INITIALS = re.compile(r"(?:[A-Z]\.){2,}")


def plain_text(text: str, longest: int = LONGEST) -> str:
    r"""Take control characters out (PostgreSQL refuses NUL in JSON), turn their blanks into spaces, trim and cut.

    >>> plain_text(" Upper\tPines\x00  ")
    'Upper Pines'
    """
    if not text.isprintable():
        # Cc: control characters; Cs: halves of a character, which cannot be encoded.
        kept = (" " if char in "\t\n\r\v\f" else char for char in text)
        text = "".join(char for char in kept if unicodedata.category(char) not in {"Cc", "Cs"})
    return text.strip()[:longest].rstrip()


def tidy_name(name: str) -> str:
    """Tell a name that is written in CAPITALS in title case; any other stays as it is.

    >>> tidy_name("ELK CREEK CAMPGROUND (RIO GRANDE NF)")
    'Elk Creek Campground (Rio Grande NF)'
    >>> tidy_name("LAKE O' THE PINES II")
    "Lake O' the Pines II"
    """
    name = " ".join(plain_text(name).split())
    letters = [char for char in name if char.isalpha()]
    if len(letters) <= 3 or not all(char.isupper() for char in letters):
        return name
    initials = {index for found in _INITIALS.finditer(name) for index in range(*found.span())}
    return _WORD.sub(lambda found: found[0] if found.start() in initials else _told(found), name)


def _told(found: re.Match[str]) -> str:
    word, before, after = found[0], found.string[: found.start()], found.string[found.end() :]
    is_state = len(word) == 2 and before.endswith(("(", ", ")) and (not after or after.startswith(")"))
    if is_state or word in _KEPT or _ROMAN.fullmatch(word):
        return word
    lower = word.lower()
    if lower in _SMALL and before.endswith(" ") and not before.endswith(("- ", ": ")) and after.startswith(" "):
        return lower
    if word.startswith("MC") and len(word) > 4:
        return "Mc" + lower[2:].capitalize()
    first, apostrophe, rest = re.match(r"(\w+)(['\u2019]?)(.*)", lower).groups()  # pyright: ignore[reportOptionalMemberAccess]
    # O'Brien and D'Arcy, but Mary's and Devil's.
    rest = rest.capitalize() if len(first) == 1 and len(rest) > 1 else rest
    return first.capitalize() + apostrophe + rest
