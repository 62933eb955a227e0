"""The word table of this process, opened in place: a few dozen short reads a query, and nothing at a start that needs none.

Must not know who uses it, nor what for (`text.related` has the layout).
"""
from __future__ import annotations

import os

from engram import files
from engram.errors import StorageError
from engram.text.related import Table

NAME = "text/related.bin"

_tables: list = []  # the one table of this process once it was asked for, or None where there is no use of it


def opened():
    """Open the table, once a process, and return it; None where it is missing, damaged or of another version.

    A server calls this before it answers: the archive may be replaced on disk afterwards, its open descriptor stays good.
    """
    if not _tables:
        _tables.append(_open())
    return _tables[0]


def _open():
    try:
        path, start, size = files.package_span(NAME)
        if not hasattr(os, "pread"):  # Windows
            data = files.package_data(NAME)
            return Table(lambda offset, count: data[offset:offset + count])
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        return Table(lambda offset, count: os.pread(descriptor, max(0, min(count, size - offset)), start + offset))
    except (OSError, StorageError, ValueError):
        return None
