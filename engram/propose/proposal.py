"""The values that a proposal is made of: what each candidate would write, and what a human is shown.

Values only: JSON-ready both ways, so that the pending file holds exactly what was shown. Must not know stores,
approval or how a verdict is found.
"""

from __future__ import annotations

from engram import files
from engram.errors import Result
from engram.propose import preview

MEMORIES, NOTE = "memories", "note"


class Write:
    """One file that a row would write: `before` is the SHA-256 of what is there now, None for a new file."""

    __slots__ = ("rel", "before", "text")

    def __init__(self, rel, before, text):
        self.rel, self.before, self.text = rel, before, text

    @property
    def data(self):
        """The bytes to write."""
        return self.text.encode("utf-8")

    @property
    def sha256(self):
        """The hash of the bytes to write."""
        return files.sha256(self.data)


class Row:
    """What one candidate means for one store.

    number, scope, type; verdict (the bare word) and target (id or None) as shown; id and rel of the memory that it
    is about; hints [[kind, id]]; writes [Write], the memory's own first; why, redacted and notes for the preview;
    fields the candidate's own, to judge it again.
    """

    __slots__ = (
        "number",
        "scope",
        "type",
        "verdict",
        "target",
        "id",
        "rel",
        "hints",
        "writes",
        "old",
        "why",
        "redacted",
        "notes",
        "fields",
    )

    def __init__(self, **values):
        for name in self.__slots__:
            setattr(self, name, values.get(name, [] if name in ("hints", "writes", "why", "redacted", "notes") else None))

    def plain(self):
        """Return the row as JSON values, without what only the preview needs."""
        return {
            "number": self.number,
            "scope": self.scope,
            "type": self.type,
            "verdict": self.verdict,
            "target": self.target,
            "id": self.id,
            "rel": self.rel,
            "hints": [list(hint) for hint in self.hints],
            "fields": self.fields,
            "old": self.old,
            "redacted": self.redacted,
            "notes": self.notes,
            "writes": [[write.rel, write.before, write.text] for write in self.writes],
        }

    @classmethod
    def of(cls, values):
        """Return the Row of JSON values made by `plain`."""
        return cls(**{**values, "writes": [Write(*write) for write in values["writes"]]})

    def shown(self):
        """Return the row as results show it (mcp.md, Results)."""
        return {
            "number": self.number,
            "verdict": self.verdict,
            "target": self.target,
            "id": self.id,
            "type": self.type,
            "scope": self.scope,
        }


class Proposal:
    """What waits for a human; see `engram.propose` for its attributes."""

    __slots__ = ("kind", "rows", "scopes", "text", "token", "entry", "expires", "diagnostics", "extra")

    def __init__(self, kind, rows, scopes, diagnostics=(), *, explain=False, extra=None):
        self.kind, self.rows, self.scopes = kind, rows, scopes
        self.diagnostics = list(diagnostics)
        self.token = self.entry = self.expires = None
        self.extra = extra or {}
        self.text = preview.proposal(self, explain=explain)

    @property
    def asks(self):
        """Whether there is anything to approve."""
        return any(row.verdict != "NOOP" for row in self.rows)

    @property
    def numbers(self):
        """The candidate numbers that can be approved."""
        return sorted({row.number for row in self.rows if row.verdict != "NOOP"})

    @property
    def candidates(self):
        """The rows {number, verdict, target, id, type, scope}: one a candidate, scope "both" where both stores agree."""
        made = []
        for row in self.rows:
            shown = row.shown()
            last = made[-1] if made else None
            if last and {**last, "scope": None} == {**shown, "scope": None}:
                last["scope"] = "both"
            else:
                made.append(shown)
        return made

    @property
    def expires_at(self):
        """The instant at which the token ends, as 2026-11-30T15:01:00Z; None without one."""
        return preview.instant(self.expires) if self.expires else None

    def result(self, *, lead=""):
        """Return the waiting answer: preview and token, or what a proposal of NOOPs has to say."""
        data = {"candidates": self.candidates}
        text = f"{lead}\n\n{self.text}" if lead else self.text
        if self.token:
            data |= {"approval_token": self.token, "expires_at": self.expires_at}
            text += "\n" + preview.how_to_commit(self)
        return Result(data, text, self.diagnostics)
