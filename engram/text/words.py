"""The one tokeniser: text to terms.

Recall, verdicts and `mem_search` all go through `terms`, so that a word is the same word everywhere. Must not know
memories or files.

A term is a folded, stemmed word. Compound identifiers give the joined form and their parts (`userId` is `userid user id`),
runs of unspaced scripts give characters and pairs of characters, an emoji is a word. Order follows the text, so that
neighbours in the list were neighbours in the text.
"""
from __future__ import annotations

import re

from engram.text.common import GENERIC_WORDS, STOP_WORDS
from engram.text.folding import fold
from engram.text.stems import stem as _cut

# Marks and vowel signs inside words: Python's \w has letters and digits only.
_MARKS = ("\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a"
          "\u0816-\u0963\u0966-\u0dff\u0e00-\u0e4e\u0e50-\u0eff\u0f71-\u0f84\u1000-\u109f\u1780-\u17d3\u1ab0-\u1aff"
          "\u1dc0-\u1dff\u200c\u200d\u3099\u309a")
_ASCII_CHUNK = r"\w+(?:[-'.]\w+)*(?:\+\+|#(?!\w))?"
_ANY_CHUNK = (rf"[\w{_MARKS}]+(?:[-'’.‐‑][\w{_MARKS}]+)*(?:\+\+|#(?!\w))?"
              "|[\u2190-\u2bff\U0001f000-\U0001faff]")
_MEMO_LIMIT = 200_000
SPACED, SIGNS, LETTERS = 0, 1, 2

_patterns: dict[str, re.Pattern] = {}
_memo: dict[str, tuple[str, ...]] = {}
_common: list[frozenset[str]] = []


def _pattern(source: str) -> re.Pattern:
    """Compile a pattern at its first use: most runs see ASCII text only."""
    found = _patterns.get(source)
    if found is None:
        found = _patterns[source] = re.compile(source)
    return found


def terms(text: str) -> list[str]:
    """Return the index terms of a text, in order, repeats included."""
    out: list[str] = []
    known = _memo.get
    for chunk in _pattern(_ASCII_CHUNK if text.isascii() else _ANY_CHUNK).findall(text):
        found = known(chunk)
        if found is None:
            found = tuple(_chunk_terms(chunk))
            if len(chunk) < 40:
                if len(_memo) >= _MEMO_LIMIT:
                    _memo.clear()
                _memo[chunk] = found
        out += found
    return out


def words(text: str) -> list[str]:
    """Return the folded words of a text before stemming: whole runs, without parts and pairs."""
    pattern = rf"[\w{_MARKS}]+" if not text.isascii() else r"\w+"
    return _pattern(pattern).findall(fold(text))


def is_common(term: str) -> bool:
    """Whether a term is a stop word or a generic word, which never match alone (recall.md)."""
    return term in common()


def common() -> frozenset[str]:
    """Return all terms that never match alone."""
    return _common[0] if _common else _make_common()


def is_unspaced(term: str) -> bool:
    """Whether a term came from a script without blanks between words."""
    return term > "\u0e00" and _script(ord(term[0])) != SPACED


def _script(point: int) -> int:
    """Return how a character is written: with blanks between words, in signs, or in an alphabet without blanks.

    A function, as a pattern of these ranges takes 6 ms to compile.
    """
    if point < 0xE00:
        return SPACED
    if point <= 0xEFF or 0x1000 <= point <= 0x109F or 0x1780 <= point <= 0x17D3:
        return LETTERS
    if (0x3005 <= point <= 0x3007 or 0x3041 <= point <= 0x30FF or 0x31F0 <= point <= 0x31FF or 0x3400 <= point <= 0x4DBF
            or 0x4E00 <= point <= 0x9FFF or 0xAC00 <= point <= 0xD7A3 or 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF):
        return SIGNS
    return SPACED


