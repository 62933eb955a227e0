"""The derived index of a store: found again, kept up with the files, rebuilt when it is not to be trusted.

Knows files, hashes and rows; must not know how ranking works or who asks. Deleting the file loses nothing (recall.md, "The
index"). Every writer holds `index.lock`; readers never wait for it. A new index is built beside the old one and renamed over
it. On a store that can't be written the index lives in memory.

`catch_up` is for `load`: it looks at the hashes file alone, and at the files that this tells about. `catch_up_all` passes over
all files.
"""
from __future__ import annotations

import _sqlite3 as sqlite  # see index_tables
import atexit
import os
import time

from engram import files
from engram.errors import Busy, EngramError, StorageError
from engram.store import hashes, index_tables
from engram.store import index_file as disk
from engram.store import index_rows as rows
from engram.store.index_rows import COLUMNS, Row

DAMAGE = (sqlite.DatabaseError, ValueError, TypeError, OverflowError, IndexError, KeyError, MemoryError)
_spare: dict[str, list] = {}
_followed: set[str] = set()  # not empty once a Follower keeps this process up
_right_until: dict[str, float] = {}  # by store, when its last pass over all files no longer counts
atexit.register(lambda: close_all())  # 3.13 warns of connections that are open at the end


class Damaged(Exception):
    """The index says what can't be: it is to be built anew."""


class Moved(Damaged):
    """Another process built the index anew: it is to be opened again."""


