"""The derived index of a store: found again, kept up with the files, rebuilt when it is not to be trusted.

Knows files, hashes and rows; must not know how ranking works or who asks. Deleting the file loses nothing (recall.md, "The
index"). Every writer holds `index.lock`; readers never wait for it. A new index is built beside the old one and renamed over
it. On a store that can't be written the index lives in memory.
"""
from __future__ import annotations

import _sqlite3 as sqlite  # see index_tables
import atexit
import os
import time

from engram import files
from engram.errors import Busy, EngramError, StorageError
from engram.store import index_file as disk
from engram.store import index_rows as rows
from engram.store.index_upkeep import Damaged, Index, Moved

DAMAGE = (sqlite.DatabaseError, ValueError, TypeError, OverflowError, IndexError, KeyError, MemoryError)
_spare: dict[str, list] = {}
_followed: set[str] = set()  # not empty once a Follower keeps this process up
_right_until: dict[str, float] = {}  # by store, when its last pass over all files no longer counts
atexit.register(lambda: close_all())  # 3.13 warns of connections that are open at the end


def using(store, work, *, whole=False):
    """Return `work(index)` with an index that is right now; build it when there is none or it is damaged.

    `whole`: every file was looked at, edited ones too; else approved content is right (recall.md, "The index").
    Raises Busy when another process keeps the index from being written, StorageError.
    """
    for attempt in (1, 2, 3):
        index = borrow(store) if attempt < 3 else _in_memory(store)
        try:
            if whole and time.monotonic() >= _right_until.get(store.root, 0.0):
                started = time.monotonic()
                index.catch_up_all()
                if _followed:
                    _note_pass(store, started)
            else:
                index.catch_up()
            if whole and index.worn():
                raise Damaged("worn")
            result = work(index)
            index.keep_scans()
        except (Damaged, *DAMAGE) as error:
            index.db.close()
            if disk.is_locked(error):
                raise Busy("the index is in use by another process.", file=disk.path(store), hint="Try again.") from None
            if attempt == 3:
                raise
            if not isinstance(error, Moved):
                give_back(_build(store, None))
        except BaseException:
            index.db.close()
            raise
        else:
            give_back(index)
            return result
    raise AssertionError("unreachable")


def using_all(stores, work, *, whole=False):
    """Return `work([index, …])` with the indexes of several stores; see `using`."""
    if not stores:
        return work([])
    return using(stores[0], lambda first: using_all(stores[1:], lambda rest: work([first, *rest]), whole=whole), whole=whole)


def borrow(store) -> Index:
    """Return an open index of a store, a spare one when its file is still the same."""
    path = disk.path(store)
    spare = _spare.get(path)
    while spare:
        index = spare.pop()
        if index.inode is None or index.inode == disk.inode(path):
            index.store = store
            return index
        index.db.close()
    return _open(store) or _build(store, None)


def give_back(index: Index) -> None:
    """Keep an index for the next call in this process."""
    spare = _spare.setdefault(disk.path(index.store), [])
    if len(spare) < 8:
        spare.append(index)
    else:
        index.db.close()


def close_all() -> None:
    """Close the spare indexes (tests, and a process that ends its work)."""
    _followed.clear()
    _right_until.clear()
    for spare in _spare.values():
        while spare:
            spare.pop().db.close()


def rebuild(store, progress=None) -> int:
    """Build the index anew from the files. Returns the number of memories. `progress(label, done, total)` is told of it."""
    index = _build(store, progress)
    number = index.db.execute("SELECT count(*) FROM doc WHERE state <> ?", (rows.UNREADABLE,)).fetchone()[0]
    give_back(index)
    return number


def path_of(store, id: str):
    """Return the path of the durable memory with an id, without regard to case, edited ones too; None when there is none."""
    def look(index):
        found = [row for row in index.named(id) if row.state != rows.UNREADABLE]
        return found[0].rel if found else None

    return using(store, look)


def counts(store) -> dict:
    """Return `{(type, state): number}`; state is approved, edited, not approved, unreadable, archived, superseded or flagged."""
    def look(index):
        made = {}
        for type, state, hidden, flagged, number in index.db.execute(
                "SELECT type, state, hidden, flagged NOT IN ('', '?'), count(*) FROM doc GROUP BY 1, 2, 3, 4"):
            name = rows.STATES[state] if state else hidden or ("flagged" if flagged else "approved")
            made[type, name] = made.get((type, name), 0) + number
        return made

    return using(store, look, whole=True)


