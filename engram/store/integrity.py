"""Integrity: which memory files hold what was approved, and which can't be read.

Reads only. Must not know approval: accepting an edit (`engram rehash`) is a proposal like any other.
"""
from __future__ import annotations

from engram import files
from engram.errors import EngramError, MemoryFileError, NotFound, Refused, Result, StorageError, diagnostic
from engram.store.vault import fault_of


def verify(place, scope=None):
    """Compare every memory file with its approved hash (`engram verify`, `engram_verify`).

    `data` is {checked, ok, problems: [{scope, file, problem}]}; exit code 1 when a problem was found. A file
    whose LF form is approved is right, with a notice. Archived files that have a hash are looked at too.
    """
    checked, problems, notes = 0, [], place.all_diagnostics()
    stores = [store for store in place.need_stores() if scope in (None, "both", "all", store.scope)]
    if not stores:
        place.store_of(scope)
    for store in stores:
        count, found, told = check(store)
        checked += count
        problems += [{"scope": store.scope, "file": rel, "problem": problem} for rel, problem in found]
        notes += told
    lines = [f"{row['scope']}:{row['file']}: {row['problem']}" for row in problems]
    if problems:
        lines.append(f"{len(problems)} of {checked} memories are not as approved. Look at each change (engram show ID, git diff), "
                     "then accept it with engram rehash ID or restore the file.")
    else:
        lines.append(f"{checked} memories checked: all as approved.")
    return Result({"checked": checked, "ok": not problems, "problems": problems}, "\n".join(lines), notes, exit_code=1 if problems else 0)


def check(store):
    """Return (number of active memory files, [(path, problem)], diagnostics) for one store.

    Archived files that have a hash are looked at, and not counted, as the earlier implementation counts.
    """
    known, faults, notes, problems, seen = store.hashes(), [], [], [], set()
    if not known.whole:
        notes.append(diagnostic("hashes.damaged", "warning", "conflict markers or damage; what can be read of it counts.",
                                file=f"{store.scope}:memory.hashes.json", remediation="Run engram repair to make it whole."))
    steps = store.read_journal()
    unfinished = {step.rel for step in steps if step.op == "drop"}
    crlf = 0
    archived = dict.fromkeys(rel for rel in (*known.entries, *known.extra) if rel.startswith("archive/"))
    for rel in [*(rel for rel, _ in store.files(faults)), *archived]:
        seen.add(rel)
        try:
            raw = store.read_bytes(rel)
        except NotFound:
            continue  # an archived file that somebody removed is no longer anything
        except EngramError as error:
            problems.append((rel, error.message))
            continue
        sha256 = files.sha256(raw)
        if known.approves(rel, sha256) or rel in unfinished:
            continue
        if store.crlf_of_approved(rel, raw, known):
            crlf += 1
        elif known.known(rel):
            problems.append((rel, "edited: not the approved content"))
        else:
            problems.append((rel, "never approved: it has no recorded hash"))
    for fault in faults:  # links out, devices, huge files
        rel = fault["file"].partition(":")[2]
        seen.add(rel)
        problems.append((rel, fault["message"]))
    gone = {*known.entries, *known.extra} - seen - {step.rel for step in steps}
    problems += [(rel, "gone: it has a recorded hash, and no file") for rel in gone]
    if crlf:
        notes.append(diagnostic("hashes.line-ends", "info", f"{crlf} files have CRLF line ends and are otherwise as approved.",
                                remediation="A .gitattributes line `*.md text eol=lf` keeps them as they are."))
    return len(seen) - len(archived), sorted(problems), notes


def faults(store):
    """Return the diagnostics of every file that can't be read as a memory, or is hidden by another."""
    found = []
    for _ in store.memories(found):
        pass
    return found


def inspect(store, rel):
    """Return (Memory or None, diagnostic or None) for one path, whatever is wrong with it."""
    try:
        return store.read(rel), None
    except (MemoryFileError, NotFound, Refused, StorageError) as error:
        return None, fault_of(error, store.scope, rel)
