"""The planner: from candidates to what would be written, verdict by verdict, for each store.

The only place where a preview is made, for commands, tools and dialogs; `commit` judges again with `verdict_on` and
writes nothing else than what was planned here. Reads stores; must not know MCP or terminals.
"""

from __future__ import annotations

from engram import files, recall, safety
from engram.errors import IntegrityError, NotFound, Refused, UsageError, diagnostic
from engram.propose import candidates, compose, screen, verdict
from engram.propose.proposal import MEMORIES, Proposal, Row, Write
from engram.store import dates, ids, memory, places
from engram.store.author import author

_SLACK = 4096  # what printing may have put around a text that is proposed back
NEIGHBOURS = 12  # memories that a candidate is compared with, the most alike first


def scopes(place, wanted):
    """Return (scope names that a save goes to, diagnostics), from what was asked and the settings.

    Asked for, a store has to be there; by default one that is set and missing is left out with a diagnostic.
    """
    if wanted not in (None, "", "workspace", "global", "both"):
        raise UsageError("scope is workspace, global or both.")
    if wanted == "both":
        return [place.store_of(scope).scope for scope in ("workspace", "global")], []
    if wanted:
        return [place.store_of(wanted).scope], []
    default = place.save_scope
    if default != "both":
        return [place.store_of(default).scope], []
    missing = places.no_global_note(place)
    found = [place.store_of("workspace").scope] + ([] if missing else [place.store_of("global").scope])
    return found, [missing] if missing else []


def read(text, *, single=False, plain=True):
    """Return (candidates, findings) of an input text, screened. Raises UsageError, Refused.

    Findings of the whole input that stand in a candidate are told with it.
    """
    most = candidates.LARGEST * (1 if single else candidates.MOST)
    if len(text.encode("utf-8", "surrogatepass")) > most + _SLACK:  # said before a long text is scanned for nothing
        raise UsageError(f"the text is larger than {most // 1024} KiB, and no more fits into a proposal.", hint="Propose less at a time.")
    clean, findings = screen.screened(recall.unwrapped(text))
    found = candidates.parse(clean, plain=plain)
    if single and len(found) > 1:
        raise UsageError(
            f"the text has {len(found)} candidates, and save takes one.",
            line=found[1].line,
            hint="Use engram_save_session (engram save-session) for several.",
        )
    told = {candidate.number: [] for candidate in found}
    for finding in findings:
        owner = max((c for c in found if c.line <= finding["line"]), key=lambda c: c.line, default=None)
        if owner is not None:
            told[owner.number].append(finding)
    for candidate in found:
        told[candidate.number] += screen.screen(candidate)
    return found, told


def screened(candidate):
    """Screen a candidate that was filled from elsewhere than its text; rows of what was found. Raises Refused."""
    return screen.screen(candidate)


def proposal(place, found, told, wanted_scopes, diagnostics, *, source="manual", extra=None, explain=False):
    """Return the Proposal of screened candidates for these stores. Raises NotFound, IntegrityError, UsageError."""
    signed, notes = author(place)
    diagnostics = [*diagnostics, *notes]
    today = dates.today()
    rows, planned = [], {scope: _Beside() for scope in wanted_scopes}
    for candidate in found:
        holders = _holders(place, candidate, wanted_scopes)
        for scope in holders:
            row = _row(place, place.store_of(scope), candidate, planned[scope], signed, today, source, extra or {})
            row.redacted = told.get(candidate.number, [])
            rows.append(row)
        diagnostics += _missing(place, candidate, holders)
    kept = {"evidence_refs": extra["evidence_refs"]} if extra and "evidence_refs" in extra else {}
    return Proposal(MEMORIES, rows, wanted_scopes, diagnostics, explain=explain, extra=kept)


def _holders(place, candidate, wanted):
    """Return the scopes that a candidate concerns: with UPDATE or SUPERSEDES, those that have the memory."""
    named = candidate.update or candidate.supersedes
    if not named:
        return wanted
    having = [scope for scope in wanted if find(place.store_of(scope), named) is not None]
    if not having:
        field = "UPDATE" if candidate.update else "SUPERSEDES"
        raise NotFound(
            f"{field}: there is no memory `{named[:80]}` in the {' or '.join(wanted)} store.",
            line=candidate.line,
            hint="engram search finds ids.",
        )
    return having


def find(store, name):
    """Return the Memory that an id, path or `scope:id` names in a store, or None. Raises Refused for a name that leads out."""
    name = name.strip()
    scope, colon, rest = name.partition(":")
    if colon and scope in ("workspace", "global"):
        if scope != store.scope:
            return None
        name = rest
    folder, slash, file = name.partition("/")
    if slash and folder in memory.FOLDERS.values() and "/" not in file:
        name = file.removesuffix(".md")
    ids.check(name)
    return recall.by_id(store, name)


class _Beside:
    """What earlier candidates of the same proposal would do to a store: new memories, and changed paths by number."""

    __slots__ = ("memories", "changed")

    def __init__(self):
        self.memories, self.changed = [], {}


