"""JSON-RPC and both MCP eras: bytes in, events out. Knows no file, clock, socket or thread, and nothing of memories."""
from __future__ import annotations
