"""The file of a derived index: where it lies, whether it may be believed, and what its contents stand for.

Must not know what is looked up in it, nor when it is brought up to date (`index`). A store can come with a clone: what lies
there under the names of the index may be a link, a folder, or a database that somebody prepared.
"""
from __future__ import annotations

import _sqlite3 as sqlite  # see index_tables
import os
import stat
import sys
import time

from engram import files
from engram.errors import EngramError
from engram.store import index_rows as rows
from engram.store import index_tables
from engram.store.vault import DURABLE

FILE = "index.sqlite"
LOCK = "index.lock"
KEY = "index.key"
VERSION = "2"
SCHEMA = index_tables.SCHEMA + rows.SCHEMA


def path_order(rel: str):
    """Return the key of path order: as `Store.files` walks."""
    folder, _, rest = rel.partition("/")
    return (DURABLE.index(folder) if folder in DURABLE else len(DURABLE), rest.split("/"))


def is_memory_path(rel: str) -> bool:
    parts = rel.split("/")
    return rel.endswith(".md") and len(parts) > 1 and parts[0] in DURABLE and not any(part.startswith(".") for part in parts)


def path(store) -> str:
    return os.path.join(store.root, FILE)


def usable(store) -> bool:
    """Whether the index may lie in the store: a clone can bring links or folders of its names."""
    for name in (FILE, LOCK):
        try:
            if not stat.S_ISREG(os.lstat(os.path.join(store.root, name)).st_mode):
                return False
        except OSError:
            continue
    return True


def writable(store) -> bool:
    return os.access(store.root, os.W_OK) and usable(store)


def inode(path: str):
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def prepare(connection) -> None:
    """Set a connection up: nothing that a prepared file holds may run, and a lost write costs a rebuild, not a memory."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def schema(connection) -> set:
    return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def expected_schema() -> set:
    return {statement.strip() for statement in SCHEMA.split(";") if statement.strip()}


def version() -> str:
    return f"{VERSION} {sys.byteorder}"


def stamp(store) -> str:
    """Return what changes with the hashes file and the journal, as text; empty when they are too young to tell."""
    made, now = [], time.time_ns()
    for name in ("memory.hashes.json", "journal.json"):
        try:
            text = rows.stat_text(os.stat(os.path.join(store.root, name)), now)
        except OSError:
            text = "none"
        if not text:
            return ""
        made.append(text)
    return " ".join(made)


def digest(store) -> str:
    """Return the hash of the hashes file; empty while a commit is unfinished, or when the file can't be read."""
    try:
        return "" if os.path.lexists(store.path("journal.json")) else files.sha256(store.raw_hashes() or b"")
    except EngramError:
        return ""


def key(store) -> bytes:
    """Return the user's key for row seals, made when there is none; empty when there can be none."""
    folder = store.user_dir
    if not folder:
        return b""
    path = os.path.join(folder, KEY)
    try:
        found = files.read_regular(path, limit=1024)
        if found is None:
            files.ensure_dir(folder, mode=0o700)
            try:
                files.create(path, os.urandom(32), mode=0o600)
            except files.Changed:
                pass
            found = files.read_regular(path, limit=1024)
    except EngramError:
        return b""
    return found if found and len(found) == 32 else b""


def is_locked(error) -> bool:
    return isinstance(error, sqlite.OperationalError) and ("locked" in str(error) or "busy" in str(error))
