"""Screen what a candidate says before anything of it is shown or kept (propose.md, Safety).

Secrets and personal data are redacted; a line that gives its reader orders refuses the whole proposal. Must not
know stores or verdicts.
"""

from __future__ import annotations

from engram import safety
from engram.errors import Refused

_TEXTS = ("text", "context", "light", "balanced", "strict", "update", "supersedes")
_LISTS = ("triggers", "depends_on", "role", "not_duplicate")


def screened(text):
    """Return (text, rows): the whole input redacted before it is parsed, so that no error can quote a secret.

    A row is {kind, label, line, column} with the place in the input.
    """
    clean, findings = safety.redact(text)
    return clean, [finding.data() for finding in findings]


def screen(candidate):
    """Redact a candidate's fields in place and return rows of what was found. Raises Refused with the line of an order."""
    rows = []
    for name in _TEXTS:
        value = getattr(candidate, name)
        if value:
            setattr(candidate, name, _field(candidate, name, value, rows))
    for name in _LISTS:
        setattr(candidate, name, [_field(candidate, name, value, rows) for value in getattr(candidate, name)])
    return rows


def _field(candidate, name, value, rows):
    first = candidate.lines.get(name, candidate.line)
    clean, findings = safety.redact(value)
    rows += [finding.data() | {"line": first + finding.line - 1, "field": name.upper()} for finding in findings]
    refuse_orders(clean, f"candidate {candidate.number}", first)
    return clean


def refuse_orders(text, what, first_line=1):
    """Raise Refused when a line of text gives its reader orders; `first_line` is where the text began."""
    orders = safety.instruction_lines(text)
    if orders:
        first = orders[0]
        raise Refused(
            f"{what} is refused, because line {first_line + first.line - 1} {first.label}.",
            line=first_line + first.line - 1,
            column=first.column,
            hint="Say it as a fact or a rule of the project.",
            data={"findings": [finding.data() for finding in orders]},
        )


def described(rows):
    """Return findings as one line for a preview: kind and place of each, never the secret."""
    return "; ".join(f"{row['label']} at line {row['line']}, column {row['column']}" for row in rows)
