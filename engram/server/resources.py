"""Memories as MCP resources, and the prompt that tells how to propose. Must not know the wire.

The list is the index and the most used memories; every visible memory can be read through the template
(mcp.md, Resources and prompt). Notes, archived and superseded memories are none: the catalog leaves them out.
"""
from __future__ import annotations

from engram import recall
from engram.propose.guide import PROTOCOL
from engram.server.engram_calls import here

INDEX = "engram://index"
MEMORY = "engram://memory/"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_MARKDOWN = "text/markdown"


class Resources:
    """The resources of the durable tier, on the place where the server was started."""

    def list(self, context):
        rows = [{"uri": INDEX, "name": "index", "title": "All memories", "mimeType": _MARKDOWN,
                 "description": "A line for every visible memory: id, type, scope, first sentence."}]
        place = here()
        if place.stores:
            used = recall.most_used(place, place.settings.get("mcp.resource_limit"))
            rows += [{"uri": MEMORY + encoded(card["id"]), "name": card["id"], "title": card["title"], "mimeType": _MARKDOWN,
                      "description": card["summary"]} for card in recall.cards(place, used)]
        return rows

    def templates(self, context):
        return [{"uriTemplate": MEMORY + "{id}", "name": "memory", "title": "A memory by its id",
                 "description": "The full text of one memory.", "mimeType": _MARKDOWN}]

    def read(self, context, uri):
        place, text = here(), None
        if uri == INDEX:
            text = "\n".join(row["card"] for row in recall.catalog(place)) if place.stores else ""
        elif uri.startswith(MEMORY) and place.stores:
            id = decoded(uri[len(MEMORY):])
            if id and recall.cards(place, [id]):
                text = recall.body(place, id)
        return None if text is None else [{"uri": uri, "mimeType": _MARKDOWN, "text": text}]


class Prompts:
    """The one prompt: how to propose memories."""

    def list(self, context):
        return [{"name": "propose", "title": "Propose memories",
                 "description": "How to propose what this session has shown, for the human to approve."}]

    def get(self, context, name, arguments):
        return ("How to propose memories", PROTOCOL) if name == "propose" else None


def encoded(id):
    """Return an id as one segment of a URI."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in id.encode("utf-8"))


def decoded(segment):
    """Return the id of a URI's segment, or None when it is none. Written here: urllib.parse would cost 4 ms of the start."""
    first, *rest = segment.encode("utf-8").split(b"%")
    data = bytearray(first)
    try:
        for part in rest:
            data.append(int(part[:2], 16) if len(part) >= 2 and part[:2].isalnum() else -1)
            data += part[2:]
        return data.decode("utf-8")
    except ValueError:
        return None
