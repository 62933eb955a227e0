"""Learnings in a text that was not written for memory: the items under a heading such as `## Key Learnings`.

Pure; must not know rows (mem-tools.md 2.10).
"""

from __future__ import annotations

import re

LEAST_CHARACTERS, LEAST_WORDS = 20, 4
TITLE = 60
_FORMS = []


def items(text):
    """Return (kept, short): the items of the last section that has any, and the number of those too short to say something."""
    heading, numbered, bullet = _forms()
    found = ([], 0)
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not heading.fullmatch(line):
            continue
        section = []
        for below in lines[at + 1 :]:
            if re.match(r"#{1,3}\s", below):
                break
            section.append(below)
        listed = _list(section, numbered) or _list(section, bullet)
        kept = [item for item in listed if len(item) >= LEAST_CHARACTERS and len(item.split()) >= LEAST_WORDS]
        if kept or (listed and not found[0]):
            found = (kept, len(listed) - len(kept))
    return found


def title(item):
    """Return the title of an item: its beginning, whole words where possible, marked when it goes on."""
    if len(item) <= TITLE:
        return item
    start = item[:TITLE]
    return (start.rsplit(" ", 1)[0] if " " in start[20:] else start).rstrip(" ,;:") + "..."


def _list(section, form):
    # the items of a list, each with the lines that continue it
    out = []
    for line in section:
        match = form.match(line)
        if match:
            out.append(match[1])
        elif out and line.startswith((" ", "\t")) and line.strip() and not re.match(r"\s*([-*]|\d+[.)])\s", line):
            out[-1] += " " + line.strip()
    return [plain for plain in (_plain(item) for item in out) if plain]


def _plain(item):
    return re.sub(r"(\*\*|__|`)(.+?)\1", r"\2", re.sub(r"(?<!\*)\*([^*]+)\*(?!\*)", r"\1", item)).strip()


def _forms():
    if not _FORMS:
        _FORMS.append(re.compile(r"#{2,3}\s{1,9}(?:key learnings?|learnings?|aprendizajes(?: clave)?)\s*:?\s*", re.I))
        _FORMS.append(re.compile(r"\s{0,3}\d{1,4}[.)]\s+(.+)"))
        _FORMS.append(re.compile(r"\s{0,3}[-*]\s+(.+)"))
    return _FORMS
