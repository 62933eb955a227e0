"""Proposals: what an agent suggests, how a human decides, what is then written (propose.md).

One planner (`plan`) makes every preview and one committer (`commit`) writes it, for commands, dialogs and tokens
alike, so the text that was shown is the text on disk. This room knows neither MCP nor terminals: functions
take a `Place` and plain values and return a `Proposal` or a `Result`.

    proposal = save(place, "Use pnpm.")         # writes nothing but the pending entry
    if proposal.asks: show proposal.text, ask   # False: every candidate was a NOOP, there is no token
    commit(place, proposal.token)               # or by_entry(place, proposal.entry, [1, 3], by="dialog")
    revoke(place, proposal.entry, DECLINED)

A Proposal has: kind ("memories" or "note"); candidates (rows {number, verdict, target, id, type, scope}, one a
candidate; two where the stores of a proposal for both differ); numbers (those that can be approved); scopes
(["workspace"], ["global"] or both); text (the whole preview); asks; token; entry (its name, no secret and no
right); expires_at; result(), the waiting answer.
"""

from __future__ import annotations

from engram.errors import UsageError
from engram.propose import approvals, candidates, evidence, notes, plan
from engram.propose import commit as committer
from engram.propose.choices import set_role, set_rule_variant
from engram.propose.evidence import observe
from engram.propose.proposal import Proposal, Row
from engram.propose.status import status

__all__ = [
    "DECLINED",
    "INVALID",
    "Proposal",
    "accept",
    "by_entry",
    "commit",
    "note",
    "observe",
    "pending",
    "promote",
    "propose_evidence",
    "reopen",
    "revoke",
    "save",
    "save_session",
    "set_role",
    "set_rule_variant",
    "status",
]

DECLINED = "approval was declined in the approval dialog"
INVALID = "approval was answered with an invalid choice in the approval dialog"


def save(
    place,
    text,
    *,
    type=None,
    scope=None,
    role=(),
    context=None,
    triggers=(),
    depends_on=(),
    level=None,
    update=None,
    source="manual",
    derived_from=(),
    keep=True,
    explain=False,
):
    """Propose one memory and keep it pending (keep=False: a preview only, nothing is written).

    text is a plain statement or one candidate in the `TYPE: … | TEXT: …` form; arguments fill what it leaves
    out. Lists may be a string with commas. Raises UsageError (bad fields, several candidates, no store),
    Refused (lines that give orders), NotFound (UPDATE of an id that is not there), StorageError (no user folder).
    """
    found, told = plan.read(text, single=True)
    if not found:
        raise UsageError("there is no text to save.")
    _fill(found[0], type=type, role=role, context=context, triggers=triggers, depends_on=depends_on, level=level, update=update)
    told[found[0].number] += plan.screened(found[0])
    return _propose(
        place,
        found,
        told,
        scope,
        keep,
        source=source,
        extra={"derived_from": list(derived_from)} if derived_from else None,
        explain=explain,
    )


def save_session(place, text, *, scope=None, role=(), keep=True, explain=False):
    """Propose up to 20 candidates, one a line; raises as `save`."""
    found, told = plan.read(text)
    if not found:
        raise UsageError("there is no candidate in the text.", hint="Write one a line: TYPE: rule | TEXT: …")
    for candidate in found:
        _fill(candidate, role=role)
    return _propose(place, found, told, scope, keep, explain=explain)


def note(place, text, *, objective=None, type=None, scope=None, keep=True):
    """Propose one working note: one yes or cancel. Raises as `save`."""
    return _kept(place, notes.proposal(place, text, objective=objective, type=type, scope=scope), keep)


def promote(place, note_id, *, scope=None, keep=True, explain=False):
    """Propose a working note as a durable memory; the note itself stays until it expires. Raises NotFound."""
    store, found = notes.find(place, note_id)
    candidate = candidates.Candidate(
        type=found.type, text=found.content.removeprefix("- ") if found.content.count("\n") == 0 else found.content
    )
    return _propose(place, [candidate], {1: plan.screened(candidate)}, scope or store.scope, keep, source="note", explain=explain)


