"""The committer: writes what was approved, exactly as it was shown (propose.md, Verdicts and Approval tokens).

One path for tokens, dialogs, terminals and `--force`. Under the store's lock each candidate is judged again; one
whose verdict, target or files are no longer what the human saw is deferred, and so is one that resembles
something. The rest and the token's end are one journalled commit. Must not know who asks the human.
"""

from __future__ import annotations

import os
import time

from engram import files
from engram.errors import EngramError, IntegrityError, Result, UsageError
from engram.propose import approvals, compose, evidence, plan, screen, verdict
from engram.propose.proposal import NOTE, Row
from engram.store import memory, trust
from engram.store.writing import Writer

PATIENCE = 30.0  # seconds to wait for a store's lock: many agents may approve at once
HUMAN = ("dialog", "terminal")  # who of those that approve is certainly a person at this machine


def pending_store(place):
    """Return the store whose pending file counts here: the workspace's where there is one."""
    if not place.global_only and place.workspace.exists:
        return place.workspace
    return place.store_of("global" if place.global_ is not None else "workspace")


def keep(place, proposal):
    """Put a proposal into the pending file and give it its token and entry. Raises StorageError (exit 5), Busy."""
    store = pending_store(place)
    key, now = approvals.Key(place, store), int(time.time())
    token, token_sha256 = approvals.new_token(key, now + approvals.LIFETIME)
    entry = {
        "entry": token_sha256[:16],
        "token_sha256": token_sha256,
        "kind": proposal.kind,
        "state": approvals.WAITING,
        "reason": None,
        "created": now,
        "expires": now + approvals.LIFETIME,
        "scopes": proposal.scopes,
        "extra": proposal.extra,
        "rows": [row.plain() for row in proposal.rows],
    }
    key.check()
    with _Locked(place, None, store):
        entries, _ = approvals.read(store)
        entries.append(approvals.seal(entry, key))
        _put_pending(store, entries, now)
    proposal.token, proposal.entry, proposal.expires = token, entry["entry"], entry["expires"]


def _put_pending(store, entries, now):
    """Write the pending file alone: one file needs no journal. Call with the store's lock held."""
    path = store.path(approvals.FILE)
    if os.path.exists(path):
        os.chmod(path, 0o600)  # a file keeps its mode, and somebody else may have made this one
    files.replace(path, approvals.dump(entries, now), mode=0o600)


def waiting(place):
    """Return the whole, waiting entries of the pending file, oldest first, and how many others failed their check."""
    store = pending_store(place)
    entries, _ = approvals.read(store)
    key, now, whole, spoiled = approvals.Key(place, store), time.time(), [], 0
    if not entries or not key.made:
        return [], len(entries)
    for entry in entries:
        try:
            whole.append(approvals.check(entry, key, now))
        except approvals.PendingChanged:
            spoiled += 1
        except EngramError:
            pass  # used, revoked or expired: waits for nobody
    return whole, spoiled


def peek(place, token):
    """Return the waiting entry of a token, using nothing up. Raises as `by_token`."""
    store = pending_store(place)
    return approvals.find(approvals.read(store)[0], token, approvals.Key(place, store), time.time())


def by_token(place, token, approve, *, scope=None, by="agent", note=None):
    """Commit under a token; see `engram.propose.commit`."""
    return _pending(place, lambda entries, key, now: approvals.find(entries, token, key, now), approve, scope, by, note)


def by_entry(place, name, approve, *, scope=None, by="dialog", note=None):
    """Commit a pending entry by name; see `engram.propose.by_entry`."""
    return _pending(place, lambda entries, key, now: approvals.by_name(entries, name, key, now), approve, scope, by, note)


def shown(place, proposal, approve, *, scope=None, by, note=None):
    """Commit a proposal that was never put into the pending file: shown and answered in one go."""
    approvals.Key(place, pending_store(place)).check()
    with _Locked(place, proposal.scopes, None) as locked:
        return _carry_out(
            place, locked, proposal.kind, proposal.rows, proposal.scopes, approve, scope, by, note, proposal.diagnostics, proposal.extra
        )


def revoke(place, name, reason):
    """Void a pending entry; see `engram.propose.revoke`."""
    store = pending_store(place)
    key, now = approvals.Key(place, store), time.time()
    with Writer(store, timeout=PATIENCE):
        entries, _ = approvals.read(store)
        at = next((i for i, entry in enumerate(entries) if entry["entry"] == name), None)
        if at is None or entries[at]["state"] != approvals.WAITING or entries[at]["expires"] <= now:
            return False
        entry = entries[at]
        entries[at] = approvals.done(entry, key, approvals.REVOKED, reason)
        _put_pending(store, entries, now)
    key.spend(entry["token_sha256"], entry["expires"])
    return True


