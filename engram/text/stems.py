"""A light stemmer for English endings.

Joins the forms that people mix in one sentence (`retry`, `retries`, `retried`, `retrying`, `migrate`, `migration`) and leaves
the rest to the character grams of the ranker. Words with a letter outside a to z pass through.
"""
from __future__ import annotations

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))
_LONG = ("ically", "ational", "ization", "isation", "fulness", "iveness", "ability", "ibility", "ical", "able", "ible", "ness",
         "ment", "ance", "ence", "ity", "ive", "ous", "ism", "ist", "al", "ic")


def stem(word: str) -> str:
    """Return the stem of a folded word; words under four letters and non-ASCII words come back as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("s"):
        word = _singular(word)
    word = _without_tense(word)
    for ending in _LONG:
        if word.endswith(ending) and len(word) - len(ending) >= 5:
            word = word[:-len(ending)]
            break
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    """Take a plural or third-person ending off."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    if word.endswith(("ss", "us", "is", "ews")):
        return word
    return word[:-1]


def _without_tense(word: str) -> str:
    """Take `-ing`, `-ed`, `-ly` and `-ion` off, with what they did to the word before them."""
    if word.endswith("eed"):
        return word[:-1] if len(word) > 4 else word
    for ending in ("edly", "ing", "ed", "ly"):
        rest = word[:-len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and not _VOWELS.isdisjoint(rest):
            if rest[-2:] in _DOUBLES:
                return rest[:-1]
            word = rest
            break
    else:
        if word.endswith("ion") and len(word) > 6 and word[-4] in "st":
            word = word[:-3]
        elif word.endswith("e") and len(word) > 4:
            word = word[:-1]
        else:
            return word
    return word[:-2] if word.endswith("at") and len(word) > 5 else word
