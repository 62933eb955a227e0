"""The functions under the tools that look after the session tier: verdicts, reviews, merging projects.

Each takes the Tier and plain arguments and returns a Result. Must not know MCP or terminals (mem-tools.md 1.4, 2.12).
"""

from __future__ import annotations

from engram.mem import answers, index, intake, limits, names, observations, privacy, projects, relations, stamps
from engram.mem.refusals import Refusal, too_long

UNTOUCHABLE = "inbox"


def judge(tier, *, judgment_id, relation, reason="", evidence="", confidence=None, session_id="", given_up=lambda: False):
    """Give the verdict on a pair that a save found (mem_judge)."""
    relations.check(relation, confidence)
    with tier.database.writing(given_up) as connection:
        row = relations.judge(
            connection,
            tier.clock(),
            judgment_id=judgment_id,
            relation=relation,
            reason=_text("reason", reason),
            evidence=_text("evidence", evidence),
            confidence=confidence,
            session_id=intake.word("session_id", session_id) or None,
        )
        found = _project_of(tier, connection, row)
    return answers.answer(found, f"Judged {judgment_id}: {relation}.", relation=_relation(row))


def compare(tier, *, memory_id_a, memory_id_b, relation, confidence, reasoning, model="", given_up=lambda: False):
    """Keep a verdict on any pair of observations (mem_compare)."""
    relations.check(relation, confidence)
    with tier.database.writing(given_up) as connection:
        one, other = observations.get(connection, memory_id_a), observations.get(connection, memory_id_b)
        row = relations.compare(
            connection,
            tier.clock(),
            one,
            other,
            relation=relation,
            confidence=confidence,
            reasoning=_text("reasoning", reasoning),
            model=_text("model", model),
        )
        found = projects.Resolved(one["project"], "stored_project", "")
    return answers.answer(
        found, f"Kept {row['sync_id']}: #{memory_id_a} {relation} #{memory_id_b}.", sync_id=row["sync_id"], relation=_relation(row)
    )


def review(tier, *, action, project="", limit=limits.REVIEW_DEFAULT, observation_id=None, given_up=lambda: False):
    """List what is due for review, or mark one as reviewed (mem_review)."""
    action = action.strip().lower()
    if action not in ("list", "mark_reviewed"):
        raise Refusal("invalid_argument", "`action` is neither list nor mark_reviewed.", argument="action")
    now = tier.clock()
    if action == "mark_reviewed":
        if observation_id is None:
            raise Refusal("missing_argument", "`observation_id` is required to mark one as reviewed.", argument="observation_id")
        with tier.database.writing(given_up) as connection:
            row = observations.get(connection, observation_id)
            months, stamp = observations.MONTHS.get(row["type"]), stamps.write(now)
            connection.execute(
                "UPDATE observations SET review_after = ?, updated_at = ? WHERE id = ?",
                (stamps.months_later(stamp, months) if months else None, stamp, row["id"]),
            )
            row = observations.get(connection, observation_id)
        until = f"; next review {row['review_after'][:10]}" if row["review_after"] else ""
        return answers.answer(
            projects.Resolved(row["project"], "stored_project", ""),
            f"Reviewed {answers.heading(row)}{until}.",
            id=row["id"],
            review_after=row["review_after"],
            state=observations.state(row, now),
        )
    limit = min(limit, limits.REVIEW_MOST) if limit > 0 else limits.REVIEW_DEFAULT
    with tier.database.reading() as connection:
        found = projects.for_reading(tier, connection, project=project) if project else projects.Resolved("", "all_projects", "")
        rows = connection.execute(
            "SELECT * FROM observations WHERE review_after <= ? AND deleted_at IS NULL"
            + (" AND project = ?" if project else "")
            + " ORDER BY review_after, id LIMIT ?",
            (stamps.write(now), *([found.name] if project else []), limit),
        ).fetchall()
    lines = [f"{answers.counted(len(rows), 'memory is', 'memories are')} due for review. {answers.LABEL}"]
    made = []
    for row in rows:
        shown, cut = answers.preview(row["content"])
        lines += [f"- {answers.heading(row)}", f"  {answers.facts(row, now)}", f"  > {shown}"]
        made.append({**answers.summary(row, now), "preview": shown, "truncated": cut})
    return answers.answer(found, "\n".join(lines), observations=made)


def merge_projects(tier, *, sources, to, given_up=lambda: False):
    """Move all rows of spelling variants to one project; the old names then mean the new one (mem_merge_projects)."""
    target = names.spoken(to, argument="to")
    wanted = [name for name in (part.strip() for part in sources.split(",")) if name]
    if not wanted:
        raise Refusal("missing_argument", "`from` names no project.", argument="from")
    with tier.database.writing(given_up) as connection:
        moved = []
        for name in wanted:
            source = names.spoken(name, argument="from")
            if UNTOUCHABLE in (source, target):
                raise Refusal("invalid_argument", f"`{UNTOUCHABLE}` is not merged.", argument="from")
            if not names.same_but_for_separators(source, target):
                raise Refusal(
                    "project_transition_conflict",
                    f"{source} and {target} are not spellings of one name; nothing was merged.",
                    hint="Only names that differ in case, blanks, or `-` against `_` are merged.",
                )
            if not projects.is_known(connection, source):
                near = names.similar(source, projects.known(connection))
                raise Refusal(
                    "unknown_project",
                    f"there is no project {source}; nothing was merged." + (f" Similar: {', '.join(near)}." if near else ""),
                    available_projects=projects.known(connection),
                )
            if source != target:
                moved.append({"from": source, **_move(connection, source, target)})
    count = sum(row["observations"] for row in moved)
    text = (
        f"Merged {', '.join(row['from'] for row in moved)} into {target}: {answers.counted(count, 'observation')} moved."
        if moved
        else f"All of them are {target} already; nothing to merge."
    )
    return answers.answer(projects.Resolved(target, "explicit_override", ""), text, merged=moved, to=target)


def _move(connection, source, target):
    counts = {}
    ids = [row[0] for row in connection.execute("SELECT id FROM observations WHERE project = ?", (source,))]
    for table in ("observations", "sessions", "prompts", "bindings"):
        counts[table] = connection.execute(f"UPDATE {table} SET project = ? WHERE project = ?", (target, source)).rowcount
    connection.execute("UPDATE aliases SET project = ? WHERE project = ?", (target, source))
    connection.execute("INSERT OR REPLACE INTO aliases VALUES (?, ?)", (source, target))
    connection.execute("DELETE FROM aliases WHERE alias = project")
    for id in ids:
        index.put(connection, connection.execute("SELECT * FROM observations WHERE id = ?", (id,)).fetchone())
    counts.pop("bindings")
    return counts


def _project_of(tier, connection, relation):
    row = connection.execute(
        "SELECT project FROM observations WHERE sync_id IN (?, ?) ORDER BY id LIMIT 1", (relation["source_id"], relation["target_id"])
    ).fetchone()
    return projects.Resolved(row["project"], "stored_project", "") if row else projects.current(tier, connection)[0]


def _relation(row):
    return {name: row[name] for name in row.keys() if name != "id" and row[name] is not None}


def _text(name, value):
    if len(value) > limits.REASON:
        raise too_long(f"`{name}`", len(value), limits.REASON)
    return privacy.clean(value)[0] or None
