"""Recall: the right memories for a task, within a budget, whatever the size of the store.

Ranking, routing, what fits a budget, search. Reads only; must not know how to write a memory, MCP or terminals.
"""
from __future__ import annotations

from engram.recall.loading import Fresh, body, fresh, load, route, session_start
from engram.recall.render import unwrapped
from engram.recall.searching import by_id, cards, catalog, listing, most_used, related, search, show

__all__ = ["Fresh", "body", "by_id", "cards", "catalog", "fresh", "listing", "load", "most_used", "related", "route", "search",
           "session_start", "show", "unwrapped"]
