"""What in the hosts' files would let an agent commit without its human being asked (propose.md, Approval tokens).

Reads only. Ids: host.gemini_trust, host.codex_approval, host.allow_list, host.opencode_permission.
"""
from __future__ import annotations

import fnmatch

from engram.editors import json, source
from engram.errors import EngramError, diagnostic
from engram.hosts import table
from engram.link import apply, registration

# What a host's list of tools to run unasked may call engram_commit; an entry of such a list may be a pattern.
NAMES = ("engram_commit", "mcp__engram__engram_commit", "mcp__engram", "mcp_engram_engram_commit", "engram__engram_commit",
         "engram_engram_commit", "engram:engram_commit", "engram/engram_commit", "Mcp(engram:engram_commit)")
# Where such lists stand: host, file, path of the list.
ALLOW_LISTS = (
    ("claude", "{ws}/.claude/settings.json", ("permissions", "allow")),
    ("claude", "{ws}/.claude/settings.local.json", ("permissions", "allow")),
    ("claude", "{claude}/settings.json", ("permissions", "allow")),
    ("gemini", "{ws}/.gemini/settings.json", ("tools", "allowed")),
    ("gemini", "{gemini}/settings.json", ("tools", "allowed")),
    ("gemini", "{ws}/.gemini/settings.json", ("allowedTools",)),
    ("gemini", "{gemini}/settings.json", ("allowedTools",)),
    ("cursor", "{ws}/.cursor/cli.json", ("permissions", "allow")),
    ("cursor", "{cursor}/cli-config.json", ("permissions", "allow")),
    ("cursor", "{cursor}/permissions.json", ("mcpAllowlist",)),
)
# Keys of a server's own entry by which hosts run tools unasked: true, or a list of tools.
UNASKED = ("trust", "alwaysAllow", "autoApprove", "autoAllow")


def in_entry(entry):
    """Yield what in the entry itself makes the host run engram_commit without asking."""
    what = f"{entry.host.title} would run engram_commit without asking you"
    for key in UNASKED:
        value = entry.value.get(key)
        if value is True or isinstance(value, list) and any(map(_covers, value)):
            name = "host.gemini_trust" if entry.host.name in ("gemini", "antigravity") and key == "trust" else "host.allow_list"
            yield diagnostic(name, "warning", f"{what}: `{key}` in the entry of Engram.", file=entry.file, remediation=f"Take `{key}` out.")
    if entry.host.shape != "toml":
        return
    tool = _inner(_inner(entry.value, "tools"), "engram_commit")
    if (tool.get("approval_mode") or entry.value.get("default_tools_approval_mode")) == "approve":
        yield diagnostic("host.codex_approval", "warning", f"{what}: its approval_mode is `approve`.", file=entry.file,
                         remediation="Run engram link codex --global --commit-approval prompt.")


def _inner(value, key):
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _covers(pattern):
    return isinstance(pattern, str) and any(fnmatch.fnmatchcase(name, pattern) for name in NAMES)


def in_lists(sites):
    """Yield the hosts' lists of tools to run unasked that name engram_commit, by whatever pattern."""
    done = set()
    for site in sites:
        for name, template, keys in ALLOW_LISTS:
            path, host = site.path(template), table.find(name)
            if (path, keys) in done or template.startswith("{ws}") == site.user:
                continue
            done.add((path, keys))
            for word in _list(path, host.dialect, keys):
                if _covers(word):
                    yield diagnostic("host.allow_list", "warning", f"{host.title} would run engram_commit without asking you: `{word}` in "
                                     f"{'.'.join(keys)}.", file=path, remediation="Take it out, or name the other tools one by one.")


def _list(path, dialect, keys):
    try:
        data = apply.read(path)
        value = json.Document(source.decode(data), dialect).value(keys) if data else None
    except EngramError:
        return []
    return value if isinstance(value, list) else []


def in_opencode(sites):
    """OpenCode runs what no permission names (hosts.md, 6); the last pattern that fits counts."""
    host = table.find("opencode")
    linked, mode, where = False, None, None
    for site in reversed(sites):  # the workspace's file wins
        for template in (host.user_mcp if site.user else host.workspace_mcp):
            path = site.path(template)
            try:
                data = apply.read(path)
                doc = json.Document(source.decode(data), host.dialect) if data else None
                value = doc.value(()) if doc is not None and doc.root is not None else None
            except EngramError:
                continue
            if not isinstance(value, dict):
                continue
            linked = linked or isinstance(value.get("mcp"), dict) and registration.is_ours(value["mcp"].get("engram"))
            rules = value.get("permission")
            rules = {"*": rules} if isinstance(rules, str) else rules
            for pattern, said in rules.items() if isinstance(rules, dict) else ():
                if isinstance(said, str) and fnmatch.fnmatchcase("engram_engram_commit", pattern):
                    mode, where = said, (path, pattern)
    if mode == "allow" and where[1] != "*":
        yield diagnostic("host.allow_list", "warning", f"OpenCode would run engram_commit without asking you: permission `{where[1]}`.",
                         file=where[0], remediation='Set "engram_engram_commit": "ask".')
    elif linked and mode not in ("ask", "deny"):
        yield diagnostic("host.opencode_permission", "info", "OpenCode runs any tool unasked unless told otherwise, engram_commit too.",
                         remediation='Add to its config: "permission": {"engram_engram_commit": "ask"}.')