def _pending(place, pick, approve, scope, by, note):
    store = pending_store(place)
    key, now = approvals.Key(place, store), time.time()
    with _Locked(place, None, store) as locked:
        entries, _ = approvals.read(store)
        entry = pick(entries, key, now)
        locked.widen(entry["scopes"])
        rows = [Row.of(values) for values in entry["rows"]]
        at = entries.index(entry)

        def close(owed):
            """Return the pending file's bytes with this entry used up, still owing what another store is to get."""
            ended = approvals.done(entry, key, approvals.USED)
            if owed:
                ended = approvals.seal({**ended, "owed": owed}, key)
            return approvals.dump(entries[:at] + [ended] + entries[at + 1 :], now)

        locked.close = close
        result = _carry_out(place, locked, entry["kind"], rows, entry["scopes"], approve, scope, by, note, [], entry["extra"])
    key.spend(entry["token_sha256"], entry["expires"])
    return result


class _Locked:
    """The writers of the stores that a commit touches, the pending file's first, so that all lock in one order."""

    def __init__(self, place, scopes, pending):
        self.place, self.pending, self.writers, self.close = place, pending, {}, None
        self.first = [pending.scope] if pending else []
        self.scopes = scopes or []

    def __enter__(self):
        try:
            self.widen([*self.first, *self.scopes])
            if self.pending is not None:
                _settle(self.place, self.pending, self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def widen(self, scopes):
        """Take the locks of more stores: workspace before global, everywhere."""
        for scope in sorted(set(scopes) - set(self.writers), reverse=True):
            writer = Writer(self.place.store_of(scope), timeout=PATIENCE)
            writer.__enter__()
            self.writers[scope] = writer

    def __exit__(self, *_):
        for writer in self.writers.values():
            writer.__exit__()
        self.writers = {}

    def commit(self):
        """Carry out what the writers hold and end the token, so that a crash leaves all of it or none."""
        others = [writer for scope, writer in self.writers.items() if self.pending is None or scope != self.pending.scope]
        owed = [[writer.store.scope, step.rel, step.data.decode("utf-8"), bool(step.sha256)] for writer in others for step in writer.steps]
        if self.pending is not None:
            own = self.writers[self.pending.scope]
            own.put(approvals.FILE, self.close(owed), hashed=False)
            own.commit()
        for writer in others:
            writer.commit()
        if owed and self.pending is not None:
            files.replace(self.pending.path(approvals.FILE), self.close(None), mode=0o600)


def _settle(place, store, locked):
    """Write what a crashed commit still owes to another store; the pending file has it, under the HMAC."""
    entries, _ = approvals.read(store)
    debtors = [entry for entry in entries if entry.get("owed")]
    if not debtors:
        return
    key, now = approvals.Key(place, store), time.time()
    for entry in debtors:
        at = entries.index(entry)
        if entry.get("mac") == key.mac(entry):
            locked.widen({scope for scope, *_ in entry["owed"]})
            for scope, rel, text, hashed in entry["owed"]:
                locked.writers[scope].put(rel, text.encode("utf-8"), hashed=hashed)
            for scope in {scope for scope, *_ in entry["owed"]}:
                locked.writers[scope].commit()
        entries[at] = approvals.done(entry, key, approvals.USED)
    _put_pending(store, entries, now)


def _carry_out(place, locked, kind, rows, shown_scopes, approve, scope, by, note, diagnostics, extra):
    chosen = _chosen(rows, approve)
    targets = _narrowed(shown_scopes, scope)
    note = _clean_note(note)
    saved, deferred, unchanged, remembered = [], [], [], {}
    written = {name: [] for name in targets}
    touched = {}
    for number in chosen:
        mine = [row for row in rows if row.number == number and row.scope in targets]
        if kind == NOTE and files.read(place.store_of(mine[0].scope).path(mine[0].rel)) is not None:
            raise files.Changed("a note of this id was made since; nothing was written.", file=mine[0].rel, hint="Propose the note again.")
        problem = next(filter(None, (_problem(place, row, written[row.scope], touched, extra) for row in mine if kind != NOTE)), None)
        if problem:
            deferred.append({"number": number, **problem})
            continue
        for row in mine:
            if row.verdict == verdict.NOOP:
                unchanged.append(row)
                continue
            for at, write in enumerate(row.writes):
                data = compose.with_note(write.data, note) if note and at == 0 else write.data
                locked.writers[row.scope].put(write.rel, data, hashed=kind != NOTE)
                touched[row.scope, write.rel] = number
                remembered[f"{row.scope}:{write.rel}"] = files.sha256(data)
                if at == 0 and kind != NOTE:
                    written[row.scope].append(memory.parse(data, write.rel, row.scope))
            saved.append({"number": number, "id": row.id, "file": f"{row.scope}:{row.rel}", "scope": row.scope, "verdict": row.verdict})
    locked.commit()
    notes = list(diagnostics)
    if by in HUMAN:
        notes += trust.remember(place, remembered) if remembered else trust.trust_workspace(place)
    if kind == NOTE:
        row = rows[0]
        data = {"id": row.id, "file": f"{row.scope}:{row.rel}", "valid_until": extra["valid_until"]}
        return Result(data, f"Note {row.id} kept in {data['file']} until {data['valid_until']}.", notes)
    return Result({"saved": saved, "deferred": deferred}, _told(saved, deferred, unchanged, rows), notes)


def _chosen(rows, approve):
    """Return the approved candidate numbers. Raises UsageError; the token stays good."""
    numbers = sorted({row.number for row in rows})
    if approve == "all":
        return numbers
    if not isinstance(approve, (list, tuple)) or not approve or not all(isinstance(n, int) and not isinstance(n, bool) for n in approve):
        raise UsageError('approve is "all" or a list of candidate numbers from 1; nothing was written and the token is still good.')
    unknown = [n for n in approve if n not in numbers]
    if unknown:
        raise UsageError(
            f"there is no candidate {unknown[0]} (there are {numbers[0]} to {numbers[-1]}); nothing was written "
            "and the token is still good."
        )
    return sorted(set(approve))


def _narrowed(shown_scopes, scope):
    """Return the scopes to write to: those shown, or one of them. Raises UsageError for one that was not shown."""
    if scope in (None, "both") and (scope is None or len(shown_scopes) == 2):
        return list(shown_scopes)
    if scope not in shown_scopes:
        raise UsageError(f"the proposal was for {' and '.join(shown_scopes)}; a scope can be narrowed, never widened.")
    return [scope]


def _clean_note(note):
    if not note:
        return None
    clean, _ = screen.screened(note)  # as it came: joined lines may hide what a scan knows
    screen.refuse_orders(clean, "the note")
    return " ".join(clean.split()) or None


def _problem(place, row, written, touched, extra):
    """Return {reason, related} when a row can't be written as shown, or None."""
    store = place.store_of(row.scope)
    for trace_id in extra.get("evidence_refs", ()):
        try:
            evidence.load_trace(store, trace_id)
        except IntegrityError as error:
            return {"reason": error.message.rstrip("."), "related": []}
    rival = next((touched[row.scope, write.rel] for write in row.writes if (row.scope, write.rel) in touched), None)
    if rival is not None:
        return {"reason": f"candidate {rival} has just changed the same memory; propose it again", "related": [row.target or row.id]}
    now = plan.verdict_on(place, store, row.fields, written)
    if row.verdict == verdict.NOOP and now.word == verdict.UPDATE and now.target.id == row.target:
        return None  # a declared update that changes nothing
    if not now.same(row.verdict, row.target):
        became = f"{now.word}" + (f" {now.target.id}" if now.target else "")
        was = f"{row.verdict}" + (f" {row.target}" if row.target else "")
        return {"reason": f"the verdict was {was} and is {became} now; propose it again", "related": [now.target.id] if now.target else []}
    if row.verdict == verdict.NOOP:
        return None
    for write in row.writes:
        there = files.read_regular(store.path(write.rel), limit=memory.LARGEST)
        if (None if there is None else files.sha256(there)) != write.before:
            what = "is taken by now" if write.before is None else "changed since it was shown"
            return {"reason": f"{write.rel} {what}; propose it again", "related": [row.target or row.id]}
    if row.writes[0].before is None and not plan.is_free(store, row.id):
        return {"reason": f"the id {row.id} is taken by now; propose it again", "related": [row.id]}
    if row.verdict == verdict.ADD and now.hints:
        return {"reason": "; ".join(f"{kind} {id}" for kind, id in now.hints), "related": [id for _, id in now.hints]}
    return None


def _told(saved, deferred, unchanged, rows):
    """Return what a person reads: what was saved, what was not and why, and the line to propose again."""
    lines = [f"Saved [{row['number']}] {row['verdict']} {row['file']}" for row in saved]
    lines += [f"Nothing to write for [{row.number}]: already stored as {row.target} ({row.scope})." for row in unchanged]
    for row in deferred:
        lines.append(f"Deferred [{row['number']}]: {row['reason']}.")
        fields = next(r.fields for r in rows if r.number == row["number"])
        lines += [f"  To save it all the same: {line}" for line in _again(fields, row)]
    return "\n".join(lines or ["Nothing was written."])


def _again(fields, row):
    """Return the candidate line to rerun, with what resolves each hint."""
    if verdict.DUPLICATE not in row["reason"] and verdict.DEPENDENCY not in row["reason"]:
        return []
    resolve = "DEPENDS_ON" if verdict.DUPLICATE not in row["reason"] else "NOT_DUPLICATE"
    parts = [f"TYPE: {fields['type']}", f"TEXT: {fields['text']}"]
    for name, value in fields.items():
        if name not in ("type", "text", resolve.lower()):
            parts.append(f"{name.upper()}: {', '.join(value) if isinstance(value, list) else value}")
    known = [*fields.get(resolve.lower(), ()), *row["related"]]
    parts.append(f"{resolve}: {', '.join(dict.fromkeys(known))}")
    # a text of several lines takes a line for each field
    return ["\n".join(["", *parts]) if any("\n" in part for part in parts) else " | ".join(parts)]
