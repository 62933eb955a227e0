"""One open index: its rows, and how they follow the files.

Knows files, hashes and rows; must not know who asks, nor how an index is found, built or shared (`index`). Every change is one
transaction under the writers' lock; what another process did meanwhile is found as it is.

`catch_up` is for `load`: it looks at the hashes file alone, and at the files that this tells about. `catch_up_all` passes over
all files.
"""
from __future__ import annotations

import os
import time

from engram import files
from engram.errors import EngramError, StorageError
from engram.store import hashes, index_tables
from engram.store import index_file as disk
from engram.store import index_rows as rows
from engram.store.index_rows import COLUMNS, Row


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
        return {number: Row._make(row) for number, row in self.tables.rows(f"SELECT {COLUMNS} FROM doc WHERE id IN", numbers).items()}

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
        return set(self.tables.rows("SELECT name FROM doc WHERE name IN", names, having))

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
        self.tables.notice()
        stamp = disk.stamp(self.store)
        doubtful = []
        for row in self.rows("state IN (1, 3, 4)"):
            now = self._stat(row.rel)
            if now is not None if row.state == rows.GONE else (not now or now != row.stat):
                doubtful.append(row.rel)
        if self._hashes_moved(stamp):
            self._write(lambda: self._follow(doubtful))
        elif doubtful:
            self._write(lambda: self._take(doubtful, _Approvals(self.store)))

    def catch_up_all(self) -> None:
        """Make every row right: look at each file's stat, and read those that moved."""
        self.tables.notice()
        now, changed = time.time_ns(), []
        known = dict(self.db.execute("SELECT rel, stat FROM doc WHERE state <> 4"))
        for rel, seen in self.store.files():
            before = known.pop(rel, None)
            if not before or before != rows.stat_text(seen, now):
                changed.append(rel)
        stamp = disk.stamp(self.store)
        if changed or known or self._hashes_moved(stamp):
            self._write(lambda: self._follow([*changed, *known]))

    def refresh(self, row: Row) -> None:
        """Take in the present state of one file that is not what its row says."""
        if row.state == rows.APPROVED and self._meta("union") == "0":
            # the hashes file did not move, so what it has for this file is what the row has
            known = hashes.Hashes({row.rel: row.sha}, {row.rel: {row.lf}} if row.lf else {})
            self._write(lambda: self._take([row.rel], known))
        else:
            self._write(lambda: self._follow([row.rel]))

    def _hashes_moved(self, stamp: str) -> bool:
        """Whether the hashes file or the journal may say something else than the rows; its bytes decide where its stamp can't."""
        if stamp and self._meta("stamp") == stamp:
            return False
        digest = disk.digest(self.store)
        if not digest or self._meta("digest") != digest:
            return True
        if stamp and (self.in_memory or disk.writable(self.store)):
            self._write(lambda: self._set("stamp", stamp))
        return False

    def _follow(self, changed) -> None:
        """Read the files named, and those whose standing in the hashes file is another than their rows say."""
        stamp, digest, known = disk.stamp(self.store), disk.digest(self.store), self.store.hashes()
        approved = dict(self.db.execute("SELECT rel, sha FROM doc WHERE state = 0"))
        # all that the hashes file says differently, by one comparison of both; the rows of the rest are right
        doubtful = {rel for rel, _ in approved.items() ^ known.entries.items()}
        doubtful.update(known.extra, (rel for (rel,) in self.db.execute("SELECT rel FROM doc WHERE state <> 0")))
        more, have = list(changed), set()
        for rel, state, sha, lf in self.tables.rows("SELECT rel, state, sha, lf FROM doc WHERE rel IN", doubtful).values():
            have.add(rel)
            if state < rows.UNREADABLE and state != rows.state_of(known, rel, sha, lf):
                more.append(rel)
            elif state == rows.GONE and not known.known(rel):
                more.append(rel)
        more += [rel for rel in doubtful - have if disk.is_memory_path(rel)]
        self._take(dict.fromkeys(more), known)
        self._set("stamp", stamp)
        self._set("digest", digest)
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
        self.tables.forget()

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
