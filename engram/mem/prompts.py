"""Prompts: what the user asked, kept beside what came of it.

Runs inside the caller's transaction; must not know tools.
"""

from __future__ import annotations

from engram.mem import observations, stamps


def save(connection, now, *, session_id, content, project):
    """Store a prompt and return (row, whether it is new); the newest of a session is not stored twice."""
    last = connection.execute("SELECT * FROM prompts WHERE session_id = ? ORDER BY id DESC LIMIT 1", (session_id,)).fetchone()
    if last is not None and last["content"] == content and last["project"] == project:
        return last, False
    sync_id = observations.new_id("prompt")
    connection.execute(
        "INSERT INTO prompts (sync_id, session_id, content, project, created_at) VALUES (?, ?, ?, ?, ?)",
        (sync_id, session_id, content, project, stamps.write(now)),
    )
    return find(connection, sync_id), True


def find(connection, sync_id):
    """Return a prompt by its sync id, or None."""
    return connection.execute("SELECT * FROM prompts WHERE sync_id = ?", (sync_id,)).fetchone()


def recent(connection, project, count):
    """Return the newest prompts of a project."""
    return connection.execute(
        "SELECT * FROM prompts WHERE project = ? ORDER BY created_at DESC, id DESC LIMIT ?", (project, count)
    ).fetchall()
