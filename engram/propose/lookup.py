"""The memories that a candidate may concern, read fresh from a store; by id, and by likeness.

Must not know candidates or verdicts.
"""
from __future__ import annotations

from engram.errors import NotFound
from engram.text import similarity


def by_id(store, id):
    """Return the durable Memory with an id, without regard to case, or None."""
    try:
        return store.find(id)
    except NotFound:
        return None


def related(place, store, text, *, limit):
    """Return the approved, active memories of a store that are most like a text, at most `limit`."""
    known = store.hashes()
    found = [m for m in store.memories() if store.approved(m, known) and m.lifecycle not in ("superseded", "archived")]
    found.sort(key=lambda m: (-similarity(text, m.content), m.id))
    return found[:limit]
