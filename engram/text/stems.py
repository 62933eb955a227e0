"""A light stemmer for English endings.

Joins the forms that people mix in one sentence (`retry`, `retries`, `retried`, `retrying`) and leaves the rest to the
character grams of the ranker. Words with a letter outside a to z pass through.
"""
from __future__ import annotations

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))


def stem(word: str) -> str:
    """Return the stem of a folded word; words under four letters and non-ASCII words come back as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("s"):
        word = _singular(word)
    if word.endswith("eed"):
        return word[:-1] if len(word) > 4 else word
    for ending in ("ing", "edly", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not _VOWELS.isdisjoint(word[:-len(ending)]):
            word = word[:-len(ending)]
            if word[-2:] in _DOUBLES:
                word = word[:-1]
            break
    if word.endswith("ation") and len(word) > 7:
        word = word[:-3]
    elif word.endswith(("ion", "ment")) and len(word) > 6:
        word = word[:-3] if word.endswith("ion") else word[:-4]
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    """Take a plural or third-person ending off."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith(("ss", "us", "is")):
        return word
    return word[:-1]
