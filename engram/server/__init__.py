"""The MCP server: tool tables of both surfaces, the loop and stdio. Knows nothing of argv's other commands."""
from __future__ import annotations