class Follower:
    """Keeps the index of a long-lived process at most `every` seconds behind its files; `tick` between calls."""

    def __init__(self, every: float = 0.8):
        self.every, self.last = every, {}
        _followed.add("yes")

    def tick(self, stores) -> None:
        """Pass over the files of stores whose last pass is old. A store that is busy or gone is left for the next time."""
        for store in stores:
            now = time.monotonic()
            if now - self.last.get(store.root, -self.every) < self.every:
                continue
            try:
                using(store, lambda index: index.catch_up_all())
                _note_pass(store, now)
            except EngramError:
                pass
            # a pass over a large store may take longer than the pause: rest as long as it took
            self.last[store.root] = time.monotonic() + (time.monotonic() - now)


def _note_pass(store, started: float) -> None:
    """Let a pass count for the calls of the next second; in a store where it takes long, of the time of four."""
    _right_until[store.root] = started + max(1.0, 4 * (time.monotonic() - started))


def _open(store):
    """Return the index on disk, or None when there is none that can be used."""
    path = disk.path(store)
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not disk.usable(store):
        return None
    try:
        connection = sqlite.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    except sqlite.Error:
        return None
    try:
        disk.prepare(connection)
        if not disk.writable(store):
            connection.execute("PRAGMA query_only = ON")
        if disk.schema(connection) != disk.expected_schema() or \
                connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() != (disk.version(),):
            raise sqlite.DatabaseError("foreign")
    except sqlite.OperationalError as error:
        connection.close()
        if disk.is_locked(error):
            raise Busy("the index is in use by another process.", file=path, hint="Try again.") from None
        return None
    except DAMAGE:
        connection.close()
        return None
    return Index(store, connection, disk.key(store), found.st_ino)


def _build(store, progress) -> Index:
    """Build a new index from the files and put it in the place of the old one; in memory when the disk refuses."""
    if disk.writable(store):
        try:
            store.prepare_local()
            with files.lock(store.path(disk.LOCK), timeout=15):
                _build_file(store, disk.path(store), progress)
            index = _open(store)
            if index is not None:
                return index
        except Busy:
            raise
        except (StorageError, OSError, sqlite.OperationalError):
            pass
    return _in_memory(store, progress)


def _build_file(store, path, progress) -> None:
    """Write a new index file beside the old one, then rename it over that."""
    fresh = f"{path}.{os.getpid()}.{time.monotonic_ns()}.tmp"
    connection = sqlite.connect(fresh, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA cache_size = -65536")  # postings of a chunk go to all ends of their table
        _fill(store, connection, progress)
        connection.close()
        for tail in ("-journal", "-wal", "-shm"):  # of the old file: it would be rolled back into the new one
            if os.path.lexists(path + tail):
                os.unlink(path + tail)
        os.replace(fresh, path)
    finally:
        connection.close()
        if os.path.lexists(fresh):
            os.unlink(fresh)


def _in_memory(store, progress=None) -> Index:
    """Return an index that lives in this process alone."""
    return _fill(store, sqlite.connect(":memory:", isolation_level=None, check_same_thread=False), progress)


def _fill(store, connection, progress) -> Index:
    disk.prepare(connection)
    connection.executescript(disk.SCHEMA)
    index = Index(store, connection, disk.key(store), None)
    stamp, digest, known = disk.stamp(store), disk.digest(store), store.hashes()
    connection.execute("BEGIN")
    found = list(store.files())

    def documents():
        for number, (rel, seen) in enumerate(found, 1):
            text = rows.stat_text(seen, time.time_ns())
            memory, sha, message = rows.read(store, rel, os.path.join(store.root, *rel.split("/")))
            if memory is None:
                index._insert(rows.of_fault(number, rel, sha, text, message))
            else:
                index._insert(rows.of_memory(number, memory, text, known, index.key, scan=False))
                yield number, rows.fields(memory)
            if progress and (number % 500 == 0 or number == len(found)):
                progress("Indexing", number, len(found))

    index.tables.add(documents())
    present, number = {rel for rel, _ in found}, len(found)
    for rel in sorted({*known.entries, *known.extra} - present):
        if disk.is_memory_path(rel):
            number += 1
            index._insert(rows.of_absence(number, rel))
    index._set("version", disk.version())
    index._set("stamp", stamp)
    index._set("digest", digest)
    index._set("union", "1" if known.extra else "0")
    index._set("next", str(number + 1))
    connection.execute("COMMIT")
    return index
