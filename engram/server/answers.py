"""Results of tools, resources and prompts in the shapes of the protocol. Pure: values in, values out.

Must not know how a call runs or is written. The envelope of a tool result and its `data.text` are
those of mcp.md, Results; which members a version has is the tables' business (protocol/eras.py).
"""
from __future__ import annotations

from engram.errors import Result, envelope
from engram.protocol import eras
from engram.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS

# The TypeScript SDK closes the connection on a line of more than 10 MiB (mcp-wire.md 1). A text comes
# twice in a result, and a character may take six bytes.
TEXT_LIMIT = 800_000


def tool_rows(surface, version):
    """Return the rows of `tools/list` as `version` knows them."""
    rows = []
    for tool in surface.tools:
        row = {"name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.input,
               "outputSchema": tool.output, "annotations": {"title": tool.title, **tool.annotations},
               "_meta": tool.meta or None}
        rows.append({**eras.keep("tool", row, version), **tool.extra})
    return rows


def rows(kind, found, version):
    """Return rows of resources, templates or prompts as `version` knows them."""
    return [eras.keep(kind, row, version) for row in found]


def bounded(result):
    """Return the result, or one that says that its text is too long to send."""
    if len(result.text) <= TEXT_LIMIT:
        return result
    message = f"the answer is too long to send ({len(result.text)} characters): ask for less, or for one memory by its id"
    return Result({}, message, error=("ENG_TOO_LONG", message))


def tool_result(result, version):
    """Return the CallToolResult of a Result."""
    structured = result.structured
    if structured is None:
        structured = envelope(result)
        structured["data"] = {**structured["data"], "text": result.text}
    made = {"content": [{"type": "text", "text": result.text}], "structuredContent": structured,
            "isError": None if result.ok else True}
    return eras.keep("result", made, version)


def bare_error(result):
    """Return (code, message, data) for a tool that failed when it was called as a bare method."""
    code, message = result.error
    return INVALID_PARAMS if code == "ENG_USAGE" else INTERNAL_ERROR, message, {"code": code}


def not_found(uri, era):
    """Return (code, message, data) for a resource that does not exist, as the era says it."""
    return INVALID_PARAMS if era == "modern" else eras.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri}


def prompt_result(description, text):
    """Return the GetPromptResult of one user message."""
    return {"description": description, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def after_dialog(why, result):
    """Return the waiting Result of a proposal whose dialog did not decide: it says first that nothing was saved."""
    return Result(result.data, f"nothing was saved: {why}.\n\n{result.text}", result.diagnostics,
                  exit_code=result.exit_code, error=result.error, structured=result.structured)
