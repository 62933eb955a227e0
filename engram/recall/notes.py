"""Working notes as reads see them: short files in `working/`, gone past `valid_until` (propose.md, "Notes").

Reads only. Notes are never routed; a session start shows those of its objective as cards.
"""
from __future__ import annotations

import os
import time
import unicodedata

from engram.errors import EngramError

FOLDER = "working"


def all_of(place) -> list:
    """Return the notes of the stores in reach that are still valid and carry nothing that hides them, newest first."""
    found, now = [], time.time()
    for store in place.stores:
        try:
            names = sorted(os.listdir(os.path.join(store.root, FOLDER)))
        except OSError:
            continue
        for name in names:
            if not name.endswith(".md") or name.startswith("."):
                continue
            try:
                note = store.read(f"{FOLDER}/{name}")
            except EngramError:
                continue
            if note.tier == "working" and (note.valid_until is None or note.valid_until > now) and not _flagged(note):
                found.append(note)
    found.sort(key=lambda note: (note.text("created"), note.id), reverse=True)
    return found


def named(place, id: str):
    """Return the note with an id, or None."""
    return next((note for note in all_of(place) if note.id.lower() == id.lower()), None)


def of_objective(place, objective) -> list:
    """Return the notes whose objective is this one: trimmed, NFC, case folded. None has none."""
    if not objective or not _plain(objective):
        return []
    return [note for note in all_of(place) if _plain(note.text("objective")) == _plain(objective)]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip()).casefold()


def _flagged(note) -> bool:
    from engram.store.index_rows import scanned  # notes are rare: a load without them needs no scan

    return bool(scanned(note))
