"""Observations: rows made, found again, updated, deleted; the earlier text of a changed one is kept.

Runs inside the caller's transaction and keeps the term index in step. Must not know projects, sessions or tools: it is
told them. Texts come in clean (`privacy`).
"""

from __future__ import annotations

import os

from engram.files import sha256
from engram.mem import index, limits, stamps
from engram.mem.refusals import not_found

MONTHS = {"decision": 6, "policy": 12, "preference": 3}  # until a row asks to be reviewed (mem-tools.md 2.12)
SCOPES = ("project", "personal", "global")


def insert(connection, now, *, session_id, type, title, content, project, scope, topic_key=None, tool_name=None, prompt_id=None):
    """Add a row and return it."""
    stamp = stamps.write(now)
    review = stamps.months_later(stamp, MONTHS[type]) if type in MONTHS else None
    id = connection.execute(
        "INSERT INTO observations (sync_id, session_id, type, title, content, tool_name, project, scope, topic_key, normalized_hash, "
        "last_seen_at, review_after, prompt_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new_id("obs"),
            session_id,
            type,
            title,
            content,
            tool_name,
            project,
            scope,
            topic_key,
            content_hash(content),
            stamp,
            review,
            prompt_id,
            stamp,
            stamp,
        ),
    ).lastrowid
    row = get(connection, id)
    index.add(connection, row)
    return row


def same_topic(connection, topic_key, project, scope):
    """Return the newest live row of a topic, or None; a topic is one per project and scope (case DB-07)."""
    return connection.execute(
        "SELECT * FROM observations WHERE topic_key = ? AND project = ? AND scope = ? AND deleted_at IS NULL ORDER BY id DESC LIMIT 1",
        (topic_key, project, scope),
    ).fetchone()


def same_text(connection, now, content, title, type, project, scope):
    """Return the live row that said the same within the last 15 minutes, or None (mem-tools.md 2.4)."""
    return connection.execute(
        "SELECT * FROM observations WHERE normalized_hash = ? AND project = ? AND scope = ? AND type = ? AND title = ? "
        "AND deleted_at IS NULL AND created_at >= ? ORDER BY id DESC LIMIT 1",
        (content_hash(content), project, scope, type, title, stamps.write(now - limits.DEDUPE_SECONDS)),
    ).fetchone()


def seen_again(connection, now, id):
    """Count one more sighting of a row and return it."""
    stamp = stamps.write(now)
    connection.execute(
        "UPDATE observations SET duplicate_count = duplicate_count + 1, last_seen_at = ?, updated_at = ? WHERE id = ?", (stamp, stamp, id)
    )
    return get(connection, id)


def revise(connection, now, old, **changes):
    """Change columns of a row, keep what it said before, and return it; `revision_count` goes up."""
    stamp = stamps.write(now)
    if any(old[name] != changes.get(name, old[name]) for name in ("type", "title", "content")):
        connection.execute(
            "INSERT OR REPLACE INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (old["id"], old["revision_count"], old["session_id"], old["type"], old["title"], old["content"], old["updated_at"], stamp),
        )
    changes = {
        **changes,
        "normalized_hash": content_hash(changes.get("content", old["content"])),
        "revision_count": old["revision_count"] + 1,
        "last_seen_at": stamp,
        "updated_at": stamp,
    }
    connection.execute(
        f"UPDATE observations SET {', '.join(f'{name} = ?' for name in changes)} WHERE id = ?", (*changes.values(), old["id"])
    )
    row = get(connection, old["id"])
    index.put(connection, row)
    return row


def revisions(connection, id):
    """Return the kept earlier texts of a row, newest first."""
    return connection.execute("SELECT * FROM revisions WHERE observation_id = ? ORDER BY revision DESC", (id,)).fetchall()


def get(connection, id, *, deleted=False):
    """Return a row; soft-deleted ones count as missing. Raises Refusal (not_found)."""
    row = None
    if 0 < id < 1 << 63:
        row = connection.execute("SELECT * FROM observations WHERE id = ?", (id,)).fetchone()
    if row is None or (row["deleted_at"] is not None and not deleted):
        raise not_found("observation", id)
    return row


def delete(connection, now, id, *, hard=False):
    """Delete a row: marked, or with `hard` gone for good with its revisions; relations to it become orphaned then."""
    row = get(connection, id, deleted=hard)
    if hard:
        connection.execute(
            "UPDATE relations SET judgment_status = 'orphaned', updated_at = ? WHERE source_id = ? OR target_id = ?",
            (stamps.write(now), row["sync_id"], row["sync_id"]),
        )
        connection.execute("DELETE FROM observations WHERE id = ?", (id,))
    else:
        connection.execute(
            "UPDATE observations SET deleted_at = ?, updated_at = ? WHERE id = ?", (stamps.write(now), stamps.write(now), id)
        )
    index.remove(connection, id)
    return row


def pin(connection, id, pinned):
    """Pin or unpin a row and return it."""
    get(connection, id)
    connection.execute("UPDATE observations SET pinned = ? WHERE id = ?", (int(pinned), id))
    return get(connection, id)


def state(row, now):
    """Return `needs_review` once the review date has passed, else `active`."""
    return "needs_review" if row["review_after"] and row["review_after"] <= stamps.write(now) else "active"


def scope_of(word):
    """Return the scope for a caller's word; what is unknown means `project` (mem-tools.md 2.2)."""
    word = word.strip().lower()
    return word if word in SCOPES else "project"


def content_hash(content):
    """Return the identity of a text: blanks made one, case folded away (mem-tools.md 2.4)."""
    return sha256(" ".join(content.split()).lower().encode("utf-8", "surrogatepass"))


def new_id(kind):
    """Return a fresh sync id: obs-, prompt- or rel- with 16 hex digits."""
    return f"{kind}-{os.urandom(8).hex()}"
