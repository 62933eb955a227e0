"""`.engramignore`: Git's ignore syntax, matched against paths under the store root.

Pure: text in, a function out. Rules: gitignore(5): the last pattern that matches decides, `!` takes back, a
leading or inner `/` anchors, a trailing `/` means folders, `**` spans folders, `[…]` is a set. Nothing under
an ignored folder can be taken back.
"""
from __future__ import annotations

import re

FILE = ".engramignore"


def compile(text):
    """Return a function of a path (with `/`) that tells whether the patterns in `text` ignore it."""
    rules = [rule for rule in map(_rule, text.splitlines()) if rule]
    if not rules:
        return lambda path: False

    def ignored(path):
        parts = path.split("/")
        for length in range(1, len(parts) + 1):
            verdict = False
            part, is_folder = "/".join(parts[:length]), length < len(parts)
            for pattern, negated, folders_only in rules:
                if (is_folder or not folders_only) and pattern.match(part):
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
    anchored = "/" in line
    line = line.lstrip("/")
    source = _source(line)
    try:
        return re.compile(("" if anchored else "(?:.*/)?") + source + r"\Z", re.DOTALL), negated, folders_only
    except re.error:
        return None


def _source(line):
    made, at = "", 0
    while at < len(line):
        if line.startswith("**/", at) and (at == 0 or line[at - 1] == "/"):
            made, at = made + "(?:.*/)?", at + 3
        elif line.startswith("/**", at) and at + 3 == len(line):
            made, at = made + "/.*", at + 3
        elif line[at] == "*":
            while line[at + 1:at + 2] == "*":
                at += 1
            made, at = made + "[^/]*", at + 1
        elif line[at] == "?":
            made, at = made + "[^/]", at + 1
        elif line[at] == "[" and "]" in line[at + 2:]:
            end = line.index("]", at + 2)
            inner = line[at + 1:end]
            negation = "^" if inner[0] in "!^" else ""
            made += f"(?!/)[{negation}" + re.sub(r"([\\\[\]^&|~])", r"\\\1", inner[len(negation):]) + "]"
            at = end + 1
        elif line[at] == "\\" and at + 1 < len(line):
            made, at = made + re.escape(line[at + 1]), at + 2
        else:
            made, at = made + re.escape(line[at]), at + 1
    return made
