"""Parts that their author marked ``<private>``: cut them out before anything is kept.

Knows the two marks only. A part left open ends with the text; a part inside a part ends with the outer one
(session.md, the row on open ``<private>``; mem-tools.md, 2.5).
"""

from __future__ import annotations

import re

from engram.safety.patterns import Pattern

MASK = "[REDACTED]"
_MARK = Pattern(r"<[ \t]{0,8}(/?)[ \t]{0,8}private\b[^<>]{0,200}>", re.IGNORECASE)


def without_private(text):
    """Return the text with each private part replaced by ``[REDACTED]``; a closing mark on its own goes too."""
    if "<" not in text:
        return text
    out, kept, depth = [], 0, 0
    for mark in _MARK.finditer(text):
        closing = mark.group(1) == "/"
        if depth == 0:
            out.append(text[kept:mark.start()])
            if not closing:
                out.append(MASK)
        depth = max(0, depth - 1) if closing else depth + 1
        kept = mark.end()
    if depth == 0:
        out.append(text[kept:])
    return "".join(out)