def propose_evidence(place, wrapper_path, *, scope=None, role=(), keep=True, explain=False):
    """Propose from the trace that an inbox wrapper names, never from the wrapper's own text.

    Raises IntegrityError for a trace that is missing, expired, changed or of another store than `scope`.
    """
    found = evidence.read(place, wrapper_path)
    candidate_list, told = plan.read(found.text)
    for candidate in candidate_list:
        _fill(candidate, role=role)
    if scope not in (None, found.scope):
        raise UsageError(f"this evidence belongs to the {found.scope} store and can be promoted there only.")
    return _propose(place, candidate_list, told, found.scope, keep, source="observe", extra=found.extra, explain=explain)


def accept(place, proposal, approve="all", *, scope=None, by="terminal", note=None):
    """Commit a proposal that was shown and answered in one go, without a token: as `commit`."""
    return committer.shown(place, proposal, approve, scope=scope, by=by, note=note)


def commit(place, token, approve="all", *, scope=None, by="agent", note=None):
    """Write what was approved under a token: a Result with data {saved, deferred}, or {id, file, valid_until} of a note.

    approve is "all" or a list of candidate numbers from 1; scope narrows a proposal for both stores; by is
    "agent", "force", "dialog" or "terminal" (the last two also trust the workspace and what is written); note is what
    the human said with their yes. Raises one of the errors of `approvals`, each with a code of its own, for a token
    that is used, expired, revoked, unknown or of another workspace, or whose entry was changed; UsageError for
    an unknown number or a wider scope, and then the token stays good.
    """
    return committer.by_token(place, token, approve, scope=scope, by=by, note=note)


def by_entry(place, entry, approve="all", *, scope=None, by="dialog", note=None):
    """Commit a pending entry by its name, for answers that come from a human directly: as `commit`."""
    return committer.by_entry(place, entry, approve, scope=scope, by=by, note=note)


def revoke(place, entry, reason=DECLINED):
    """Void a pending entry; its token then fails with `reason`. True when it was still waiting."""
    return committer.revoke(place, entry, reason)


def reopen(place, token):
    """Return the waiting Proposal of a token, to show it again. Raises as `commit`."""
    return _reopened(committer.peek(place, token))


def pending(place):
    """List what waits for a human, oldest first, as Proposals that have an entry and no token."""
    return [_reopened(entry) for entry in committer.waiting(place)[0]]


def _reopened(entry):
    made = Proposal(entry["kind"], [Row.of(values) for values in entry["rows"]], entry["scopes"], extra=entry["extra"])
    made.entry, made.expires = entry["entry"], entry["expires"]
    return made


def _propose(place, found, told, scope, keep, *, source="manual", extra=None, explain=False):
    scopes, diagnostics = plan.scopes(place, scope)
    return _kept(place, plan.proposal(place, found, told, scopes, diagnostics, source=source, extra=extra, explain=explain), keep)


def _kept(place, proposal, keep):
    approvals.Key(place, committer.pending_store(place)).check()
    if keep and proposal.asks:
        committer.keep(place, proposal)
    return proposal


def _fill(candidate, *, type=None, role=(), context=None, triggers=(), depends_on=(), level=None, update=None):
    """Put arguments into the fields that the candidate's text left out; lists come together."""
    if type:
        type = candidates.read_type(type)
        if candidate.type not in (None, type):
            raise UsageError(f"the text says TYPE: {candidate.type}, and the argument type says {type}.")
        candidate.type = type
    for name, value in (("role", role), ("triggers", triggers), ("depends_on", depends_on)):
        setattr(candidate, name, list(dict.fromkeys([*getattr(candidate, name), *candidates.words(value or [])])))
    for name, value in (("context", context), ("update", update)):
        if value:
            if getattr(candidate, name) not in (None, value):
                raise UsageError(f"{name} is given twice, in the text and as an argument.")
            setattr(candidate, name, candidates.clean(value).strip())
    if level not in (None, ""):
        candidate.level = candidates.read_level(level)
    if candidate.update and candidate.supersedes:
        raise UsageError("UPDATE and SUPERSEDES exclude each other.")
