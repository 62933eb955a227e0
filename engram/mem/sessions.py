"""Sessions: who was at work when something was noted.

Ids are the caller's; a save without one goes to the session of this process (session.md), which is made on demand. Must not
know tools. Functions run inside the caller's transaction.
"""

from __future__ import annotations

import os

from engram.mem import limits, privacy, stamps
from engram.mem.refusals import Refusal, too_long


def own(tier, connection, project, path):
    """Return the id of this process's session for a project, made when there is none yet."""
    if tier.session_id:
        row = find(connection, tier.session_id)
        if row is not None and row["ended_at"] is None and row["project"] in ("", project):
            return tier.session_id
    if tier.manual:
        id = f"manual-save-{project}"
        register(connection, id, project, path or tier.folder, tier.clock(), owned=True)
        return id
    id = tier.made.get(project)
    if id is None or find(connection, id) is None:
        id = f"{stamps.write(tier.clock()).replace('-', '').replace(':', '').replace(' ', '-')}-{os.urandom(4).hex()}"
        register(connection, id, project, path or tier.folder, tier.clock())
        tier.made[project] = id
    return id


def named(connection, session_id, project, directory, now):
    """Return the session that a write names; one without a project gets that of its first write."""
    row = find(connection, session_id)
    if row is not None and not row["project"]:
        connection.execute("UPDATE sessions SET project = ? WHERE id = ?", (project, session_id))
    connection.execute(
        "UPDATE sessions SET runtime_lease_expires_at = ? WHERE id = ?", (stamps.write(now + limits.LEASE_SECONDS), session_id)
    )
    return session_id


def register(connection, id, project, directory, now, *, owned=False):
    """Make a session, or renew the lease of the one that is there; an `owned` one is the project's, not a process's."""
    connection.execute(
        "INSERT INTO sessions (id, project, directory, started_at, runtime_lease_expires_at, ownership_mode) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET runtime_lease_expires_at = excluded.runtime_lease_expires_at",
        (id, project, directory, stamps.write(now), stamps.write(now + limits.LEASE_SECONDS), "project_owned" if owned else "shared"),
    )


def find(connection, id):
    """Return the row of a session, or None."""
    return connection.execute("SELECT * FROM sessions WHERE id = ?", (id,)).fetchone()


def checked_id(id):
    """Return a session id that a caller gave, trimmed. Raises Refusal for one that can't be kept."""
    id = id.strip()
    if not id:
        raise Refusal("missing_argument", "`id` is empty.", argument="id")
    if len(id) > limits.NAME:
        raise too_long("the session id", len(id), limits.NAME)
    if not id.isprintable() or privacy.clean(id)[0] != id:
        raise Refusal("invalid_argument", "the session id has control characters, or looks like a secret.", argument="id")
    return id


def start(tier, connection, id, project, directory):
    """Register a session for this process. Raises Refusal (session_already_ended, session_project_mismatch)."""
    row = find(connection, id)
    if row is not None:
        if row["ended_at"] is not None:
            raise Refusal(
                "session_already_ended", f"the session `{id}` ended at {row['ended_at']}.", hint="Start one with another id.", session_id=id
            )
        if row["project"] and project and row["project"] != project:
            raise Refusal(
                "session_project_mismatch",
                f"the session `{id}` belongs to {row['project']}, not to {project}.",
                session_id=id,
                session_project=row["project"],
            )
    register(connection, id, project, directory, tier.clock())
    if row is not None and not row["project"]:
        connection.execute("UPDATE sessions SET project = ? WHERE id = ?", (project, id))
    tier.session_id = id
    return row is None


def end(tier, connection, id, summary):
    """End a session by id and return whether it was open; an unknown id is fine."""
    done = connection.execute(
        "UPDATE sessions SET ended_at = ?, summary = coalesce(?, summary) WHERE id = ? AND ended_at IS NULL",
        (stamps.write(tier.clock()), summary or None, id),
    ).rowcount
    if tier.session_id == id:
        tier.session_id = ""
    for project in [project for project, made in tier.made.items() if made == id]:
        del tier.made[project]
    return bool(done)


def recent(connection, project, count):
    """Return the newest sessions of a project, with the number of their live observations."""
    return connection.execute(
        "SELECT s.*, (SELECT count(*) FROM observations o WHERE o.session_id = s.id AND o.deleted_at IS NULL) AS observations "
        "FROM sessions s WHERE s.project = ? ORDER BY s.started_at DESC, s.id DESC LIMIT ?",
        (project, count),
    ).fetchall()
