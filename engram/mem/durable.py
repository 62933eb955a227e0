"""Approved memories of the project, for the head of what the session tier shows (session.md, "How it fits").

Knows recall; must not know rows of the session tier. What can't be read is said in one line: a fault in the store never
fails a search of the session tier.
"""

from __future__ import annotations

from engram import recall
from engram.errors import EngramError
from engram.mem import projects

LABEL = "Approved memories of this project:"
MOST = 3
MOST_AT_START = 8


def matching(tier, folder, query):
    """Return (lines, rows, warnings): the approved memories that match a query."""
    place = _place(tier, folder)
    if place is None:
        return [], [], []
    try:
        found = recall.search(place, query, limit=MOST)
        return _shown(place, [entry["id"] for entry in found.data.get("entries", ())])
    except EngramError as error:
        return [], [], [f"approved memories could not be read: {error}"]


def at_start(tier, folder):
    """Return (lines, rows, warnings): the approved memories that a session starts with."""
    place = _place(tier, folder)
    if place is None:
        return [], [], []
    try:
        found = recall.load(place, "", disclosure="cards", limit=MOST_AT_START)
        return _shown(place, found.data.get("card_ids", ()))
    except EngramError as error:
        return [], [], [f"approved memories could not be read: {error}"]


def folder(tier, connection, found):
    """Return the folder whose approved memories belong to the project of an answer, None when that is not the one worked on."""
    if found.path:
        return found.path
    here = projects.folder_of(tier, connection)
    return here.path if here is not None and here.name == found.name else (tier.folder if found.source == "process_override" else None)


def _place(tier, folder):
    place = tier.place(folder)
    return place if place.stores else None


def _shown(place, ids):
    cards = {row["id"]: row for row in recall.catalog(place)} if ids else {}
    rows = [
        {"id": id, "type": cards[id]["type"], "scope": cards[id]["scope"], "summary": cards[id]["summary"]} for id in ids if id in cards
    ]
    lines = [f"- [{row['id']}] ({row['type']}, {row['scope']}) {row['summary']}" for row in rows]
    return ([LABEL, *lines, ""] if lines else []), rows, []
