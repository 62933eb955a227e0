"""How observations bear on each other: pairs that a save finds, verdicts on them, and the lines that show them.

Runs inside the caller's transaction; must not know tools. Verbs, statuses and the prefixes of the lines are those that
hosts know (mem-tools.md 1.4, 2.12).
"""

from __future__ import annotations

from engram.mem import limits, observations, searching, stamps
from engram.mem.refusals import Refusal

VERBS = ("related", "compatible", "scoped", "conflicts_with", "supersedes", "not_conflict")
SHARED = 0.34  # part of a new title's words that an older row must have to be asked about


def find_candidates(connection, now, row):
    """Write a pending relation for each of the rows most like a new one; return [(row, score, relation sync id)]."""
    query = searching.parse(row["title"])
    filters = searching.Filters(row["project"], row["scope"])
    found = []
    for other, score in searching.alike(connection, query, filters, limit=8, now=now):
        if other["id"] == row["id"] or len(found) == limits.CANDIDATES or between(connection, row["sync_id"], other["sync_id"]):
            continue
        if searching.share(query, f"{other['title']} {other['content']}") < SHARED:
            continue
        found.append((other, round(score, 3), _add(connection, now, row["sync_id"], other["sync_id"])))
    return found


def between(connection, one, other):
    """Return the relation rows of a pair, in either direction."""
    return connection.execute(
        "SELECT * FROM relations WHERE (source_id = ? AND target_id = ?) OR (source_id = ? AND target_id = ?) ORDER BY id",
        (one, other, other, one),
    ).fetchall()


def judge(connection, now, *, judgment_id, relation, reason=None, evidence=None, confidence=None, session_id=None):
    """Write the verdict on a pair and return the relation row; judging again overwrites. Raises Refusal."""
    row = connection.execute("SELECT * FROM relations WHERE sync_id = ?", (judgment_id,)).fetchone()
    if row is None:
        raise Refusal("not_found", f"there is no judgment `{judgment_id}`.", hint="mem_save names the ids of what is to be judged.")
    check(relation, confidence)
    projects = {end["project"] for end in (_end(connection, row["source_id"]), _end(connection, row["target_id"])) if end is not None}
    if len(projects) > 1:
        raise Refusal("project_mismatch", "the two observations belong to different projects.", projects=sorted(projects))
    connection.execute(
        "UPDATE relations SET relation = ?, reason = ?, evidence = ?, confidence = ?, judgment_status = 'judged', "
        "marked_by_actor = 'agent', marked_by_kind = 'agent', session_id = ?, updated_at = ? WHERE sync_id = ?",
        (relation, reason, evidence, confidence, session_id, stamps.write(now), judgment_id),
    )
    return connection.execute("SELECT * FROM relations WHERE sync_id = ?", (judgment_id,)).fetchone()


def compare(connection, now, one, other, *, relation, confidence, reasoning, model=None):
    """Write a verdict on any pair of rows and return the relation row: one per unordered pair. Raises Refusal."""
    check(relation, confidence)
    if one["id"] == other["id"]:
        raise Refusal("invalid_argument", "memory_id_a and memory_id_b are the same.", argument="memory_id_b")
    if one["project"] != other["project"]:
        raise Refusal(
            "project_mismatch", "the two observations belong to different projects.", projects=sorted((one["project"], other["project"]))
        )
    pair = between(connection, one["sync_id"], other["sync_id"])
    sync_id = pair[0]["sync_id"] if pair else _add(connection, now, one["sync_id"], other["sync_id"])
    connection.execute(
        "UPDATE relations SET source_id = ?, target_id = ?, relation = ?, reason = ?, confidence = ?, judgment_status = 'judged', "
        "marked_by_actor = 'engram', marked_by_kind = 'system', marked_by_model = ?, updated_at = ? WHERE sync_id = ?",
        (one["sync_id"], other["sync_id"], relation, reasoning, confidence, model, stamps.write(now), sync_id),
    )
    return connection.execute("SELECT * FROM relations WHERE sync_id = ?", (sync_id,)).fetchone()


def check(relation, confidence):
    """Raise Refusal for an unknown verb or a confidence outside 0 to 1."""
    if relation not in VERBS:
        raise Refusal("invalid_argument", f"`relation` is none of {', '.join(VERBS)}.", argument="relation")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Refusal("invalid_argument", "`confidence` is not between 0 and 1.", argument="confidence")


def of(connection, sync_id):
    """Return {"as_source", "as_target"}: the relations of a row that still say something, with their other ends."""
    found = {"as_source": [], "as_target": []}
    for row in connection.execute(
        "SELECT * FROM relations WHERE (source_id = ? OR target_id = ?) AND judgment_status IN ('pending', 'judged') "
        "AND relation <> 'not_conflict' ORDER BY id",
        (sync_id, sync_id),
    ):
        side, other = ("as_source", row["target_id"]) if row["source_id"] == sync_id else ("as_target", row["source_id"])
        end = _end(connection, other)
        found[side].append(
            {
                "sync_id": row["sync_id"],
                "relation": row["relation"],
                "judgment_status": row["judgment_status"],
                "id": end["id"] if end is not None else None,
                "title": end["title"] if end is not None and end["deleted_at"] is None else "deleted",
            }
        )
    return found


def lines(found):
    """Return the lines that show relations in a text; hosts read their prefixes."""
    out = []
    for side, rows in found.items():
        for row in rows:
            id = row["id"] if row["id"] is not None else "?"
            if row["judgment_status"] == "pending":
                out.append(f"conflict: contested by #{id} (pending)")
            elif row["relation"] == "supersedes":
                out.append(f"{'supersedes' if side == 'as_source' else 'superseded_by'}: #{id} ({_title(row)})")
            elif row["relation"] == "conflicts_with":
                out.append(f"conflicts: #{id} ({_title(row)})")
    return list(dict.fromkeys(out))


def _title(row):
    return " ".join(row["title"].split())


def _end(connection, sync_id):
    return connection.execute("SELECT id, title, project, deleted_at FROM observations WHERE sync_id = ?", (sync_id,)).fetchone()


def _add(connection, now, source, target):
    sync_id, stamp = observations.new_id("rel"), stamps.write(now)
    connection.execute(
        "INSERT INTO relations (sync_id, source_id, target_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        (sync_id, source, target, stamp, stamp),
    )
    return sync_id
