"""Modules that other rooms import on first use, imported now. Nothing else happens here.

A server has all of its modules before it answers, because the file that they lie in may be replaced
while it serves (architecture.md, Fast start). A test calls every tool and looks for modules that came later.
"""
from __future__ import annotations

from engram.safety import marks, orders, private, spans
from engram.store import author, index_rows

__all__ = ["author", "index_rows", "marks", "orders", "private", "spans"]
