"""The errors of the session tier, with the codes that hosts know (mem-tools.md 1.2).

Knows nothing else. A refusal changes nothing: it is raised before the first write, or inside the
transaction that is then rolled back.
"""

from __future__ import annotations

from engram.errors import EngramError

USAGE = frozenset(
    (
        "missing_argument",
        "invalid_argument",
        "limit_exceeded",
        "invalid_project",
        "invalid_project_choice",
        "missing_recovery_token",
        "invalid_recovery_token",
        "project_required",
    )
)


class Refusal(EngramError):
    """A call that can't be done as asked; `code` is stable, `data` goes beside it into the answer."""

    def __init__(self, code, message, *, hint=None, **data):
        super().__init__(message, hint=hint, data=data)
        self.code = code
        self.exit_code = 2 if code in USAGE else 1


def not_found(what, id):
    """Return the refusal for an id that names nothing (soft-deleted rows count as nothing)."""
    return Refusal("not_found", f"{what} #{id} does not exist.", hint="mem_search lists what there is.")


def too_long(what, length, limit, unit="characters"):
    """Return the refusal for a text beyond its limit; nothing is cut (session.md)."""
    return Refusal(
        "limit_exceeded",
        f"{what} has {length:,} {unit}; the limit is {limit:,}. Nothing was saved.",
        hint="Split it, or keep the part that matters.",
        limit=limit,
        length=length,
    )
