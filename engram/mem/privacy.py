"""What must never reach the disk: private parts and secrets (session.md; mem-tools.md 2.5).

Pure; must not know rows. Every text of every write path goes through `clean`, and so does a query, so that what was
stored redacted is still found. Cleaning twice changes nothing more.
"""

from __future__ import annotations

import re

from engram import safety

MARK = "[REDACTED]"
_TAGS = []


def clean(text):
    """Return (text, notes): without private parts, secrets and broken characters; a note says what was taken out."""
    notes = []
    text, found = without_private(text)
    if found:
        notes.append(f"{found} private part{'s' if found > 1 else ''} redacted")
    if not text.isascii():
        if _has_lone(text):
            text = re.sub("[\ud800-\udfff]", "\ufffd", text)
            notes.append("half a character (a lone surrogate) replaced")
    text, findings = safety.redact(text)
    if findings:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in findings))
        notes.append(f"{len(findings)} secret{'s' if len(findings) > 1 else ''} or personal data redacted ({kinds})")
    return text, notes


def without_private(text):
    """Return (text, count): each <private> part replaced by a mark; one that is left open reaches to the end."""
    if "private" not in text.lower():
        return text, 0
    if not _TAGS:
        _TAGS.append(re.compile(r"<\s{0,9}(/?)\s{0,9}private\b[^<>]{0,200}>", re.I))
    out, depth, start, count = [], 0, 0, 0
    for tag in _TAGS[0].finditer(text):
        if tag[1]:
            if depth:
                depth -= 1
                if not depth:
                    start = tag.end()
        else:
            if not depth:
                out += [text[start : tag.start()], MARK]
                count += 1
            depth += 1
    if not depth:
        out.append(text[start:])
    return "".join(out), count


def orders(text):
    """Return the numbers of lines that read like instructions to the reader (case SE-11)."""
    return sorted({finding.line for finding in safety.instruction_lines(text)})


def _has_lone(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
