"""Ids and file names: made so that they are portable, and taken only if they stay inside the store.

Pure: no files. Rules: store.md, "A memory file"; cases ST-05, ST-07, SE-01.
"""
from __future__ import annotations

import re

from engram.errors import Refused, UsageError
from engram.files import sha256

LONGEST = 64
LONGEST_READ = 255  # older ids may be longer; a file name may not
DEVICES = frozenset(["con", "prn", "aux", "nul", "conin$", "conout$",
                     *(f"{name}{n}" for name in ("com", "lpt") for n in "0123456789\u00b9\u00b2\u00b3")])
LETTERS = str.maketrans({"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ı": "i", "ß": "ss", "æ": "ae",
                         "Æ": "AE", "œ": "oe", "Œ": "OE", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"})


def make(text, type):
    """Return an id for a title: lower-case ASCII words joined by `-`, at most 64 characters.

    Text without enough ASCII letters (fewer than half of its letters, accents folded) gives `<type>-<8 hex>`.
    """
    from unicodedata import combining, normalize  # a start that makes no id saves 0.3 ms

    folded = normalize("NFKD", text.translate(LETTERS))
    letters = [c for c in folded if c.isalpha()]
    plain = [c for c in letters if c.isascii()]
    words = re.findall(r"[a-z0-9]+", "".join(c for c in folded if not combining(c)).replace("'", "").replace("’", "").lower())
    if len(plain) < 2 or len(plain) * 2 < len(letters):
        return f"{type}-{sha256(text.encode('utf-8', 'surrogatepass'))[:8]}"
    made = ""
    for word in words:
        if len(made) + 1 + len(word) > LONGEST:
            break
        made = f"{made}-{word}" if made else word
    made = made or words[0][:LONGEST]
    return f"{type}-{made}" if made in DEVICES else made


def unique(wanted, taken):
    """Return `wanted`, or `wanted-2`, `wanted-3`, … : the first that is not in `taken` (lower-case ids)."""
    if wanted.lower() not in taken:
        return wanted
    number = 2
    while True:
        tail = f"-{number}"
        made = wanted[:LONGEST - len(tail)].rstrip("-") + tail
        if made.lower() not in taken:
            return made
        number += 1


def check(id):
    """Return the id if it can be a file's name anywhere; raise Refused for one that could lead outside."""
    if not isinstance(id, str) or not id.strip():
        raise UsageError("an id is a word, and this one is empty.")
    shown = id if len(id) <= 80 else id[:77] + "…"
    if "/" in id or "\\" in id or id in (".", "..") or id.startswith("~") or "\0" in id or re.match(r"[A-Za-z]:", id):
        raise Refused(f"`{shown}` is not an id: ids have no separators, drive letters or `~`, and never lead out of the store.")
    problem = name_problem(id)
    if problem:
        raise Refused(f"`{shown}` is not an id: {problem}.")
    return id


def name_problem(name):
    """Return why a name can't be a portable file name, or None."""
    if name.split(".")[0].rstrip(" ").lower() in DEVICES:
        return "it is a device name on Windows"
    if any(c in '<>:"/\\|?*' or ord(c) < 32 or ord(c) == 127 for c in name):
        return "it has a character that file names can't have"
    if name != name.strip() or name.endswith("."):
        return "it begins or ends with a blank or ends with a dot"
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_READ - 3:
        return "it is longer than a file name may be"
    return None
