"""The limits of the session tier in one place (mem-tools.md 2.6, session.md). Beyond one a call is refused, never cut."""

from __future__ import annotations

CONTENT = 50_000  # characters of an observation, a prompt or a summary
TITLE = 1_000
TOPIC = 120  # bytes of a topic key
TOPIC_SEGMENT = 100
NAME = 200  # characters of a project name, a session id, a type
PASSIVE = 200_000  # characters that passive capture reads at once
REASON = 10_000  # characters of a judgment's reason or evidence

SEARCH_DEFAULT, SEARCH_MOST = 10, 20
CONTEXT_BYTES, CONTEXT_MOST_BYTES, CONTEXT_LEAST_BYTES = 16_384, 65_536, 512
CONTEXT_SESSIONS, CONTEXT_PROMPTS, CONTEXT_PINNED, CONTEXT_ROWS = 5, 10, 20, 20
REVIEW_DEFAULT, REVIEW_MOST = 10, 100
PREVIEW = 300
SHORT_PREVIEW = 200
TIMELINE_DEFAULT, TIMELINE_MOST = 5, 50
TIMELINE_ENTRY, TIMELINE_FOCUS = 150, 500
CANDIDATES = 3
HISTORY = 200_000  # characters of earlier revisions that one answer shows in full

DEDUPE_SECONDS = 15 * 60
LEASE_SECONDS = 30 * 60
TOKEN_SECONDS = 300
NUDGE_SECONDS = 10 * 60
NUDGE_CALLS = 5
