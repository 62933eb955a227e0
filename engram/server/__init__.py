"""The MCP server: tool tables of both surfaces, the loop and stdio. Knows nothing of the CLI's commands."""
from __future__ import annotations

# The C half of `signal`, there at once; `signal` itself imports `enum` first.
import _signal
import gc
import os


def main(argv, surface):
    """Serve MCP on stdin and stdout with the options of `argv`; `surface` is the default one. Return the exit code."""
    # A client may end a server that it only probed before the server is up (mcp-wire.md 0.6): no traceback then.
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, lambda *_: os._exit(0))
    gc.disable()  # nothing that an import makes is garbage; looking for some takes 4 ms
    # Imported here and not above: a module that only wants a tool row must not get the whole server,
    # and each surface imports only what it needs (architecture.md, Fast start).
    from engram.server.start import run

    return run(argv, surface)
