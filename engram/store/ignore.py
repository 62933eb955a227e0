"""`.engramignore`: Git's ignore syntax, matched against paths under the store root.

Pure: text in, a function out. Rules: gitignore(5): the last pattern that matches decides, `!` takes back, a
leading or inner `/` anchors, a trailing `/` means folders, `**` spans folders, `[…]` is a set. Nothing under
an ignored folder can be taken back.
"""
from __future__ import annotations

import re

FILE = ".engramignore"
LARGEST = 64 * 1024  # bytes; every path is held against every line


def compile(text):
    """Return a function of a path (with `/`) that tells whether the patterns in `text` ignore it."""
    rules = [rule for rule in map(_rule, text.splitlines()) if rule]
    if not rules:
        return lambda path: False

    def ignored(path):
        parts = path.split("/")
        for length in range(1, len(parts) + 1):
            verdict = False
            for segments, negated, folders_only in rules:
                if (length < len(parts) or not folders_only) and _matches(segments, parts[:length]):
                    verdict = not negated
            if verdict:
                return True
        return False

    return ignored


def _rule(line):
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[1:] if negated else line[1:] if line.startswith(("\\!", "\\#")) else line
    folders_only = line.endswith("/")
    line = line.rstrip("/")
    if not line:
        return None
    words = line.lstrip("/").split("/")
    segments = [] if "/" in line else [ANY_FOLDERS]
    for number, word in enumerate(words):
        if word != "**":
            segments.append(_segment(word))
        elif number == len(words) - 1:
            segments += [ANY_FOLDERS, WORD]  # `a/**` is what lies in a, not a itself
        elif segments[-1:] != [ANY_FOLDERS]:
            segments.append(ANY_FOLDERS)
    return (segments, negated, folders_only) if None not in segments else None


ANY_FOLDERS = object()
WORD = re.compile(r"[^/]+\Z")


def _matches(segments, parts):
    """Match segments against parts; only the last `**` can need another try, so the time is their product at most."""
    at = part = 0
    star = mark = -1
    while part < len(parts):
        if at < len(segments) and segments[at] is ANY_FOLDERS:
            star, mark = at, part
            at += 1
        elif at < len(segments) and _fits(segments[at], parts[part]):
            at, part = at + 1, part + 1
        elif star >= 0:
            mark += 1
            at, part = star + 1, mark
        else:
            return False
    return all(segment is ANY_FOLDERS for segment in segments[at:])


def _fits(segment, part):
    return segment == part if isinstance(segment, str) else bool(segment.match(part))


def _segment(word):
    """Return a part of a path as it is, a pattern when it has wildcards, or None for one that Git can't read either.

    What stands behind a `*` is taken where it first fits, and never tried again (an atomic group): the rest can
    only have more room that way. A prepared pattern would keep a backtracking one busy for years.
    """
    if not set("*?[\\") & set(word):
        return word
    pieces, at = [""], 0
    while at < len(word):
        if word[at] == "*":
            while word[at + 1:at + 2] == "*":
                at += 1
            pieces.append("")
        elif word[at] == "?":
            pieces[-1] += "[^/]"
        elif word[at] == "[" and "]" in word[at + 2:]:
            end = word.index("]", at + 2)
            inner = word[at + 1:end]
            negation = "^" if inner[0] in "!^" else ""
            pieces[-1] += f"[{negation}" + re.sub(r"([\\\[\]^&|~])", r"\\\1", inner[len(negation):]) + "]"
            at = end
        elif word[at] == "\\" and at + 1 < len(word):
            at += 1
            pieces[-1] += re.escape(word[at])
        else:
            pieces[-1] += re.escape(word[at])
        at += 1
    first, *middle = pieces
    source = first + "".join(f"(?>.*?{piece})" for piece in middle[:-1] if piece) + (f".*{middle[-1]}" if middle else "")
    try:
        return re.compile(source + r"\Z", re.DOTALL)
    except re.error:
        return None
