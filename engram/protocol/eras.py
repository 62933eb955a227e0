"""The two eras and five versions as tables: who speaks which, which methods exist, which fields a version knows.

Must not know what a method does. The era is decided for each message and nothing is remembered from
a modern one (mcp.md, Two eras in one process; mcp-wire.md 2.1, 3.1, 3.6).
"""
from __future__ import annotations

from engram.protocol.messages import INVALID_PARAMS

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
VERSIONS = LEGACY_VERSIONS + MODERN_VERSIONS
LATEST_LEGACY = LEGACY_VERSIONS[-1]
MODERN = MODERN_VERSIONS[-1]
BATCH_VERSION = "2025-03-26"

_NAMESPACE = "io.modelcontextprotocol/"
PROTOCOL_VERSION = _NAMESPACE + "protocolVersion"
CLIENT_CAPABILITIES = _NAMESPACE + "clientCapabilities"
CLIENT_INFO = _NAMESPACE + "clientInfo"
SERVER_INFO = _NAMESPACE + "serverInfo"
LOG_LEVEL = _NAMESPACE + "logLevel"
_LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # legacy only: the modern era must not send it

LIST, STRING, OBJECT, STRINGS, LEVEL = "list", "string", "object", "strings", "level"

# What each method's params hold: name -> (kind, required). Other members are let through.
_COMMON = {
    "tools/list": {"cursor": (LIST, False)},
    "tools/call": {"name": (STRING, True), "arguments": (OBJECT, False)},
    "resources/list": {"cursor": (LIST, False)},
    "resources/templates/list": {"cursor": (LIST, False)},
    "resources/read": {"uri": (STRING, True)},
    "prompts/list": {"cursor": (LIST, False)},
    "prompts/get": {"name": (STRING, True), "arguments": (STRINGS, False)},
}
METHODS = {
    "legacy": {
        **_COMMON,
        "initialize": {"protocolVersion": (STRING, True), "capabilities": (OBJECT, True), "clientInfo": (OBJECT, True)},
        "ping": {},
        "logging/setLevel": {"level": (LEVEL, True)},
    },
    "modern": {
        **_COMMON,
        "server/discover": {},
        "tools/call": {**_COMMON["tools/call"], "inputResponses": (OBJECT, False), "requestState": (STRING, False)},
    },
}

# Results that carry how long they may be kept (mcp-wire.md 3.2): milliseconds and who may share them.
CACHE = {
    "server/discover": (3_600_000, "public"),
    "tools/list": (300_000, "public"),
    "prompts/list": (300_000, "public"),
    "resources/templates/list": (300_000, "public"),
    "resources/list": (0, "private"),
    "resources/read": (0, "private"),
}

# The version that brought each field (mcp-wire.md 2.1, from the schemas).
FIELDS = {
    "implementation": {"name": "2024-11-05", "version": "2024-11-05", "title": "2025-06-18"},
    "tool": {
        "name": "2024-11-05", "title": "2025-06-18", "description": "2024-11-05", "inputSchema": "2024-11-05",
        "outputSchema": "2025-06-18", "annotations": "2025-03-26", "_meta": "2025-06-18",
    },
    "result": {"content": "2024-11-05", "structuredContent": "2025-06-18", "isError": "2024-11-05"},
    "resource": {
        "uri": "2024-11-05", "name": "2024-11-05", "title": "2025-06-18", "description": "2024-11-05",
        "mimeType": "2024-11-05",
    },
    "template": {
        "uriTemplate": "2024-11-05", "name": "2024-11-05", "title": "2025-06-18", "description": "2024-11-05",
        "mimeType": "2024-11-05",
    },
    "prompt": {"name": "2024-11-05", "title": "2025-06-18", "description": "2024-11-05", "arguments": "2024-11-05"},
    "elicitation": {"mode": "2025-11-25", "message": "2025-06-18", "requestedSchema": "2025-06-18"},
}


def keep(kind, row, version):
    """Return the members of `row` that `version` knows for this kind; members that are None are left out."""
    fields = FIELDS[kind]
    at = VERSIONS.index(version)
    return {name: value for name, value in row.items()
            if value is not None and VERSIONS.index(fields[name]) <= at}


def is_modern(method, params):
    """Tell a modern request from a legacy one by what it carries itself."""
    if method == "server/discover":
        return True
    meta = params.get("_meta")
    return isinstance(meta, dict) and any(key in meta for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO))


def envelope_fault(params):
    """Return what is wrong with a modern request's `_meta` as (code, message, data), or None.

    Keys present, then their types, then the version: the order of the official SDKs.
    """
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    missing = [key for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if key not in meta]
    if missing:
        return INVALID_PARAMS, f"Invalid params: _meta lacks {' and '.join(missing)}", None
    version = meta[PROTOCOL_VERSION]
    if not isinstance(version, str):
        return INVALID_PARAMS, f"Invalid params: {PROTOCOL_VERSION} must be a string", None
    if version not in MODERN_VERSIONS:
        return (UNSUPPORTED_VERSION, "Unsupported protocol version",
                {"supported": list(MODERN_VERSIONS), "requested": version})
    for key in (CLIENT_CAPABILITIES, CLIENT_INFO):
        if not isinstance(meta.get(key, {}), dict):
            return INVALID_PARAMS, f"Invalid params: {key} must be an object", None
    if meta.get(LOG_LEVEL, "info") not in _LOG_LEVELS:
        return INVALID_PARAMS, f"Invalid params: {LOG_LEVEL} is none of {', '.join(_LOG_LEVELS)}", None
    return None


def params_fault(params, wanted):
    """Return what is wrong with a method's params as text, or None. An optional null counts as absent."""
    if not isinstance(params.get("_meta", {}), dict) and params["_meta"] is not None:
        return "_meta must be an object"
    for name, (kind, required) in wanted.items():
        value = params.get(name)
        if value is None:
            if required:
                return f"{name} is missing"
        elif kind is LIST:
            return f"{name} is none that this server gave out"  # every list is one page
        elif kind is STRING and not isinstance(value, str):
            return f"{name} must be a string"
        elif kind in (OBJECT, STRINGS) and not isinstance(value, dict):
            return f"{name} must be an object"
        elif kind is LEVEL and value not in _LOG_LEVELS:
            return f"{name} is none of {', '.join(_LOG_LEVELS)}"
        elif kind is STRINGS and not all(isinstance(item, str) for item in value.values()):
            return f"{name} must hold strings"
    return None


def negotiate(offered):
    """Return the version that answers an `initialize`: the offered one when it is ours, else the latest legacy one."""
    return offered if offered in LEGACY_VERSIONS else LATEST_LEGACY


def can_show_forms(capabilities, version):
    """Tell whether a client can be asked through a form: declared, in a version that has it.

    An empty declaration means forms; one that names only `url` means no forms (mcp-wire.md 2.5).
    """
    if VERSIONS.index(version) < VERSIONS.index("2025-06-18"):
        return False
    declared = capabilities.get("elicitation")
    return isinstance(declared, dict) and ("form" in declared or "url" not in declared)
