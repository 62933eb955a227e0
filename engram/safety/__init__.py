"""Scans: secrets and personal data, instruction-like lines, characters that cannot be seen.

Texts go in, findings and cleaned texts come out. Knows no memories and no files, and keeps nothing of what it found but
its kind and place (propose.md, Safety). The tables are imported where they are first used: most commands that load this
room never scan, and a start must not pay for what it does not use.
"""

from __future__ import annotations


class Finding:
    """What was found and where: ``kind`` (table row), ``category`` (secret, personal, instruction), 1-based ``line`` and
    ``column``, ``label`` for people. Never the secret itself."""

    __slots__ = ("category", "column", "kind", "label", "line")

    def __init__(self, kind, line, column, label, category):
        self.kind, self.line, self.column, self.label, self.category = kind, line, column, label, category

    def __repr__(self):
        return f"Finding({self.kind!r}, {self.line}, {self.column}, {self.label!r})"

    def data(self):
        """Return the finding as a JSON-ready mapping."""
        return {"kind": self.kind, "line": self.line, "column": self.column, "label": self.label}


class Scan:
    """Outcome of both scans: ``redacted`` (the text that may be kept), ``findings`` (secrets and personal data) and
    ``instructions`` (lines that give the reader orders)."""

    __slots__ = ("findings", "instructions", "redacted")

    def __init__(self, redacted, findings, instructions):
        self.redacted, self.findings, self.instructions = redacted, findings, instructions

    @property
    def clean(self):
        """True when nothing was found."""
        return not self.findings and not self.instructions


def scan(text):
    """Run both scans over a text and return a :class:`Scan`."""
    redacted, findings = redact(text)
    return Scan(redacted, findings, instruction_lines(text))


def redact(text):
    """Return ``(text, findings)``: secrets and personal data replaced by ``[redacted-KIND]`` marks.

    Everything else stays byte for byte, and redacting again changes nothing.
    """
    from engram.safety import spans  # first use, see above
    found = spans.find(text)
    if not found:
        return text, []
    return spans.mask(text, found), _findings(text, found)


def _findings(text, found):
    findings, line, start = [], 1, 0
    place = 0
    for begin, _, kind, label, personal in found:
        line += text.count("\n", place, begin)
        start = text.rfind("\n", 0, begin) + 1
        place = begin
        findings.append(Finding(kind, line, begin - start + 1, label, "personal" if personal else "secret"))
    return findings


def instruction_lines(text):
    """Return a finding for each line that asks its reader to drop instructions, be somebody else, or hides characters.

    Labels say what the line does; what was hidden in tag characters is decoded into them, redacted (case SE-12).
    """
    from engram.safety import orders  # first use, see above
    return [Finding("instruction", line, column, redact(label)[0], "instruction") for line, column, label in orders.find(text)]


def scan_file(text):
    """Scan a memory file: as :func:`scan`, except that ``author`` and ``author_email`` in its header may name a person."""
    if not text.startswith(("---", "\ufeff---")) or "author" not in text:
        return scan(text)
    end = text.find("\n---", 3)
    lines = text[:end].split("\n") if end > 0 else []
    kept = [" " * len(line) if line.startswith(("author:", "author_email:")) else line for line in lines]
    outcome = scan("\n".join(kept) + text[end:] if lines else text)
    if outcome.clean:
        outcome.redacted = text
    return outcome


def visible(text):
    """Return the text with control, bidirectional, zero-width and tag characters written out, for terminals and prompts."""
    if text.isascii() and text.isprintable():
        return text
    from engram.safety import marks  # first use, see above
    return marks.visible(text)


def without_private(text):
    """Return the text with its ``<private>…</private>`` parts replaced by ``[REDACTED]``; one left open runs to the end."""
    if "<" not in text:
        return text
    from engram.safety import private  # first use, see above
    return private.without_private(text)
