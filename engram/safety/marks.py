"""Characters that a reader cannot see or that move what they see: control, bidirectional, zero-width and tag characters.

Knows single characters and their neighbours. Knows nothing of secrets, instructions, memories or terminals.
"""

from __future__ import annotations

import re
import unicodedata

from engram.safety.patterns import Pattern

# Zero-width and filler characters. ZWNJ and ZWJ (200C, 200D) and the variation selectors also have honest uses.
_ZERO_WIDTH = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0"
_BIDI = "\u202a-\u202e\u2066-\u2069"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e007f"

_SUSPECT = Pattern(f"[{_ZERO_WIDTH}{_BIDI}{_SELECTORS}{_TAGS}]")
_TERMINAL = Pattern(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)|[{_TAGS}]+|[{_ZERO_WIDTH}{_BIDI}{_SELECTORS}]")


class _Seen(dict):
    """Translate a code point to what a model reads: compatibility forms composed, invisible characters gone."""

    def __missing__(self, code):
        character = chr(code)
        if _SUSPECT.match(character):
            seen = ""
        else:
            seen = unicodedata.normalize("NFKC", character)
            if seen.isspace():
                seen = " "
        self[code] = seen
        return seen


_seen = _Seen({code: chr(code) for code in range(128)})


def seen(text):
    """Return the text as a model reads it: NFKC character by character, without invisible characters."""
    return text if text.isascii() else text.translate(_seen)


def seen_with_places(text):
    """Return ``(seen, places)``: the seen text and, for each of its characters, the index in the original."""
    parts, places = [], []
    for index, character in enumerate(text):
        shown = _seen[ord(character)]
        parts.append(shown)
        places.extend([index] * len(shown))
    return "".join(parts), places


def _joins(text, index):
    """Say whether a zero-width joiner or non-joiner stands where scripts and emoji need one."""
    before = text[index - 1] if index else ""
    after = text[index + 1:index + 2]
    return bool(before and after) and not before.isascii() and not after.isascii() and not after.isspace()


def _right_to_left(text, index):
    """Say whether right-to-left letters stand near, so that a direction mark has a purpose."""
    return any(unicodedata.bidirectional(c) in ("R", "AL") for c in text[max(0, index - 24):index + 24])


def _honest(text, index):
    character = text[index]
    before = text[index - 1] if index else ""
    if character == "\ufeff":
        return before in ("", "\n")
    if character in "\u200c\u200d":
        return _joins(text, index)
    if character in "\u200e\u200f\u061c":
        return _right_to_left(text, index)
    if "\ufe00" <= character <= "\ufe0f":
        return bool(before) and (not before.isascii() or before in "#*0123456789") and not _SUSPECT.match(before)
    if "\U000e0100" <= character <= "\U000e01ef":
        return "\u2e80" <= before <= "\U0003ffff" and not _SUSPECT.match(before)
    if character in "\u00ad\u034f":
        return True
    if character in "\u200b\u2060":
        return not before.isascii() and before.isalpha() and _joins(text, index) or before in ("", " ", "\n", "\u200b")
    return "\u180b" <= character <= "\u180e" and "\u1800" <= before <= "\u18af"


def hidden(text):
    """Yield ``(index, description)`` for each invisible or direction-changing character without an honest use.

    A run of them gives one entry. Text written in tag characters is decoded into the description (case SE-12).
    """
    last = -2
    for match in _SUSPECT.finditer(text):
        index = match.start()
        if index < last or _honest(text, index):
            continue
        character = text[index]
        last = index + 1
        if "\U000e0000" <= character <= "\U000e007f":
            while last < len(text) and "\U000e0000" <= text[last] <= "\U000e007f":
                last += 1
            yield index, f"hidden text in invisible tag characters: \u201c{decode_tags(text[index:last])}\u201d"
            continue
        while last < len(text) and text[last] == character:
            last += 1
        kind = "direction-changing" if re.match(f"[{_BIDI}]", character) else "invisible"
        yield index, f"{kind} character U+{ord(character):04X}"


def decode_tags(run):
    """Return the ASCII text that a run of tag characters stands for."""
    return "".join(chr(ord(c) - 0xE0000) for c in run if 0xE0020 <= ord(c) <= 0xE007E)


def _shown(match):
    run = match.group()
    if "\U000e0000" <= run[0] <= "\U000e007f":
        return f"[hidden text: {decode_tags(run)}]"
    if run > "\x9f" and _honest(match.string, match.start()):
        return run
    code = ord(run)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text):
    """Return the text with control, direction, zero-width and tag characters written out (case AP-11).

    Newline, tab and CR LF stay; so do joiners and selectors where emoji and scripts need them.
    """
    return _TERMINAL.sub(_shown, text)
