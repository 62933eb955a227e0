"""Roles and rule variants: which memories and which wordings an agent is shown.

Settings like any other, with words of their own for agents. Must not know recall.
"""

from __future__ import annotations

from engram.errors import Result, UsageError
from engram.propose import candidates, preferences

VARIANTS = ("light", "balanced", "strict", "off")
AGAIN = "Agent action: load memories again now and replace what was loaded before."


def set_role(place, roles):
    """Set the roles that filter memories; none shows all. "status" tells the present ones."""
    if roles in ("status", ["status"]):
        now = place.settings.get("roles")
        return Result({"roles": now}, f"Roles: {', '.join(now) if now else 'none'}", place.settings.diagnostics)
    wanted = candidates.words(roles or [])
    if wanted in (["none"], ["reset"], ["all"]):
        wanted = []
    done = preferences.put(place, "roles", wanted or None)
    now = place.settings.get("roles")
    text = f"Roles are now {', '.join(now)}." if now else "Roles are now none: all memories are visible."
    return Result({"roles": now}, f"{text}\n{AGAIN}", done.diagnostics)


def set_rule_variant(place, variant):
    """Set light, balanced, strict or off; "status" tells the present one."""
    if variant == "status":
        now = place.settings.get("rule_variants.active")
        return Result({"rule_variant": now}, f"Rule variant: {now}", place.settings.diagnostics)
    if variant not in VARIANTS:
        raise UsageError(f"variant is one of {', '.join(VARIANTS)}, status.")
    done = preferences.put(place, "rule_variants.active", variant)
    now = place.settings.get("rule_variants.active")
    return Result({"rule_variant": now}, f"Rule variant is now {now}.\n{AGAIN}", done.diagnostics)
