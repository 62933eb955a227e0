"""Whether the word table has a say (`recall.vectors`, store.md, Settings). Must not know the ranker."""
from __future__ import annotations

from engram.store import word_table


def table(place):
    """Return the word table for the ranker, or None when there is none to use or the setting is off."""
    return None if place.settings.get("recall.vectors") == "off" else word_table.opened()
