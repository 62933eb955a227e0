"""Approved memories of the project, for the head of what the session tier shows (session.md, "How it fits").

Knows recall; must not know rows of the session tier. What can't be read is said in one line: a fault in the store never
fails a search of the session tier.
"""

from __future__ import annotations

from engram import recall
from engram.errors import EngramError
from engram.mem import projects
from engram.store import trust

LABEL = "Approved memories of this project:"
UNTRUSTED = "Memories that this project's store came with, not yet trusted (engram trust):"
MOST = 3
MOST_AT_START = 8


def matching(tier, folder, query):
    """Return (lines, rows, warnings): the approved memories that match a query; of a blank one, those a session starts with."""
    place = tier.place(folder)
    if not place.stores:
        return [], [], []
    try:
        found = recall.load(place, query, disclosure="cards", limit=MOST if query else MOST_AT_START)
        cards = recall.cards(place, found.data["card_ids"])
    except EngramError as error:
        return [], [], [f"approved memories could not be read: {error}"]
    known = all(row["scope"] == "global" for row in cards) or trust.read(place).workspace_trusted
    rows = [{name: row[name] for name in ("id", "type", "scope", "summary")} for row in cards]
    return ([LABEL if known else UNTRUSTED, *(row["card"] for row in cards), ""] if cards else []), rows, []


def folder(tier, connection, found):
    """Return the folder whose approved memories belong to the project of an answer, None when that is not the one worked on."""
    if found.path:
        return found.path
    here = projects.folder_of(tier, connection)
    return here.path if here is not None and here.name == found.name else (tier.folder if found.source == "process_override" else None)
