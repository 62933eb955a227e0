"""The MCP server: tool tables of both surfaces, the loop and stdio. Knows nothing of the CLI's commands."""
from __future__ import annotations


def main(argv, surface):
    """Serve MCP on stdin and stdout with the options of `argv`; `surface` is the default one. Return the exit code."""
    # Imported here and not above: a module that only wants a tool row must not get the whole server,
    # and each surface imports only what it needs (architecture.md, Fast start).
    from engram.server.start import run

    return run(argv, surface)
