"""How often memories were fetched: local state beside the index, never in a memory file (recall.md, "The index").

A count that can't be kept is lost silently: nobody waits for one, and a read must work on a read-only disk. A server writes
its counts beside its calls (`gather`, `flush`).
"""
from __future__ import annotations

import _sqlite3 as sqlite  # the C module: `sqlite3` adds datetime and 2 ms to every start
import os
import stat
from collections import deque

from engram.errors import EngramError

FILE = "uses.sqlite"

_waiting: list[deque] = []  # one deque once counts are gathered


def gather() -> None:
    """Let counts wait in this process for `flush` from now on."""
    if not _waiting:
        _waiting.append(deque())


def flush() -> None:
    """Write the counts that wait."""
    stores, found = {}, {}
    while _waiting and _waiting[0]:
        store, rels = _waiting[0].popleft()  # by one thread at a time or by several: each count is taken once
        stores[store.root] = store
        found.setdefault(store.root, []).extend(rels)
    for root, rels in found.items():
        _add(stores[root], rels)


def count(store, rels) -> None:
    """Add one to the count of each path."""
    if _waiting:
        _waiting[0].append((store, rels))
    else:
        _add(store, rels)


def _add(store, rels) -> None:
    if rels and os.access(store.root, os.W_OK):
        try:
            store.prepare_local()
        except EngramError:
            return
        _ask(store, "INSERT INTO uses VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1", [(rel,) for rel in rels])


def most_used(store, number: int) -> list[tuple[str, int]]:
    """Return (path, count) of the most used files, most used first, then by path."""
    flush()
    return _ask(store, "SELECT rel, number FROM uses ORDER BY number DESC, rel LIMIT ?", (number,)) or []


def _ask(store, statement: str, values):
    try:
        path = store.path(FILE)
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        writes = statement.startswith("INSERT")
        if not writes and not os.path.exists(path):
            return None
        connection = sqlite.connect(path, timeout=0.5, isolation_level=None)
    except (OSError, EngramError, sqlite.Error):
        return None
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        if not writes:
            return [(rel, number) for rel, number in connection.execute(statement, values) if isinstance(rel, str)]
        connection.execute("CREATE TABLE IF NOT EXISTS uses (rel TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, values)
        connection.execute("COMMIT")
    except sqlite.Error:
        return None
    finally:
        connection.close()
    return None
