"""What each agent session got from hooks already: keys and marks of memories, never a prompt or a text.

Must not know hosts' formats or how marks come about. A cache in the user's folder, per session: losing it costs
one repeated injection, so it is neither synced nor repaired, and a damaged one is begun anew. Several hooks of
one session may run at once (a host runs those of the user and of the workspace side by side), and each
claims what it is about to inject in one transaction, so that the session gets it once.
"""
from __future__ import annotations

import os
import time

from engram import files
from engram.store import user_records

FILE = "hooks.db"
Error = user_records.Error
SCHEMA = ("CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, source TEXT, begun REAL) WITHOUT ROWID",
          "CREATE TABLE IF NOT EXISTS got (id TEXT, key TEXT, mark TEXT, kind TEXT, PRIMARY KEY (id, key)) WITHOUT ROWID")
KEPT_SECONDS = 14 * 24 * 3600
TWIN_SECONDS = 2  # two reports of one start come within this; a real second start of the same kind does not


class Session:
    """The record of one session; `name` tells it apart (workspace and session id)."""

    def __init__(self, folder, name):
        self.file = os.path.join(folder, FILE) if folder else None
        self.id = files.sha256(name.encode("utf-8", "surrogatepass"))[:32]

    def got(self, kinds=("start", "prompt")):
        """Return `{key: mark}` of what this session got, at its start or with a prompt. Raises Error."""
        if self.file is None or not os.path.exists(self.file):
            return {}
        rows = self._do(lambda rows: rows.execute("SELECT key, mark, kind FROM got WHERE id = ?", (self.id,)).fetchall())
        return {key: mark for key, mark, kind in rows if kind in kinds}

    def claim(self, marks):
        """Record that the session gets `marks` now; False when all of them were claimed meanwhile."""
        def do(rows):
            before = dict(rows.execute("SELECT key, mark FROM got WHERE id = ?", (self.id,)))
            new = [(self.id, key, mark) for key, mark in marks.items() if before.get(key) != mark]
            rows.executemany("INSERT OR REPLACE INTO got VALUES (?, ?, ?, 'prompt')", new)
            rows.execute("INSERT OR IGNORE INTO session VALUES (?, '', ?)", (self.id, time.time()))
            return bool(new)
        return self._do(do)

    def begin(self, source, marks, *, kept=(), now=None):
        """Record `marks` and forget what else the session got, but for the `kept` kinds; False when this start was reported already."""
        now = time.time() if now is None else now

        def do(rows):
            last = rows.execute("SELECT source, begun FROM session WHERE id = ?", (self.id,)).fetchone()
            if last and last[0] == source and 0 <= now - last[1] < TWIN_SECONDS:
                return False
            old = "SELECT id FROM session WHERE begun < ?"
            rows.execute(f"DELETE FROM got WHERE id IN ({old})", (now - KEPT_SECONDS,))
            for kind in {"start", "prompt"} - set(kept):
                rows.execute("DELETE FROM got WHERE id = ? AND kind = ?", (self.id, kind))
            rows.execute("DELETE FROM session WHERE begun < ?", (now - KEPT_SECONDS,))
            rows.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?)", (self.id, source, now))
            rows.executemany("INSERT INTO got VALUES (?, ?, ?, 'start') ON CONFLICT (id, key) DO UPDATE"
                             " SET mark = excluded.mark, kind = 'start' WHERE mark <> excluded.mark",
                             [(self.id, key, mark) for key, mark in marks.items()])
            return True
        return self._do(do)

    def _do(self, work):
        return user_records.transact(self.file, SCHEMA, work, timeout=1, synced=False)
