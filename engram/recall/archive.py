"""Archived memories, for a search that asks for them: read from `archive/` as they are, ranked in memory.

They are looked for seldom and are in no index; a search that wants them pays for reading them.
"""
from __future__ import annotations

import os
import re

from engram.errors import EngramError
from engram.recall import rank
from engram.recall.words import table
from engram.store import index_rows, index_tables, memory

FOLDER = "archive"
BANNER = rb"\A(?:\xef\xbb\xbf)?(?:<!--[^\n]*-->\r?\n)+\s*"


def all_of(stores) -> list:
    """Return the archived memories that can be read and pass the safety scan, by scope and path."""
    found = []
    for store in stores:
        for rel in _paths(store):
            try:
                raw = store.read_bytes(rel)
                one = memory.parse(re.sub(BANNER, b"", raw), rel, store.scope)
            except EngramError:
                continue
            if not index_rows.scanned(one):
                found.append(one)
    return found


def search(place, stores, asked, limit: int) -> list:
    """Return [(score, Memory, marks)] of the archived memories that match a query."""
    from engram.recall.searching import fits  # searching calls this module; what narrows a query stands there

    found = all_of(stores)
    if not asked.words:
        return [(0.0, one, ["archived"]) for one in found if fits(one, asked)][:limit]
    tables = index_tables.in_memory()
    try:
        tables.add((number, index_rows.fields(one)) for number, one in enumerate(found))
        hits = rank.rank([tables], asked.words, limit=len(found), table=table(place)).hits
        return [(hit.score, found[hit.doc], ["archived"]) for hit in hits if fits(found[hit.doc], asked)][:limit]
    finally:
        tables.db.close()


def _paths(store):
    """Yield the paths of the files under archive/, in order."""
    top = os.path.join(store.root, FOLDER)
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), store.root).replace(os.sep, "/")
