"""Case, compatibility and accent folding.

Works on strings alone; must not know what a memory or a query is.
"""
from __future__ import annotations

# Letters whose mark is part of the glyph: no decomposition takes it off (case QL-03).
_STROKES = str.maketrans({
    "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "ŋ": "n", "ø": "o", "ŧ": "t", "ƀ": "b", "ɨ": "i",
    "æ": "ae", "œ": "oe", "þ": "th", "ə": "e", "ƒ": "f", "ѓ": "г", "ќ": "к",
})


def fold(text: str) -> str:
    """Return the text as words are compared: NFKC, case folded (`ß` is `ss`, both sigmas are one), accents kept."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize  # half a millisecond that ASCII text never needs

    return normalize("NFKC", normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """Return folded text without accents, strokes and vowel points (`đường` is `duong`, `ё` is `е`).

    Marks that spell a syllable (Thai, Indic scripts) stay: without them a word is another word.
    """
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    spread = normalize("NFD", fold(text).translate(_STROKES))
    kept = "".join(c for c in spread if not _drops(ord(c)))
    return normalize("NFC", kept).translate(_STROKES)


def _drops(point: int) -> bool:
    """Whether a code point is a mark that typists leave out."""
    return (0x300 <= point <= 0x36F or 0x483 <= point <= 0x487 or 0x591 <= point <= 0x5C7
            or 0x610 <= point <= 0x61A or 0x64B <= point <= 0x65F or point in (0x670, 0x640) or 0x6D6 <= point <= 0x6ED
            or 0x1AB0 <= point <= 0x1AFF or 0x1DC0 <= point <= 0x1DFF)
