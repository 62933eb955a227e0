"""Which workspaces their owner has looked at, and what the memories said then: per user, outside the workspace.

Must not know what a hook injects or how a look is shown. A store that came with a cloned repository must
not speak with authority before its owner has seen it (link.md, Hooks; upstream-format.md S-1), and
whatever lies beside the data could have come with it. So the record is one SQLite file of mode 600 in the
user's own folder: a row for each trusted workspace, by its real path, and a row for each memory that
counts as seen there, by the hash of its bytes. A file that can't be read as that trusts nothing.
"""
from __future__ import annotations

import os
import time

from engram import files
from engram.errors import EngramError, diagnostic
from engram.store import user_records

FILE = "trust.db"
SCHEMA = ("CREATE TABLE IF NOT EXISTS workspace (path TEXT PRIMARY KEY, since TEXT NOT NULL, looked TEXT NOT NULL) WITHOUT ROWID",
          "CREATE TABLE IF NOT EXISTS seen (path TEXT, key TEXT, sha256 TEXT NOT NULL, text BLOB, PRIMARY KEY (path, key)) WITHOUT ROWID")
NOT_KEPT = "workspace:knowledge/"  # reference by its kind: a changed one needs no look, so no old text either


class Trust:
    """What the record says of one workspace. `on` is the user's setting; off means that all is trusted."""

    __slots__ = ("_path", "_rows", "looked", "on", "workspace_trusted")

    def __init__(self, on, path, looked, rows):
        self.on = on
        self.looked = looked  # "YYYY-MM-DD" of the last look, "" before the first
        self.workspace_trusted = not on or bool(looked)
        self._path = path
        self._rows = rows

    def covers(self, key, sha256):
        """Tell whether a memory may speak with its own authority: seen in exactly this form.

        `key` is `Memory.key`; a global memory is always its user's own.
        """
        if not self.on or not key.startswith("workspace:"):
            return True
        return self.workspace_trusted and self._rows.sha256(self._path, key) == sha256

    def changed(self, key, sha256):
        """Tell whether a memory was seen in another form: what it says now must not borrow the trust in what it said."""
        if not self.on or not key.startswith("workspace:") or self._rows is None:
            return False
        return self._rows.sha256(self._path, key) not in (None, sha256)

    def seen(self):
        """Return `{key: (sha256, bytes or None)}` as of the last look, to show what changed since."""
        return self._rows.all(self._path) if self._rows else {}


class _Rows:
    """The open record. Closed with its owner, or 3.13 warns of a connection left open."""

    __slots__ = ("connection",)

    def __init__(self, connection):
        self.connection = connection

    def __del__(self):
        self.connection.close()

    def sha256(self, path, key):
        try:
            row = self.connection.execute("SELECT sha256 FROM seen WHERE path = ? AND key = ?", (path, key)).fetchone()
        except user_records.Error:
            return None
        return row and row[0]

    def all(self, path):
        try:
            rows = self.connection.execute("SELECT key, sha256, text FROM seen WHERE path = ?", (path,)).fetchall()
        except user_records.Error:
            return {}
        return {key: (sha256, text) for key, sha256, text in rows}


def read(place):
    """Return the Trust of the place's workspace; a missing or damaged record trusts nothing. Never raises."""
    on = place.settings.get("trust") != "off"
    path = identity(place)
    file = _file(place)
    if not on or file is None or not os.path.isfile(file):
        return Trust(on, path, "", None)
    try:
        rows = _Rows(user_records.open_to_read(file))
        found = rows.connection.execute("SELECT looked FROM workspace WHERE path = ?", (path,)).fetchone()
    except user_records.Error:
        return Trust(on, path, "", None)
    return Trust(on, path, found[0] if found else "", rows)


def trust_workspace(place):
    """Record that the owner acted here: the workspace counts as trusted, with what it says at present.

    Called by `inject`, `link` and an approval by dialog or terminal, never for an agent's own commit. In a
    workspace that is trusted already nothing changes: what others changed since waits for `engram trust`.
    Returns diagnostics (none when recorded).
    """
    if read(place).workspace_trusted:
        return []
    return look(place, {"workspace:" + rel: content for rel, content in _present(place.workspace)})


def remember(place, hashes):
    """Record `{key: sha256}` as seen, after a person approved exactly these bytes. Returns diagnostics.

    Trusts the workspace first when it is not yet. A file that no longer has that hash is left out.
    """
    diagnostics = trust_workspace(place)
    contents = {}
    for key, sha256 in hashes.items():
        scope, _, rel = key.partition(":")
        content = _content(place.workspace, rel) if scope == "workspace" else None
        if content is not None and files.sha256(content) == sha256:
            contents[key] = content
    if diagnostics or not contents or place.settings.get("trust") == "off":
        return diagnostics
    return _write(place, contents, whole=False)


def look(place, contents):
    """Record `{key: bytes}` as all that the owner has now seen in this workspace. Returns diagnostics."""
    return _write(place, contents, whole=True)


def identity(place):
    """Return what a workspace is known by: its real path, so that a link to it is the same place."""
    return os.path.realpath(place.root)


def _write(place, contents, *, whole):
    path, today, file = identity(place), time.strftime("%Y-%m-%d"), _file(place)
    rows = [(path, key, files.sha256(content), None if key.startswith(NOT_KEPT) else content)
            for key, content in contents.items()]

    def work(connection):
        if whole:
            connection.execute("INSERT INTO workspace VALUES (?, ?, ?) ON CONFLICT (path) DO UPDATE SET looked = excluded.looked",
                               (path, today, today))
            connection.execute("DELETE FROM seen WHERE path = ?", (path,))
        connection.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", rows)

    try:
        user_records.transact(file, SCHEMA, work, timeout=10)
    except (user_records.Error, EngramError) as error:
        return [diagnostic("trust.not_recorded", "warning", f"could not record that you trust this workspace: {error}",
                           file=file, remediation="Make your Engram folder writable, then run: engram trust")]
    return []


def _present(store):
    if store.exists:
        for rel, _ in store.files():
            content = _content(store, rel)
            if content is not None:
                yield rel, content


def _content(store, rel):
    try:
        return store.read_bytes(rel)
    except EngramError:
        return None  # a file that reads report and skip; unseen, it can't speak


def _file(place):
    return os.path.join(place.user_dir, FILE) if place.user_dir else None