def _make_common() -> frozenset[str]:
    """Make the set of common terms, once."""
    _common.append(STOP_WORDS | frozenset(stemmed(word) for word in GENERIC_WORDS) | GENERIC_WORDS)
    return _common[0]


def stemmed(word: str) -> str:
    """Stem a folded word; a stop word stays whole, and no other word turns into one (`note` is not `not`)."""
    if word in STOP_WORDS:
        return word
    cut = _cut(word)
    return word if cut in STOP_WORDS else cut


def _chunk_terms(chunk: str) -> list[str]:
    """Split one run of word characters and joiners into terms."""
    if not chunk.isascii():
        return _wide_terms(chunk)
    if chunk.endswith(("++", "#")):
        suffix = "++" if chunk.endswith("++") else "#"
        chunk = chunk[:-len(suffix)]
        if len(chunk) <= 2 and chunk.isalpha():
            return [chunk.lower() + suffix]
    return _compound(chunk)


def _compound(chunk: str) -> list[str]:
    """Terms of a chunk of spaced script: `a.b` apart, `a-b`, `a_b` and `aB` joined and apart."""
    out: list[str] = []
    pieces = chunk.replace("’", "'").replace("\u2010", "-").replace("\u2011", "-").split(".")
    if len(pieces) > 1 and all(p.isdecimal() for p in pieces):
        out.append(chunk)
    for piece in pieces:
        if "'" in piece:
            piece = _contraction(piece)
        parts = [p for dashed in piece.replace("_", "-").replace("'", "-").split("-") if dashed for p in _humps(dashed)]
        if not parts:
            continue
        if len(parts) > 1:
            whole = fold("".join(parts))
            if len(parts) <= 4 and len(whole) <= 30:
                out.append(stemmed(whole))
            out += [stemmed(fold(p)) for p in parts]
        else:
            word = fold(parts[0])
            out.append(stemmed(word))
            if len(word) > 3 and word.isascii() and not word.isalpha() and not word.isdecimal():
                out += [stemmed(p) for p in _pattern(r"[a-z]{2,}|\d{2,}").findall(word) if p != word]
    return out


def _contraction(piece: str) -> str:
    """`Anna's` is `Anna`, `can't` is `cant`, `l'index` stays two words."""
    left, _, right = piece.rpartition("'")
    ending = right.lower()
    if ending == "s":
        return left
    if ending in ("t", "re", "ve", "ll", "d", "m"):
        return left + right
    return piece


def _humps(word: str) -> list[str]:
    """Split `parseURLPath` at its capitals; other words come back whole."""
    if word.islower() or word.isupper() or word.isdecimal() or word[1:].islower() or not word.isascii():
        return [word]
    return _pattern(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+").findall(word) or [word]


def _wide_terms(chunk: str) -> list[str]:
    """Terms of a chunk with letters beyond ASCII."""
    from unicodedata import normalize  # ASCII text never gets here

    chunk = normalize("NFKC", chunk)
    scripts = [_script(ord(char)) for char in chunk]
    if not any(scripts):
        return _compound(chunk) or [fold(chunk)]
    out: list[str] = []
    start = 0
    for at in range(1, len(chunk) + 1):
        if at == len(chunk) or scripts[at] != scripts[start]:
            run = chunk[start:at]
            if scripts[start] == SIGNS:
                out += _signs(fold(run))
            elif scripts[start] == LETTERS:
                out += _letters(fold(run))
            elif run.strip("-'.’_"):
                out += terms(run.strip("-'.’_"))
            start = at
    return out


def _signs(run: str) -> list[str]:
    """Characters and pairs of characters of a run."""
    return [gram for at in range(len(run)) for gram in (run[at], run[at:at + 2])][:-1]


def _letters(run: str) -> list[str]:
    """Pairs and triples of characters of a run in an alphabet, where one character says too little."""
    if len(run) < 3:
        return [run]
    return [gram for at in range(len(run) - 1) for gram in (run[at:at + 2], run[at:at + 3])][:-1]
