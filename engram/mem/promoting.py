"""From what an agent noted to what a human may approve: an observation as a proposal (session.md, "How it fits").

Goes through the one proposal path and writes nothing itself; must not know terminals or MCP.
"""

from __future__ import annotations

from engram import propose
from engram.mem import observations
from engram.mem.refusals import Refusal

PREFIX = "mem:"
TYPES = {
    "decision": "knowledge",
    "architecture": "knowledge",
    "discovery": "knowledge",
    "bugfix": "knowledge",
    "config": "knowledge",
    "learning": "knowledge",
    "passive": "knowledge",
    "session_summary": "knowledge",
    "convention": "rule",
    "preference": "rule",
    "policy": "rule",
    "guideline": "rule",
}


def observation_id(word):
    """Return the number in `mem:12`, or None when `word` doesn't name an observation."""
    digits = word[len(PREFIX) :] if word.startswith(PREFIX) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def proposal(tier, id, *, place, scope=None, type=None, keep=True, explain=False):
    """Return the Proposal that makes observation `id` a durable memory of `place`. Raises Refusal (not_found)."""
    with tier.database.reading() as connection:
        row = observations.get(connection, id)
    if not row["content"].strip():
        raise Refusal("invalid_argument", f"observation #{id} has no content to propose.")
    title, content = row["title"].strip(), row["content"].strip()
    if " ".join(title.split()) not in " ".join(content.split()):
        content = f"{title.rstrip('.')}{': ' if len(content.splitlines()) == 1 else '.' + chr(10)}{content}"
    origin = f"Noted by an agent as observation {PREFIX}{id} of {row['project'] or 'no project'} on {row['created_at'][:10]}."
    return propose.save(place, content, type=type or TYPES.get(row["type"]), scope=scope, context=origin, keep=keep, explain=explain)
