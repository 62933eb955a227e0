"""Public names of a server's tools, and the definitions that a harness registers.

Pure. The rule and its table: mem-tools.md, 6.3. A public name is never parsed back: whoever needs the raw name
keeps the mapping.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from engram.files import sha256

LONGEST = 64
KEPT = 51  # characters before `_` and 12 hex digits
SCOPE_TEXTS = {  # what older servers say of `scope`; then `global` is named too (rule P11)
    "mem_search": ("Filter by scope: project (default) or personal", "Filter by scope: project (default), personal or global"),
    "mem_context": (
        "Filter observations by scope: project (default) or personal",
        "Filter observations by scope: project (default), personal or global",
    ),
    "mem_save": (
        "Scope for this observation: project (default) or personal",
        "Scope for this observation: project (default), personal or global",
    ),
    "mem_update": ("New scope: project or personal", "New scope: project, personal or global"),
}
OUTPUT = {
    "type": "object",
    "properties": {"content": {"type": "array", "items": {"type": "object"}}, "structuredContent": {"type": "object"}},
    "required": ["content"],
    "additionalProperties": False,
}


class Definition:
    """One tool as a harness registers it: `name` public, `raw` on the wire, `parameters` a JSON schema."""

    __slots__ = ("description", "name", "output", "parameters", "raw")

    def __init__(self, name, raw, description, parameters):
        self.name = name
        self.raw = raw
        self.description = description
        self.parameters = parameters
        self.output = OUTPUT

    def __repr__(self):
        return f"<Definition {self.name}>"

    def same_as(self, other):
        """Whether registering the other one instead would change nothing."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def public_name(server, raw, *, shared=False):
    """Return the public name of a tool; `shared` says that another one has the same clean name."""
    joined = f"mcp__{server}__{raw}"
    clean = re.sub(r"[^A-Za-z0-9_-]", lambda found: "__" if ord(found[0]) > 0xFFFF else "_", joined)
    if clean == joined and len(clean) <= LONGEST and not shared:
        return clean
    whole = server + "\0" + raw
    return f"{clean[:KEPT]}_{sha256(whole.encode('utf-8', 'surrogatepass'))[:12]}"


def definitions(server, tools):
    """Return (definitions, skipped) for the tools of a list answer.

    `skipped` is a list of (raw name, reason): no name, a name that the server repeats. Two raw names with one
    public name both get the hash suffix.
    """
    kept, skipped = {}, []
    for tool in tools:
        raw = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(raw, str) or not raw:
            skipped.append((raw, "it has no name"))
        elif raw in kept:
            skipped.append((raw, "the server lists this name twice"))
        else:
            kept[raw] = tool
    uses = Counter(public_name(server, raw) for raw in kept)
    made = [
        Definition(
            public_name(server, raw, shared=uses[public_name(server, raw)] > 1),
            raw,
            tool.get("description") if isinstance(tool.get("description"), str) else "",
            _parameters(raw, tool),
        )
        for raw, tool in kept.items()
    ]
    return made, skipped


def render(raw, result):
    """Return a call's result as text for a model (rule P14), structured content when there is no other."""
    lines = []
    for block in result.get("content") or ():
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            lines.append(block["text"])
        elif kind == "resource_link":
            lines.append(f"{block.get('name') or block.get('uri')}: {block.get('uri')}")
        elif kind == "resource":
            inner = block.get("resource") if isinstance(block.get("resource"), dict) else block
            lines.append(f"{inner.get('name') or inner.get('uri')}: {inner.get('uri')}")
            if isinstance(inner.get("text"), str):
                lines.append(inner["text"])
        elif kind in ("image", "audio", "embedded"):
            lines.append(f"[{kind} block omitted]")
        else:
            lines.append(_json(block))
    if not lines and result.get("structuredContent") is not None:
        lines.append(_json(result["structuredContent"]))
    return "\n".join(lines) if lines else f"(no output from {raw})"


def _parameters(raw, tool):
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return {}
    texts = SCOPE_TEXTS.get(raw)
    scope = schema.get("properties", {}).get("scope") if isinstance(schema.get("properties"), dict) else None
    if not texts or not isinstance(scope, dict) or scope.get("description") != texts[0]:
        return schema
    return {**schema, "properties": {**schema["properties"], "scope": {**scope, "description": texts[1]}}}


def _json(value):
    return json.dumps(value, ensure_ascii=False)
