"""The one SQLite file behind the session tier: opened late, written by patient writers.

Must not know what the rows mean. Readers never wait for writers (WAL). A writer waits its turn, up to a limit and with a
clear error, so that several agents lose nothing (case DB-01). Nothing is created before the first write: until then, and
where nothing may be written, readers see an empty database.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from functools import partial

from engram import files
from engram.errors import Busy, StorageError
from engram.mem import filesystem, index, schema
from engram.mem.refusals import Refusal

NAME = "sessions.db"
PATIENCE = 20.0  # seconds that a call waits for other writers; hosts give up after 60
LONGEST_PAUSE = 0.03
READER_WAIT = 5000  # milliseconds; a reader waits only while the last user of the log tidies it up
VARIABLE = "ENGRAM_DATA_DIR"


class Database:
    """Connections to `sessions.db` in `folder` (None: there is no such folder); use `reading()` and `writing()`, from any thread.

    `given_up()` is asked while a writer waits; `warnings` collects what a person should know of the place.
    """

    def __init__(self, folder, *, patience=PATIENCE, kind=filesystem.kind):
        self.folder = folder
        self.path = os.path.join(folder, NAME) if folder else None
        self.patience = patience
        self.warnings = []
        self._kind = kind
        self._checked = False
        self._identity = None
        self._empty = None
        self._reader = self._writer = None
        self._read_lock, self._write_lock = threading.RLock(), threading.Lock()

    @contextmanager
    def reading(self):
        """Give a connection that sees one state of the database while in the block. Raises StorageError, Busy."""
        with self._read_lock:
            connection = self._for_reading()
            with _translated(self.path):
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, given_up=lambda: False):
        """Give a connection inside a write transaction: committed at the end of the block, rolled back by any error.

        Raises Busy when other writers hold the database for longer than the patience, StorageError.
        """
        deadline = time.monotonic() + self.patience
        if not self._write_lock.acquire(timeout=self.patience):
            raise _busy(self.path, self.patience)
        try:
            with _translated(self.path):
                connection = self._for_writing(deadline, given_up)
                _patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.path, deadline, self.patience, given_up)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self._write_lock.release()

    @contextmanager
    def nothing(self):
        """Give a connection to an empty database, whatever is the matter with the real one."""
        with self._read_lock:
            yield self._nothing()

    def exists(self):
        """Tell whether there is a database file."""
        return self.path is not None and os.path.exists(self.path)

    def close(self):
        """Close both connections; a later call opens them again."""
        with self._read_lock:
            self._drop()

    def _drop(self):
        for connection in (self._reader, self._writer, self._empty):
            if connection is not None:
                connection.close()
        self._reader = self._writer = self._empty = None

    def _check_place(self):
        # before any file is opened or changed (case DB-02)
        if self._checked:
            return
        if self.folder is None:
            raise StorageError("there is no home folder to keep session memory in.", hint=f"Set {VARIABLE} to a folder.")
        kind = self._kind(self.folder)
        if kind in filesystem.NETWORK:
            raise StorageError(
                f"the data folder is on a network file system ({kind}), where SQLite loses data; nothing was opened.",
                file=self.folder,
                hint=f"Set {VARIABLE} to a folder on a local disk.",
            )
        if kind and kind not in filesystem.LOCAL:
            self.warnings.append(
                f"{self.folder} is on a file system of the type {kind}, which Engram does not know; if several machines "
                f"share it, set {VARIABLE} to a folder on a local disk."
            )
        self._checked = True

    def _follow(self):
        # a database that was replaced or removed under a running server is opened anew: writes into the old file would be lost
        try:
            found = os.stat(self.path)
        except OSError:
            found = None
        identity = (found.st_dev, found.st_ino) if found else None
        if identity != self._identity:
            with self._read_lock:
                self._drop()
                self._identity = identity
        return identity is not None

    def _for_reading(self):
        self._check_place()
        if self._follow() and self._reader is None:
            with _translated(self.path):
                self._reader = self._open_for_reading()
        if self._reader is not None:
            return self._reader
        return self._nothing()

    def _nothing(self):
        if self._empty is None:
            self._empty = _connect(":memory:")
            _create(self._empty)
        return self._empty

    def _open_for_reading(self):
        deadline = time.monotonic() + self.patience
        # a folder that can't be written has no room for the log's own files; without a log the file can be read as it is
        plain = not os.path.exists(self.path + "-wal")
        last = None
        for immutable in (False, True) if plain else (False,):
            connection = _connect(self.path, immutable=immutable, busy=READER_WAIT)
            try:
                version = _patiently(partial(_version, connection, self.path), self.path, deadline, self.patience)
            except sqlite3.OperationalError as error:
                connection.close()
                last = error
                continue
            except BaseException:
                connection.close()
                raise
            if version:
                return connection
            connection.close()
            return None  # another process has made the file and not yet its tables
        raise last

    def _for_writing(self, deadline, given_up):
        self._check_place()
        if not self._follow():
            files.ensure_private(self.path)
            self._follow()
        if self._writer is None:
            connection = _connect(self.path)
            try:
                _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"), self.path, deadline, self.patience, given_up)
                connection.execute("PRAGMA synchronous = NORMAL")
                if _patiently(lambda: _version(connection, self.path), self.path, deadline, self.patience, given_up) == 0:
                    _patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.path, deadline, self.patience, given_up)
                    if _version(connection, self.path) == 0:  # nobody else made them meanwhile
                        _create(connection)
                    connection.execute("COMMIT")
                    with self._read_lock:
                        if self._reader is not None:
                            self._reader.close()
                            self._reader = None
                _patiently(lambda: index.renew_when_old(connection), self.path, deadline, self.patience, given_up)
            except BaseException:
                connection.close()
                raise
            self._writer = connection
        return self._writer


def _connect(path, *, immutable=False, busy=0):
    uri = (
        path
        if path == ":memory:"
        else "file:"
        + "".join(chr(byte) if byte < 128 and chr(byte) not in "%?#" else f"%{byte:02X}" for byte in os.fsencode(os.path.abspath(path)))
    )
    if immutable:
        uri += "?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=path != ":memory:", timeout=0, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA busy_timeout = {busy}")
    return connection


def _create(connection):
    for statement in schema.TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO settings VALUES ('terms', ?)", (schema.TERMS_VERSION,))
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _version(connection, path):
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version == 0 and not tables:
        return 0
    if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION:
        raise StorageError(
            "this is a database of another program.", file=path, hint=f"Set {VARIABLE} to another folder, or move the file away."
        )
    if version > schema.VERSION:
        raise StorageError("a newer version of Engram made this database.", file=path, hint="Run engram upgrade.")
    return version


def _patiently(step, path, deadline, patience, given_up=lambda: False):
    """Run `step`, again as long as another connection is in the way. Raises Busy."""
    pause = 0.001
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        if given_up():
            raise Refusal("cancelled", "the caller went away before the database was free; nothing was saved.")
        if time.monotonic() > deadline:
            raise _busy(path, patience)
        # random pauses: writers that wait together must not come back together
        time.sleep(pause * (0.5 + os.urandom(1)[0] / 255))
        pause = min(pause * 1.5, LONGEST_PAUSE)


@contextmanager
def _translated(path):
    try:
        yield
    except sqlite3.OperationalError as error:
        if _is_busy(error):
            raise _busy(path, 0) from None
        if "fts5" in str(error):
            raise StorageError("the SQLite of this Python has no FTS5, which session memory needs.", hint="Use another Python.") from None
        raise StorageError(
            f"the database can't be used: {error}.", file=path, hint="Check that the disk has room and the folder can be written."
        ) from None
    except sqlite3.IntegrityError:
        raise  # ours: a fault of the program, not of the file
    except sqlite3.DatabaseError as error:
        raise StorageError(
            f"the database is damaged: {error}.",
            file=path,
            hint="Run engram mem doctor; to start anew, move the file and its -wal and -shm files away.",
        ) from None


def _is_busy(error):
    # the low byte is SQLITE_BUSY or SQLITE_LOCKED, whatever the extended part says
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF in (5, 6)


def _busy(path, patience):
    waited = f"for {patience:g} s" if patience else "meanwhile"
    return Busy(f"other processes kept the database busy {waited}; nothing was saved.", file=path, hint="Try again in a moment.")
