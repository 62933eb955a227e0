"""Where related words come from: the ranker takes them as a function, this module opens the table that gives them.

`recall.vectors = off` takes it away (store.md, Settings). The table is read in place, a few dozen short reads a query:
opening it costs a start nothing that a query does not need. Must not know the ranker or the store.
"""
from __future__ import annotations

import os

from engram import files
from engram.errors import StorageError
from engram.text import related as word_table

NAME = "text/related.bin"

_tables: list = []  # the one table of this process once it was asked for, or None where there is no use of it


def related(place):
    """Return `words -> {word: [(other word, similarity), …]}` for the ranker, or None when there is no table to use."""
    return None if place.settings.get("recall.vectors") == "off" else look_up()


def look_up():
    """Open the table, once a process, and return its look-up; None where it is missing, damaged or of another version.

    A server calls this before it answers: the archive may be replaced on disk afterwards, its open descriptor stays good.
    """
    if not _tables:
        _tables.append(_open())
    return _tables[0].related if _tables[0] is not None else None


def _open():
    try:
        path, start, size = files.package_span(NAME)
        if not hasattr(os, "pread"):  # Windows
            data = files.package_data(NAME)
            return word_table.Table(lambda offset, count: data[offset:offset + count])
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        return word_table.Table(lambda offset, count: os.pread(descriptor, max(0, min(count, size - offset)), start + offset))
    except (OSError, StorageError, ValueError):
        return None
