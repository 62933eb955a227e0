"""Topic keys: one subject, one key, so that a later save updates the earlier one (mem-tools.md 2.3).

Pure; must not know rows.
"""

from __future__ import annotations

import re

from engram.files import sha256
from engram.mem import limits
from engram.mem.privacy import without_private
from engram.mem.refusals import too_long

FAMILIES = (
    ("architecture", ("architecture", "design", "adr", "refactor")),
    ("bug", ("bug", "bugfix", "fix", "incident", "hotfix")),
    ("decision", ("decision",)),
    ("pattern", ("pattern", "convention", "guideline")),
    ("config", ("config", "setup", "infra", "infrastructure", "ci")),
    ("discovery", ("discovery", "investigation", "root_cause")),
    ("learning", ("learning", "learn")),
    ("session", ("session_summary",)),
)
# What a type of no family says by the words of its text; whole words, unlike a search for substrings ("prefix").
CLUES = (
    ("bug", "bug|bugs|fix|fixed|fixes|error|crash|crashed|broken|incident|regression"),
    ("architecture", "architecture|design|refactor|refactored|adr"),
    ("decision", "decision|decided|decide|chose|choose"),
    ("pattern", "pattern|convention|guideline"),
    ("config", "config|configuration|setup|environment|env|infra"),
    ("discovery", "discovery|discovered|found|investigation"),
    ("learning", "learned|learning|lesson"),
)


def canonical(key):
    """Return the stored form of a topic key. Raises Refusal when it is too long."""
    made = re.sub(r"\s+", "-", key.strip().lower())
    size = len(made.encode("utf-8", "surrogatepass"))
    if size > limits.TOPIC:
        raise too_long("`topic_key`", size, limits.TOPIC, "bytes")
    return made


def suggest(type="", title="", content=""):
    """Return a key `family/segment` for a subject; the same subject always gives the same key."""
    title, content = without_private(title)[0], without_private(content)[0]
    family = _family(type.strip().lower(), f"{title} {content}")
    source = title.strip() or " ".join(content.split()[:8])
    segment = re.sub("[^a-z0-9]+", "-", source.lower()).strip("-")
    if segment.startswith(family + "-"):
        segment = segment[len(family) + 1 :]
    segment = segment[: limits.TOPIC_SEGMENT - len(family) - 1].strip("-")
    if source.isascii():
        segment = segment or "general"
    else:
        # letters beyond ASCII are gone from the segment: the hash keeps two subjects apart
        segment = f"{segment[: limits.TOPIC_SEGMENT - len(family) - 17]}-u-{sha256(source.encode('utf-8', 'surrogatepass'))[:12]}".lstrip(
            "-"
        )
    return f"{family}/{segment}"


def _family(type, words):
    for family, types in FAMILIES:
        if type in types:
            return family
    for family, clue in CLUES:
        if re.search(rf"\b(?:{clue})\b", words, re.I):
            return family
    return re.sub("[^a-z0-9]+", "-", type).strip("-") if type not in ("", "manual") else "topic"
