"""Small SQLite files in the user's own folder: made private, changed in one transaction, begun anew when damaged.

Must not know what is recorded. What such a file says can be lost without harm: a damaged one says nothing.
"""
from __future__ import annotations

import _sqlite3 as sqlite  # the C module: `sqlite3` adds datetime and 2 ms to every start

from engram import files
from engram.errors import StorageError

Error = sqlite.Error


def transact(file, schema, work, *, timeout, synced=True):
    """Run `work(connection)` in one transaction on a file that has the tables of `schema`, and return its result.

    `file` is None where there is no home folder. Without `synced` a power cut may cost the file. Raises StorageError, and
    Error when somebody holds it for `timeout` seconds, the disk is full or may not be written.
    """
    if file is None:
        raise StorageError("there is no home folder to keep it in.", hint="Set ENGRAM_DATA_DIR.")
    files.ensure_private(file)
    try:
        return _transact(file, schema, work, timeout, synced)
    except sqlite.OperationalError:
        raise  # busy, full or read-only: the record itself is sound
    except sqlite.DatabaseError:
        files.replace(file, b"")
        return _transact(file, schema, work, timeout, synced)


def open_to_read(file):
    """Return a connection to a file that is there, for any thread. Raises Error."""
    return sqlite.connect(file, timeout=2, isolation_level=None, check_same_thread=False)


def _transact(file, schema, work, timeout, synced):
    connection = sqlite.connect(file, timeout=timeout, isolation_level=None)
    try:
        if not synced:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema:
            connection.execute(statement)
        result = work(connection)
        connection.execute("COMMIT")  # a crash or an error before leaves the file as it was
        return result
    finally:
        connection.close()
