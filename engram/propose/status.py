"""The state of memory in one answer: counts, index, what waits for a human, roles and rule variant (engram_status).

Reads only; must not know how anything got there.
"""

from __future__ import annotations

import os

from engram.errors import EngramError, Result, diagnostic
from engram.propose import commit, notes
from engram.store import index, integrity, memory
from engram.store.index_rows import UNREADABLE

_THERE = ("approved", "edited", "not approved", "flagged")  # states of a memory that is neither retired nor unreadable


def status(place):
    """Return counts by scope, type and tier, index state, pending approvals, roles and rule variant."""
    place.need_stores()
    stores, notes_found = {}, place.all_diagnostics()
    for store in place.stores:
        types, retired, faults = dict.fromkeys(memory.TYPES, 0), 0, []
        for (type, state), number in index.counts(store).items():
            if state in ("superseded", "archived"):
                retired += number
            elif state in _THERE and type in types:
                types[type] += number
        for _ in store.files(faults):
            pass  # what can't be a memory at all: links out, devices, huge files
        for rel in _unreadable(store):
            fault = integrity.inspect(store, rel)[1]
            faults += [fault] if fault else []
        notes_found += faults
        stores[store.scope] = {
            "root": store.root,
            "types": types,
            "tiers": {"durable": sum(types.values()), "working": _working(store)},
            "superseded": retired,
            "archived": _archived(store),
            "unreadable": len(faults),
            "index": "up to date",
        }
    try:
        waiting, spoiled = commit.waiting(place)
    except EngramError as error:
        waiting, spoiled = [], 0
        notes_found.append(diagnostic("pending.unreadable", "warning", str(error)))
    if spoiled:
        notes_found.append(
            diagnostic(
                "pending.changed",
                "warning",
                f"{spoiled} pending proposals fail their integrity check and can't be approved.",
                remediation="Propose them again.",
            )
        )
    roles, variant = place.settings.get("roles"), place.settings.get("rule_variants.active")
    lines = []
    for scope, row in stores.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in row["types"].items())
        extra = [
            f"{row['tiers']['working']} notes" if row["tiers"]["working"] else "",
            f"{row['superseded']} superseded" if row["superseded"] else "",
            f"{row['archived']} archived" if row["archived"] else "",
            f"{row['unreadable']} unreadable" if row["unreadable"] else "",
        ]
        lines.append(
            f"{scope}: {row['tiers']['durable']} memories ({kinds})"
            + "".join(f", {part}" for part in extra if part)
            + f"; index {row['index']}"
        )
    lines.append(f"Waiting for approval: {len(waiting)}" + (" (engram pending)" if waiting else ""))
    lines.append(f"Roles: {', '.join(roles) if roles else 'none (all memories are visible)'}")
    lines.append(f"Rule variant: {variant}")
    data = {"stores": stores, "pending_approvals": len(waiting), "roles": roles, "rule_variant": variant}
    return Result(data, "\n".join(lines), notes_found)


def _unreadable(store):
    """Return the paths of files that can't be read as memories, in order."""
    return index.using(store, lambda found: sorted(row.rel for row in found.rows("state = ?", (UNREADABLE,))), whole=True)


def _working(store):
    """Count the notes of a store that are still valid."""
    count = 0
    for name in _names(store, notes.FOLDER):
        try:
            count += not notes.over(store.read(f"{notes.FOLDER}/{name}"))
        except EngramError:
            pass  # a damaged note is nobody's loss; it is not listed either
    return count


def _archived(store):
    return sum(name.endswith(".md") for _, _, names in os.walk(os.path.join(store.root, "archive")) for name in names)


def _names(store, folder):
    try:
        return sorted(name for name in os.listdir(os.path.join(store.root, folder)) if name.endswith(".md"))
    except OSError:
        return []