class Index:
    """The open index of one store. One thread at a time may use it; `borrow` and `give_back` see to that."""

    def __init__(self, store, connection, key, inode):
        self.store, self.db, self.key, self.inode = store, connection, key, inode
        self.tables = index_tables.Tables(connection)
        self.in_memory = inode is None
        self.scans: list[tuple[Row, str]] = []

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, where: str, values=()) -> list[Row]:
        """Return the rows that meet a condition, which is never made from input."""
        return [Row(*row) for row in self.db.execute(f"SELECT {COLUMNS} FROM doc WHERE {where}", values)]

    def rows_of(self, numbers) -> dict[int, Row]:
        """Return `{document id: Row}`."""
        numbers, found = list(numbers), {}
        for at in range(0, len(numbers), 500):
            part = numbers[at:at + 500]
            found.update((row.id, row) for row in self.rows(f"id IN ({','.join('?' * len(part))})", part))
        return found

    def named(self, name: str) -> list[Row]:
        """Return the rows of an id, without regard to case, in path order."""
        return sorted(self.rows("name = ?", (name.lower(),)), key=lambda row: disk.path_order(row.rel))

    def present_names(self, names) -> set[str]:
        """Return those of some lower-case ids that a file has."""
        return self._names(names, "")

    def shared_names(self, names) -> set[str]:
        """Return those of some lower-case ids that several files have (case ST-17)."""
        return self._names(names, " GROUP BY name HAVING count(*) > 1")

    def _names(self, names, having: str) -> set[str]:
        names, found = list(names), set()
        for at in range(0, len(names), 500):
            part = names[at:at + 500]
            found.update(name for (name,) in self.db.execute(
                f"SELECT name FROM doc WHERE name IN ({','.join('?' * len(part))}){having}", part))
        return found

    def sealed(self, row: Row) -> bool:
        """Whether what a row says was found out by this user's Engram."""
        return bool(self.key) and row.seal == rows.seal(row, self.key)

    def note_scan(self, row: Row, flagged: str) -> None:
        """Remember what the safety scan said of a row; `keep_scans` writes it."""
        self.scans.append((row, flagged))

    def keep_scans(self) -> None:
        """Write the scans that were made meanwhile. Where that can't be, they are made again."""
        scans, self.scans = self.scans, []
        made = [row._replace(flagged=flagged) for row, flagged in scans]
        values = [(row.flagged, rows.seal(row, self.key), row.id, row.sha) for row in made]
        if values and (self.in_memory or disk.writable(self.store)):
            self._write(lambda: self.db.executemany("UPDATE doc SET flagged = ?, seal = ? WHERE id = ? AND sha = ?", values))

    # -- keeping up ---------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Make approved content right: what the hashes file says now, and the files that may have become whole again."""
        stamp = disk.stamp(self.store)
        doubtful = []
        for row in self.rows("state IN (1, 3, 4)"):
            now = self._stat(row.rel)
            if now is not None if row.state == rows.GONE else (not now or now != row.stat):
                doubtful.append(row.rel)
        if not stamp or self._meta("stamp") != stamp:
            self._write(lambda: self._follow(doubtful))
        elif doubtful:
            self._write(lambda: self._take(doubtful, _Approvals(self.store)))

    def catch_up_all(self) -> None:
        """Make every row right: look at each file's stat, and read those that moved."""
        now, changed = time.time_ns(), []
        known = dict(self.db.execute("SELECT rel, stat FROM doc WHERE state <> 4"))
        for rel, seen in self.store.files():
            before = known.pop(rel, None)
            if not before or before != rows.stat_text(seen, now):
                changed.append(rel)
        stamp = disk.stamp(self.store)
        if changed or known or not stamp or self._meta("stamp") != stamp:
            self._write(lambda: self._follow([*changed, *known]))

    def refresh(self, row: Row) -> None:
        """Take in the present state of one file that is not what its row says."""
        if row.state == rows.APPROVED and self._meta("union") == "0":
            # the hashes file did not move, so what it has for this file is what the row has
            known = hashes.Hashes({row.rel: row.sha}, {row.rel: {row.lf}} if row.lf else {})
            self._write(lambda: self._take([row.rel], known))
        else:
            self._write(lambda: self._follow([row.rel]))

    def _follow(self, changed) -> None:
        """Read the files named, and those whose standing in the hashes file is another than their rows say."""
        stamp, known = disk.stamp(self.store), self.store.hashes()
        have, more = set(), list(changed)
        for rel, state, sha, lf in self.db.execute("SELECT rel, state, sha, lf FROM doc"):
            have.add(rel)
            if state < rows.UNREADABLE and state != rows.state_of(known, rel, sha, lf):
                more.append(rel)
            elif state == rows.GONE and not known.known(rel):
                more.append(rel)
        more += [rel for rel in {*known.entries, *known.extra} if rel not in have and disk.is_memory_path(rel)]
        self._take(dict.fromkeys(more), known)
        self._set("stamp", stamp)
        self._set("union", "1" if known.extra else "0")

    def _take(self, changed, known) -> None:
        """Read files and put what they hold in the place of their rows."""
        number = (self.db.execute("SELECT max(id) FROM doc").fetchone()[0] or 0) + 1
        number = max(number, int(self._meta("next") or 0))
        out, documents = [], []
        for rel in sorted(changed, key=disk.path_order):
            old = self.rows("rel = ?", (rel,))
            stat = self._stat(rel) if disk.is_memory_path(rel) else None
            if stat is None:
                out += old
                self._drop(old)
                if known.known(rel) and disk.is_memory_path(rel):
                    self._insert(rows.of_absence(number, rel))
                    number += 1
                continue
            found, sha, message = rows.read(self.store, rel)
            if found is None:
                out += old
                self._drop(old)
                self._insert(rows.of_fault(number, rel, sha, stat, message))
                number += 1
                continue
            row = rows.of_memory(number, found, stat, known, self.key)
            if old and old[0].sha == sha and old[0].state != rows.UNREADABLE:
                # the same text: its postings stay
                self.db.execute("DELETE FROM doc WHERE id = ?", (old[0].id,))
                self._insert(row._replace(id=old[0].id))
                continue
            out += old
            self._drop(old)
            self._insert(row)
            documents.append((number, rows.fields(found)))
            number += 1
        self.tables.remove([row.id for row in out])
        self.tables.add(documents)
        self._set("next", str(number))

    def _insert(self, row: Row) -> None:
        self.db.execute(f"INSERT INTO doc VALUES ({','.join('?' * len(Row._fields))})", row)

    def _drop(self, old) -> None:
        self.db.executemany("DELETE FROM doc WHERE id = ?", [(row.id,) for row in old])

    def _stat(self, rel: str):
        """Return the stat of a memory file as text, None when there is none to read."""
        try:
            path = self.store.path(rel)
            if any(os.path.islink(os.path.join(self.store.root, *rel.split("/")[:depth])) for depth in range(1, rel.count("/") + 1)):
                return None
            return rows.stat_text(os.stat(path), time.time_ns())
        except (OSError, EngramError):
            return None

    def _write(self, change) -> None:
        """Run a change in one transaction under the writer's lock; another process may have made it meanwhile, harmlessly."""
        if self.in_memory:
            self._transaction(change)
            return
        if not disk.writable(self.store):
            raise Damaged("on a disk that can't be written")
        try:
            with files.lock(self.store.path(disk.LOCK), timeout=15):
                if disk.inode(disk.path(self.store)) != self.inode:
                    raise Moved
                self._transaction(change)
        except StorageError as error:  # a lock or a file of another user: work from memory then
            raise Damaged(error.message) from None

    def _transaction(self, change) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            change()
        except BaseException:
            self.db.execute("ROLLBACK")
            self.tables.forget()
            raise
        self.db.execute("COMMIT")

    def _meta(self, key: str):
        found = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def _set(self, key: str, value: str) -> None:
        self.db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))

    def worn(self) -> bool:
        """Whether so many documents were replaced that a rebuild pays."""
        dead = int(self._meta("dead") or 0)
        return dead > 2000 and dead > self.tables.totals()[0]


class _Approvals:
    """The hashes file, taken apart only for a hash that stands in it: a hand edit's does not."""

    def __init__(self, store):
        self.store, self.raw, self.read = store, store.raw_hashes() or b"", None
        if store.read_journal():
            self.read = store.hashes()

    def _whole(self):
        if self.read is None:
            self.read = self.store.hashes()
        return self.read

    def approves(self, rel, sha256):
        return (self.read is not None or sha256.encode() in self.raw) and self._whole().approves(rel, sha256)

    def known(self, rel):
        return f'"{rel}"'.encode("utf-8", "surrogatepass") in self.raw or self._whole().known(rel)


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
    stamp, known = disk.stamp(store), store.hashes()
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
    index._set("union", "1" if known.extra else "0")
    index._set("next", str(number + 1))
    connection.execute("COMMIT")
    return index
