"""The session tier as one JSON document, in the form that others read (export version 0.2.0, mem-tools.md 2.13).

Reads inside the caller's transaction; must not know files. Beside the known members stand ours, which others skip: the
kept revisions, the prompt that a save came from, the names that were merged. Null and empty members are left out.
"""

from __future__ import annotations

from engram.mem import stamps

VERSION = "0.2.0"
SESSION = ("id", "project", "ownership_mode", "directory", "started_at", "ended_at", "summary")
OBSERVATION = (
    "id",
    "sync_id",
    "session_id",
    "type",
    "title",
    "content",
    "tool_name",
    "project",
    "scope",
    "topic_key",
    "revision_count",
    "duplicate_count",
    "last_seen_at",
    "review_after",
    "prompt_id",
    "created_at",
    "updated_at",
    "deleted_at",
    "pinned",
)
PROMPT = ("id", "sync_id", "session_id", "content", "project", "created_at")
RELATION = (
    "sync_id",
    "source_id",
    "target_id",
    "relation",
    "reason",
    "evidence",
    "confidence",
    "judgment_status",
    "marked_by_actor",
    "marked_by_kind",
    "marked_by_model",
    "session_id",
    "superseded_at",
    "superseded_by_relation_sync_id",
    "created_at",
    "updated_at",
)
REVISION = ("revision", "session_id", "type", "title", "content", "written_at", "replaced_at")
KEPT = frozenset(("id", "project", "directory", "content", "title", "type", "pinned"))  # members that stay although they are empty


def document(connection, now, project=None):
    """Return the export of all projects, or of one, as a mapping; soft-deleted rows are in it."""
    where, values = (" WHERE project = ?", (project,)) if project else ("", ())
    rows = connection.execute(f"SELECT * FROM observations{where} ORDER BY id", values).fetchall()
    asked = connection.execute(f"SELECT * FROM prompts{where} ORDER BY id", values).fetchall()
    used = {row["session_id"] for row in (*rows, *asked)}
    held = connection.execute("SELECT * FROM sessions ORDER BY started_at, id").fetchall()
    made = {
        "version": VERSION,
        "exported_at": stamps.write(now) + ".000000000",
        "sessions": [_members(row, SESSION) for row in held if not project or row["project"] == project or row["id"] in used],
        "observations": [{**_members(row, OBSERVATION), "pinned": bool(row["pinned"])} for row in rows],
        "prompts": [_members(row, PROMPT) for row in asked],
    }
    ids = {row["sync_id"] for row in rows}
    related = [
        _members(row, RELATION)
        for row in connection.execute("SELECT * FROM relations ORDER BY id")
        if not project or row["source_id"] in ids or row["target_id"] in ids
    ]
    by_id = {row["id"]: row["sync_id"] for row in rows}
    kept = [
        {"observation_sync_id": by_id[row["observation_id"]], **_members(row, REVISION)}
        for row in connection.execute("SELECT * FROM revisions ORDER BY observation_id, revision")
        if row["observation_id"] in by_id
    ]
    merged = [dict(row) for row in connection.execute(f"SELECT * FROM aliases{where} ORDER BY alias", values)]
    for name, found in (("relations", related), ("revisions", kept), ("aliases", merged)):
        if found:
            made[name] = found
    return made


def _members(row, names):
    return {name: row[name] for name in names if row[name] is not None and (row[name] != "" or name in KEPT)}