def _row(place, store, candidate, beside, signed, today, source, extra):
    type = candidate.type or candidates.infer_type(candidate.text)
    judged = verdict_on(place, store, fields_of(candidate, type), beside.memories)
    row = Row(
        number=candidate.number,
        scope=store.scope,
        type=type,
        verdict=judged.word,
        hints=judged.hints,
        why=judged.why,
        fields=fields_of(candidate, type),
    )
    target = judged.target
    if target is not None:
        row.target, row.id, row.rel, row.type = target.id, target.id, target.rel, target.type if judged.word == verdict.NOOP else type
    if judged.word == verdict.NOOP:
        return row
    if judged.word == verdict.UPDATE:
        _approved(store, target)
        raw = compose.updated_file(target, candidate, today=today, extra=extra)
        if raw == target.raw:
            row.verdict = verdict.NOOP
            return row
        if type != target.type:
            row.notes.append(f"{target.id} is a {target.type} and stays one")
        row.type = target.type
        _add(row, target.rel, target, raw)
    else:
        row.id = _free_id(store, compose.wanted_id(candidate.text, type), beside.memories)
        if judged.word == verdict.SUPERSEDE:
            _approved(store, target)
            extra = {**extra, "supersedes": [target.id]}
        rel, raw = compose.new_file(
            candidate, id=row.id, type=type, scope=store.scope, author=signed, today=today, source=source, extra=extra
        )
        row.rel = rel
        _add(row, rel, None, raw)
        if judged.word == verdict.SUPERSEDE:
            _add(row, target.rel, target, compose.superseded_file(target, row.id, today=today))
        beside.memories.append(memory.parse(raw, rel, store.scope))
    _note_rivals(row, beside.changed)
    return row


def _add(row, rel, old, raw):
    row.writes.append(Write(rel, old.sha256 if old else None, raw.decode("utf-8")))
    if old:
        row.old = {**(row.old or {}), rel: old.raw.decode("utf-8")}


def _note_rivals(row, changed):
    """Say when an earlier candidate of this proposal changes the same file: only one of the two can be written."""
    for write in row.writes:
        if write.before is not None and write.rel in changed:
            row.notes.append(f"candidate {changed[write.rel]} changes the same memory; with both approved, this one is deferred")
        changed.setdefault(write.rel, row.number)


def fields_of(candidate, type):
    """Return what a verdict depends on, as JSON values: kept with the row, to judge it again at the commit."""
    return {"type": type, **{name: value for name, value in candidate.values().items() if name != "type"}}


def verdict_on(place, store, fields, siblings=()):
    """Return the Verdict on a candidate's fields as the store is now; `siblings` are memories planned or written beside it.

    A sibling can make it a NOOP or give it a hint; it can't be updated or superseded, as it is not approved yet.
    """
    declared = None
    for name, word in (("update", verdict.UPDATE), ("supersedes", verdict.SUPERSEDE)):
        if fields.get(name):
            target = find(store, fields[name])
            if target is None:
                return verdict.Verdict(verdict.ADD, why=[f"{fields[name]} is gone"])
            declared = (word, target)
    near = [] if declared else [found for found, _ in recall.related(place, fields["text"], scope=store.scope, limit=NEIGHBOURS)]
    own = {sibling.id for sibling in siblings}
    near = [found for found in near if found.id not in own]
    resolved = [*fields.get("not_duplicate", ()), *fields.get("depends_on", ())]
    judged = verdict.judge(fields["text"], fields["type"], [*near, *siblings], declared=declared, resolved=resolved)
    if judged.target is not None and judged.target.id in own and judged.word in (verdict.UPDATE, verdict.SUPERSEDE):
        return verdict.Verdict(verdict.ADD, hints=[(verdict.DUPLICATE, judged.target.id)], why=judged.why)
    return judged


def _approved(store, target):
    """Refuse to change a memory that was edited without approval: the edit would be approved along with the change."""
    if not store.approved(target):
        raise IntegrityError(
            f"{target.id} was edited without approval, so it can't be changed by a proposal.",
            file=target.key,
            hint=f"Look at it and run engram rehash {target.id} first.",
        )
    scan = safety.scan_file(target.raw.decode("utf-8"))
    if not scan.clean:  # its text would be shown, kept pending and approved again
        found = (scan.findings + scan.instructions)[0]
        raise Refused(
            f"{target.id} has what a scan finds ({found.label}), so it can't be changed by a proposal.",
            file=target.key,
            line=found.line,
            hint=f"Clean it with engram edit {target.id}.",
        )
    if target.lifecycle in ("superseded", "archived"):
        by = f" by {target.superseded_by}" if target.superseded_by else ""
        raise UsageError(f"{target.id} is {target.lifecycle}{by}.", hint="Name the memory that counts now.")


def _free_id(store, wanted, siblings):
    """Return the wanted id, or the first free one after it; ids are unique per store without regard to case."""
    taken = {sibling.id.lower() for sibling in siblings}
    while True:
        made = ids.unique(wanted, taken)
        if is_free(store, made):
            return made
        taken.add(made.lower())


def is_free(store, id):
    """Whether no memory of a store has an id, and no durable file of its name is there."""
    if recall.by_id(store, id) is not None:
        return False
    return not any(
        files.read_regular(store.path(f"{folder}/{id}.md"), limit=memory.LARGEST) is not None for folder in memory.FOLDERS.values()
    )


def _missing(place, candidate, holders):
    """Return diagnostics for prerequisites that no store in reach has (recall.md: reported and harmless)."""
    stores = place.stores
    return [
        diagnostic("depends_on.missing", "warning", f"candidate {candidate.number} depends on {id}, which is no memory yet.")
        for id in candidate.depends_on
        if all(find(store, id) is None for store in stores)
    ]
