"""Proposals: what an agent suggests, how a human decides, what is then written (propose.md).

One planner makes every preview and one committer writes it, for commands, dialogs and tokens
alike, so the text that was shown is the text on disk. This room knows neither MCP nor terminals:
functions take a `Place` and plain values and return a `Proposal` or a `Result`.

    proposal = save(place, "Use pnpm.")        # nothing written but the pending entry
    if proposal.asks: show proposal.text, ask   # False: every candidate was a NOOP
    commit(place, proposal.token)               # or by_entry(place, proposal.entry, [1, 3], by="dialog")
    revoke(place, proposal.entry, DECLINED)
"""
from __future__ import annotations

DECLINED = "approval was declined in the approval dialog"
INVALID = "approval was answered with an invalid choice in the approval dialog"


class Proposal:
    """What waits for a human.

    kind        "memories" or "note"
    candidates  rows {number, verdict, target, id, type, scope}: a row per candidate; two rows of one
                number when a proposal for `both` has different verdicts in the two stores
    scopes      stores it would write to, ["workspace"], ["global"] or both, in this order
    text        the whole preview, exactly what will be written included
    asks        False when there is nothing to approve (NOOPs only): no token, no entry
    token       the approval token, shown once and kept nowhere (None when asks is False)
    entry       the name of the pending entry, no secret and no right: for `by_entry` and `revoke`
    expires_at  "2026-11-30T15:01:00Z"
    """

    __slots__ = ("kind", "candidates", "scopes", "text", "asks", "token", "entry", "expires_at", "diagnostics")

    def result(self):
        """Return the waiting answer as a Result: data {candidates, approval_token, expires_at}, text."""
        raise NotImplementedError


def save(place, text, *, type=None, scope=None, role=(), context=None, triggers=(), depends_on=(),
         level=None, update=None, source="manual", derived_from=(), keep=True):
    """Propose one memory and keep it pending (keep=False: a preview only, nothing is written).

    text is a plain statement or one candidate in the `TYPE: … | TEXT: …` form. Lists may be a string
    with commas. Raises UsageError (bad fields, several candidates), Refused (instruction-like lines),
    NotFound (UPDATE of an id that is not there, no store yet), StorageError (no user folder).
    """
    raise NotImplementedError


def save_session(place, text, *, scope=None, role=(), keep=True):
    """Propose up to 20 candidates, one a line; otherwise as `save`."""
    raise NotImplementedError


def note(place, text, *, objective=None, type=None, scope=None, keep=True):
    """Propose one working note: one yes or cancel (a Proposal of kind "note")."""
    raise NotImplementedError


def promote(place, note_id, *, scope=None, keep=True):
    """Propose a working note as a durable memory."""
    raise NotImplementedError


def propose_evidence(place, wrapper_path, *, scope=None, role=(), keep=True):
    """Propose from the trace that an inbox wrapper names, never from the wrapper's own text."""
    raise NotImplementedError


def observe(place, text, *, source_file=None, session="manual", scope=None):
    """Write one immutable trace and its editable wrapper; a Result with trace_id and file."""
    raise NotImplementedError


def commit(place, token, approve="all", *, scope=None, by="agent", note=None):
    """Write what was approved under a token: a Result with data {saved, deferred}.

    approve is "all" or a list of candidate numbers from 1; scope narrows a proposal for both stores;
    by is "agent", "dialog" or "terminal" (the last two also trust the workspace and what is written).
    Raises ApprovalError with a code of its own for a token that is used, expired, revoked, unknown, of
    another workspace, or whose pending entry was edited; UsageError for unknown numbers (token stays good).
    """
    raise NotImplementedError


def by_entry(place, entry, approve="all", *, scope=None, by="dialog", note=None):
    """Commit a pending entry by its name, for answers that come from a human directly: as `commit`."""
    raise NotImplementedError


def revoke(place, entry, reason=DECLINED):
    """Void a pending entry; its token then fails with `reason`. True when it was still waiting."""
    raise NotImplementedError


def pending(place):
    """List the entries that wait for a human, oldest first, as Proposals without token."""
    raise NotImplementedError


def status(place):
    """Count memories by scope, type and tier; index, pending approvals, roles, rule variant."""
    raise NotImplementedError


def set_role(place, roles):
    """Set the roles that filter memories ([] or "": none); a Result ending in an `Agent action:` line."""
    raise NotImplementedError


def set_rule_variant(place, variant):
    """Set light, balanced, strict or off, or tell the present one for "status"."""
    raise NotImplementedError
