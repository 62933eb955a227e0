"""Where related words come from: the ranker takes them as a function, this module finds the one that is switched on.

`recall.vectors = off` takes it away (store.md, Settings). Must not know the ranker or the store.
"""
from __future__ import annotations


def related(place):
    """Return `words -> {word: [(other word, similarity), …]}` for the ranker, or None when there is no table to use."""
    return None
